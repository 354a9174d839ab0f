import { fieldError, type Schema, type SubresourceCall, type SubresourceDefinition, statusErrors } from '@keelson/core';
import type { Deployment, DeploymentRollback } from './schema/index.ts';

/**
 * Records in a deployment that it is to return to an earlier revision; a controller performs the rollback. The response
 * is the request itself: see docs/reference/api-rules.md#rollback.
 */
export function rollbackSubresource(
  group: string,
  version: string,
  schema: Schema<DeploymentRollback>,
): SubresourceDefinition {
  const bodyKind = { group, version, kind: 'DeploymentRollback' };
  return {
    type: 'action',
    name: 'rollback',
    bodyKind,
    schema,
    async run({ parent, body, dryRun }: SubresourceCall<Deployment, DeploymentRollback>) {
      const revision = body.rollbackTo?.revision ?? 0;
      const errors = [
        ...(body.name ? [] : [fieldError.required('name', 'name is missing')]),
        ...(revision < 0
          ? [fieldError.invalid('rollbackTo.revision', revision, 'must be greater than or equal to 0')]
          : []),
      ];
      if (errors.length > 0) throw statusErrors.invalid(bodyKind, body.name, errors);
      if (body.name !== parent.name) {
        throw statusErrors.badRequest(
          `the name of the deployment (${body.name}) does not match the name on the URL (${parent.name})`,
        );
      }
      await parent.update(
        (deployment) => {
          const updated = body.updatedAnnotations ?? {};
          deployment.metadata ??= {};
          if (Object.keys(updated).length > 0) {
            deployment.metadata.annotations = { ...deployment.metadata.annotations, ...updated };
          }
          deployment.spec.rollbackTo = revision === 0 ? {} : { revision };
        },
        { as: 'spec', dryRun },
      );
      const { name, updatedAnnotations, rollbackTo } = body;
      const answer: DeploymentRollback = {
        kind: bodyKind.kind,
        apiVersion: `${group}/${version}`,
        name,
        ...(updatedAnnotations ? { updatedAnnotations } : {}),
        rollbackTo,
      };
      return { code: 201, object: answer };
    },
  };
}
