import { defineKind, type KindDefinition } from '@keelson/core';
import { defaultPodSpec } from '../../core/v1/pod/default-pod-spec.ts';
import { checkNonNegative, newErrors } from '../../validation/checks.ts';
import { checkDeployment, checkDeploymentStatus } from '../../workload/check-deployment.ts';
import { restoreLabels } from '../../workload/restore-labels.ts';
import { deploymentColumns } from '../../workload/workload-columns.ts';
import { deploymentConversion, dropRollbackAnnotation } from './deployment-conversion.ts';
import { rollbackSubresource } from './rollback.ts';
import { extensionsScale } from './scale.ts';
import { DeploymentRollbackSchema, DeploymentSchema, type Deployment as DeploymentType } from './schema/index.ts';
import { defaultFromTemplate } from './template-defaults.ts';

/** Maximum 32-bit number, which means no deadline and no limit. */
const unlimited = 2147483647;

/**
 * The older version of apps/v1 Deployment: the selector is optional and mutable, and rollback is a subresource. Stored
 * as apps/v1.
 */
export const ExtensionsV1beta1Deployment: KindDefinition<DeploymentType> = defineKind({
  group: 'extensions',
  version: 'v1beta1',
  kind: 'Deployment',
  deprecated: { since: '1.8', removed: '1.16', replacement: 'apps/v1 Deployment' },
  names: { shortNames: ['deploy'], categories: ['all'] },
  schema: DeploymentSchema,
  storage: deploymentConversion('extensions/v1beta1'),
  strategy: {
    generation: 'spec-and-annotations',
    defaultPropagation: 'Orphan',
    default: defaultDeployment,
    prepareForStatusUpdate: restoreLabels,
    validate({ spec }) {
      const errors = newErrors();
      checkDeployment(spec, errors);
      checkNonNegative(spec.rollbackTo?.revision, 'spec.rollbackTo.revision', errors);
      return errors;
    },
    validateStatusUpdate({ status }, old) {
      const errors = newErrors();
      checkDeploymentStatus(status, old.status, errors);
      return errors;
    },
  },
  subresources: [
    rollbackSubresource('extensions', 'v1beta1', DeploymentRollbackSchema),
    extensionsScale,
    { type: 'status', name: 'status' },
  ],
  columns: deploymentColumns,
});
export type ExtensionsV1beta1Deployment = DeploymentType;

function defaultDeployment(deployment: DeploymentType): void {
  const { spec } = deployment;
  defaultFromTemplate(deployment);
  dropRollbackAnnotation(deployment);
  spec.replicas ??= 1;
  spec.strategy ??= {};
  spec.strategy.type ||= 'RollingUpdate';
  if (spec.strategy.type === 'RollingUpdate') {
    spec.strategy.rollingUpdate ??= {};
    spec.strategy.rollingUpdate.maxUnavailable ??= 1;
    spec.strategy.rollingUpdate.maxSurge ??= 1;
  }
  spec.revisionHistoryLimit ??= unlimited;
  spec.progressDeadlineSeconds ??= unlimited;
  defaultPodSpec(spec.template.spec);
}
