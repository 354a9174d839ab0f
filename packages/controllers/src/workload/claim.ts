import { controllerOf, isControlledBy, ownerReference, type ReconcileRun } from '@keelson/controller-kit';
import {
  isStatusError,
  type KindDefinition,
  type KubeObject,
  type LabelSelector,
  type OwnerReference,
  StatusReason,
} from '@keelson/core';

/** Namespaces of objects without a controller: the index of those that may be adopted. */
export function orphanNamespace(object: KubeObject): readonly string[] {
  return controllerOf(object) === undefined ? [object.metadata?.namespace ?? ''] : [];
}

export interface ClaimOptions<O extends KubeObject, T extends KubeObject> {
  readonly run: ReconcileRun;
  readonly ownerKind: KindDefinition<O>;
  readonly owner: O;
  readonly kind: KindDefinition<T>;
  readonly selector: LabelSelector;
  /** Further condition on objects of the owner. */
  readonly belongs?: (object: T) => boolean;
  /** Objects that are left as they are, and are not returned. */
  readonly ignored?: (object: T) => boolean;
}

/**
 * The objects that the owner controls, after it has adopted those without a controller that its selector selects, and
 * has released those that it no longer selects. An owner that is being deleted changes nothing.
 */
export async function claimed<O extends KubeObject, T extends KubeObject>(options: ClaimOptions<O, T>): Promise<T[]> {
  const { run, kind, owner, selector, belongs = () => true, ignored = () => false } = options;
  const reader = run.read(kind);
  const selects = (object: T) => selector.matches(object.metadata?.labels) && belongs(object);
  const own: T[] = [];
  for (const object of reader.controlledBy(owner)) {
    if (ignored(object)) continue;
    if (selects(object)) own.push(object);
    else if (owner.metadata?.deletionTimestamp === undefined) await release(options, object);
  }
  if (owner.metadata?.deletionTimestamp !== undefined) return own;
  const orphans = reader
    .by(orphanNamespace, owner.metadata?.namespace ?? '')
    .filter((object) => object.metadata?.deletionTimestamp === undefined && !ignored(object) && selects(object));
  if (orphans.length === 0 || !(await stillExists(options))) return own;
  for (const orphan of orphans) {
    const adopted = await adopt(options, orphan);
    if (adopted !== undefined) own.push(adopted);
  }
  return own;
}

/** Reads the owner itself: the local copy may show it although it is being deleted and its dependents are orphaned. */
async function stillExists<O extends KubeObject, T extends KubeObject>({
  run,
  ownerKind,
  owner,
}: ClaimOptions<O, T>): Promise<boolean> {
  const { name = '', namespace = '', uid } = owner.metadata ?? {};
  try {
    const { metadata } = await run.client.resource(ownerKind).namespace(namespace).get(name);
    return metadata?.uid === uid && metadata?.deletionTimestamp === undefined;
  } catch (error) {
    if (isStatusError(error, StatusReason.NotFound)) return false;
    throw error;
  }
}

async function adopt<O extends KubeObject, T extends KubeObject>(
  options: ClaimOptions<O, T>,
  object: T,
): Promise<T | undefined> {
  const { ownerKind, owner } = options;
  return patchOwners(options, object, [...(object.metadata?.ownerReferences ?? []), ownerReference(ownerKind, owner)]);
}

async function release<O extends KubeObject, T extends KubeObject>(
  options: ClaimOptions<O, T>,
  object: T,
): Promise<void> {
  if (!isControlledBy(object, options.owner)) return;
  const others = object.metadata?.ownerReferences?.filter(({ uid }) => uid !== options.owner.metadata?.uid) ?? [];
  await patchOwners(options, object, others);
}

/** Replaces the owners if the object is still the one that was read; undefined when it no longer exists. */
async function patchOwners<O extends KubeObject, T extends KubeObject>(
  { run, kind }: ClaimOptions<O, T>,
  object: T,
  owners: readonly OwnerReference[],
): Promise<T | undefined> {
  const { name = '', namespace = '', uid, resourceVersion } = object.metadata ?? {};
  try {
    const ownerReferences = owners.length === 0 ? null : owners;
    const patch = { metadata: { uid, resourceVersion, ownerReferences } };
    return await run.client.resource(kind).namespace(namespace).patch(name, 'merge', patch);
  } catch (error) {
    if (isStatusError(error, StatusReason.NotFound)) return undefined;
    throw error;
  }
}
