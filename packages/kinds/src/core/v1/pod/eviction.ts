import { type Status, type SubresourceCall, type SubresourceDefinition, statusErrors } from '@keelson/core';
import { type Eviction, EvictionSchema } from '../../../policy/v1/schema/index.ts';
import type { Pod } from '../schema/index.ts';

const success: Status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 };

/**
 * Asks a pod to leave. There are no disruption budgets yet, so that nothing holds an eviction back: it is a delete with
 * the options in the body.
 */
export const evictionSubresource: SubresourceDefinition = {
  type: 'action',
  name: 'eviction',
  bodyKind: { group: 'policy', version: 'v1', kind: 'Eviction' },
  otherVersions: ['v1beta1'],
  schema: EvictionSchema,
  async run({ parent, body, dryRun }: SubresourceCall<Pod, Eviction>) {
    const named = body.metadata?.name;
    if (named && named !== parent.name) {
      throw statusErrors.badRequest(
        `the name in the eviction (${named}) does not match the name of the pod (${parent.name})`,
      );
    }
    const { gracePeriodSeconds, preconditions, dryRun: dry } = body.deleteOptions ?? {};
    await parent.delete({
      dryRun: dryRun || (dry?.includes('All') ?? false),
      ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
      ...(preconditions?.uid ? { uid: preconditions.uid } : {}),
      ...(preconditions?.resourceVersion ? { resourceVersion: preconditions.resourceVersion } : {}),
    });
    return { code: 201, object: success };
  },
};
