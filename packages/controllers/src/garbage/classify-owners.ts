import {
  type ApiClient,
  type DiscoveredResource,
  isStatusError,
  type OwnerReference,
  StatusReason,
} from '@keelson/core';
import type { ResourceMap } from '../resource-map.ts';
import { foregroundFinalizer, type ObjectNode } from './object-graph.ts';

/** An owner that was read from the server. */
export interface SeenOwner {
  readonly reference: OwnerReference;
  /** Undefined: the owner is cluster-scoped, so that objects of every namespace may refer to it. */
  readonly namespace: string | undefined;
}

/** A reference to a namespaced owner that is not in the namespace of the object. */
export interface MisplacedOwner {
  readonly reference: OwnerReference;
  readonly resource: DiscoveredResource;
}

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
  readonly seen: readonly SeenOwner[];
  /** References whose owners do not exist, or exist in another namespace. */
  readonly misplaced: readonly MisplacedOwner[];
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
  const seen: SeenOwner[] = [];
  const misplaced: MisplacedOwner[] = [];
  for (const reference of owners) {
    const resource = await resources.find(reference.apiVersion, reference.kind);
    const judgement = await judge(client, resource, node, reference);
    found[judgement].push(reference);
    const namespaced = resource?.namespaced === true;
    if (judgement === 'seen') seen.push({ reference, namespace: namespaced ? node.namespace : undefined });
    else if (judgement !== 'waiting' && resource !== undefined && namespaced) misplaced.push({ reference, resource });
  }
  const { unknowable, dangling, waiting } = found;
  return { solid: [...found.seen, ...unknowable], dangling, waiting, seen, misplaced };
}

/** True when the owner of a misplaced reference exists. */
export async function existsElsewhere(
  client: ApiClient,
  { reference, resource }: MisplacedOwner,
  node: ObjectNode,
): Promise<boolean> {
  const fieldSelector = `metadata.name=${reference.name}`;
  const { items } = await client.dynamic(resource, { metadataOnly: true }).list({ fieldSelector });
  return items.some(({ metadata }) => metadata?.uid === reference.uid && metadata.namespace !== node.namespace);
}

type Judgement = 'seen' | 'unknowable' | 'dangling' | 'waiting';

async function judge(
  client: ApiClient,
  resource: DiscoveredResource | undefined,
  node: ObjectNode,
  owner: OwnerReference,
): Promise<Judgement> {
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
