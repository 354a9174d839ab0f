import { type ApiClient, isStatusError, type OwnerReference, StatusReason } from '@keelson/core';
import type { ResourceMap } from '../resource-map.ts';
import { foregroundFinalizer, type ObjectNode } from './object-graph.ts';

/**
 * The owner references of one object by the state of the owners: see docs/reference/api-rules.md#garbage-collection.
 */
export interface ClassifiedOwners {
  /** The owner exists and stays. */
  readonly solid: readonly OwnerReference[];
  /** The owner is gone, or its name belongs to another object now. */
  readonly dangling: readonly OwnerReference[];
  /** The owner is going away and waits for its dependents. */
  readonly waiting: readonly OwnerReference[];
  /** Those of the solid that were seen. */
  readonly seen: readonly OwnerReference[];
}

/**
 * Asks the server about every owner, because a copy may be behind. A reference that cannot be judged counts as solid:
 * nothing is deleted on a guess. That includes a namespaced owner of a cluster-scoped object and an owner kind that is
 * not served.
 */
export async function classifyOwners(
  client: ApiClient,
  resources: ResourceMap,
  node: ObjectNode,
  owners: readonly OwnerReference[],
): Promise<ClassifiedOwners> {
  const found: Record<Judgement, OwnerReference[]> = { seen: [], unknowable: [], dangling: [], waiting: [] };
  for (const owner of owners) found[await judge(client, resources, node, owner)].push(owner);
  const { seen, unknowable, dangling, waiting } = found;
  return { solid: [...seen, ...unknowable], dangling, waiting, seen };
}

type Judgement = 'seen' | 'unknowable' | 'dangling' | 'waiting';

async function judge(
  client: ApiClient,
  resources: ResourceMap,
  node: ObjectNode,
  owner: OwnerReference,
): Promise<Judgement> {
  const resource = await resources.find(owner.apiVersion, owner.kind);
  if (resource === undefined) return 'unknowable';
  if (resource.namespaced && node.namespace === undefined) return 'unknowable';
  const all = client.dynamic(resource, { metadataOnly: true });
  const scoped = resource.namespaced && node.namespace !== undefined ? all.namespace(node.namespace) : all;
  try {
    const { metadata = {} } = await scoped.get(owner.name);
    if (metadata.uid !== owner.uid) return 'dangling';
    return metadata.deletionTimestamp !== undefined && (metadata.finalizers ?? []).includes(foregroundFinalizer)
      ? 'waiting'
      : 'seen';
  } catch (error) {
    if (isStatusError(error, StatusReason.NotFound)) return 'dangling';
    throw error;
  }
}
