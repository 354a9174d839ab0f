import type { Status, SubresourceCall, SubresourceDefinition } from '@keelson/core';
import { type Eviction, EvictionSchema } from '../../../policy/v1/schema/index.ts';
import type { Pod } from '../schema/index.ts';
import { requireSameName } from './binding.ts';

const success: Status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 };

/** Evicts a pod: deletes it with the options of the request body. A server checks disruption budgets besides. */
export const evictionSubresource: SubresourceDefinition = {
  type: 'action',
  name: 'eviction',
  bodyKind: { group: 'policy', version: 'v1', kind: 'Eviction' },
  otherVersions: ['v1beta1'],
  schema: EvictionSchema,
  async run({ parent, body, dryRun }: SubresourceCall<Pod, Eviction>) {
    requireSameName(body, parent.name, 'Eviction');
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
