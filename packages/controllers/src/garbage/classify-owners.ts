import { type ApiClient, isStatusError, type OwnerReference, StatusReason } from '@keelson/core';
import type { ResourceMap } from '../resource-map.ts';
import { foregroundFinalizer, type ObjectNode } from './object-graph.ts';

/**
 * The owner references of one object by the state of the owners: see docs/reference/api-rules.md#garbage-collection.
 */
export interface ClassifiedOwners {
  /** The owner exists and is not waiting for its dependents. */
  readonly solid: readonly OwnerReference[];
  /** The owner does not exist, or its name belongs to another object. */
  readonly dangling: readonly OwnerReference[];
  /** The owner is being deleted in the foreground and waits for its dependents. */
  readonly waiting: readonly OwnerReference[];
  /** The solid owners that were read from the server. */
  readonly seen: readonly OwnerReference[];
}

/**
 * Reads every owner from the server, because a cached state may be old. A reference that cannot be resolved counts as
 * solid, so that nothing is deleted by mistake: a namespaced owner of a cluster-scoped object, and an owner of a kind
 * that is not served.
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
    const { metadata } = await scoped.get(owner.name);
    if (metadata.uid !== owner.uid) return 'dangling';
    return metadata.deletionTimestamp !== undefined && (metadata.finalizers ?? []).includes(foregroundFinalizer)
      ? 'waiting'
      : 'seen';
  } catch (error) {
    if (isStatusError(error, StatusReason.NotFound)) return 'dangling';
    throw error;
  }
}
