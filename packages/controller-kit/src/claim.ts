import { isStatusError, type KindDefinition, type KubeObject, type LabelSelector, StatusReason } from '@keelson/core';
import type { ReconcileRun } from './controller-definition.ts';
import { controllerOf, isControlledBy, ownerReference } from './owner-references.ts';

/** The owner, and the objects that it claims. */
export interface ClaimOptions<O extends KubeObject, T extends KubeObject> {
  /** Kind of the owner. */
  readonly owner: KindDefinition<O>;
  /** The object that claims, from the local copy. */
  readonly object: O;
  /** Kind of the claimed objects; the controller must read it. */
  readonly kind: KindDefinition<T>;
  /** Selects the labels of claimed objects. */
  readonly selector: LabelSelector;
  /** A further condition besides the selector. */
  readonly matches?: (candidate: T) => boolean;
  /** Objects that are neither returned nor changed, for example pods that have ended. */
  readonly ignores?: (candidate: T) => boolean;
  /** A finalizer that adopted objects get and released ones lose, in the same write. */
  readonly finalizer?: string;
}

/**
 * Returns the objects that `object` controls after claiming: objects without controller that match are adopted, and
 * controlled objects that no longer match are released. Nothing is adopted or released while `object` is being deleted,
 * and an object that is being deleted is not adopted. Before the first adoption the server is asked whether `object`
 * still exists with the same uid and is not being deleted, because the local copy may be behind. These are the rules of
 * the controllers of Kubernetes.
 */
export async function claim<O extends KubeObject, T extends KubeObject>(
  run: ReconcileRun,
  { owner, object, kind, selector, matches = () => true, ignores = () => false, finalizer }: ClaimOptions<O, T>,
): Promise<T[]> {
  const reader = run.read(kind);
  const { namespace = '', deletionTimestamp } = object.metadata ?? {};
  const isDeleting = deletionTimestamp !== undefined;
  const isMatch = (candidate: T) => selector.matches(candidate.metadata?.labels) && matches(candidate);
  const claimed: T[] = [];
  for (const candidate of reader.controlledBy(object)) {
    if (ignores(candidate)) continue;
    if (isMatch(candidate)) claimed.push(candidate);
    else if (!isDeleting) await release(run, kind, candidate, object, finalizer);
  }
  if (isDeleting) return claimed;
  const orphans = reader
    .by(namespaceWithoutController, namespace)
    .filter((other) => other.metadata?.deletionTimestamp === undefined && !ignores(other) && isMatch(other));
  if (orphans.length === 0 || !(await mayAdopt(run, owner, object))) return claimed;
  for (const orphan of orphans) {
    const adopted = await adopt(run, kind, orphan, owner, object, finalizer);
    if (adopted !== undefined) claimed.push(adopted);
  }
  return claimed;
}

/**
 * Index function for the objects without a controller, which can be adopted: returns the namespace, and the empty text
 * for cluster-scoped objects.
 */
function namespaceWithoutController(object: KubeObject): readonly string[] {
  return controllerOf(object) === undefined ? [object.metadata?.namespace ?? ''] : [];
}

async function mayAdopt<O extends KubeObject>(
  { client }: ReconcileRun,
  kind: KindDefinition<O>,
  object: O,
): Promise<boolean> {
  const { namespace, name = '', uid } = object.metadata ?? {};
  const owners = client.resource(kind);
  try {
    const { metadata } = await (namespace === undefined ? owners : owners.namespace(namespace)).get(name);
    return metadata?.uid === uid && metadata?.deletionTimestamp === undefined;
  } catch (error) {
    if (isStatusError(error, StatusReason.NotFound)) return false;
    throw error;
  }
}

/**
 * Adopts a candidate. Returns undefined when it was deleted in the meantime.
 * @throws StatusError `Conflict` when it has changed
 */
async function adopt<T extends KubeObject>(
  run: ReconcileRun,
  kind: KindDefinition<T>,
  candidate: T,
  owner: KindDefinition,
  object: KubeObject,
  finalizer: string | undefined,
): Promise<T | undefined> {
  const { ownerReferences = [], finalizers = [] } = candidate.metadata ?? {};
  const others = ownerReferences.filter(({ uid }) => uid !== object.metadata?.uid);
  const missing = finalizer !== undefined && !finalizers.includes(finalizer);
  const fields = missing ? { finalizers: [...finalizers, finalizer] } : {};
  return patchOwners(run, kind, candidate, [...others, ownerReference(owner, object)], fields);
}

async function release<T extends KubeObject>(
  run: ReconcileRun,
  kind: KindDefinition<T>,
  candidate: T,
  object: KubeObject,
  finalizer: string | undefined,
): Promise<void> {
  if (!isControlledBy(candidate, object)) return;
  const { ownerReferences = [], finalizers = [] } = candidate.metadata ?? {};
  const others = ownerReferences.filter(({ uid }) => uid !== object.metadata?.uid);
  const present = finalizer !== undefined && finalizers.includes(finalizer);
  const fields = present ? { finalizers: finalizers.filter((other) => other !== finalizer) } : {};
  await patchOwners(run, kind, candidate, others, fields);
}

/** A merge patch replaces the whole list, so the version is a precondition besides the uid. */
async function patchOwners<T extends KubeObject>(
  run: ReconcileRun,
  kind: KindDefinition<T>,
  candidate: T,
  ownerReferences: readonly object[],
  fields: { readonly finalizers?: readonly string[] },
): Promise<T | undefined> {
  const { namespace, name = '', uid, resourceVersion } = candidate.metadata ?? {};
  const objects = run.client.resource(kind);
  try {
    return await (namespace === undefined ? objects : objects.namespace(namespace)).patch(name, 'merge', {
      metadata: {
        ...fields,
        uid,
        resourceVersion,
        ownerReferences: ownerReferences.length === 0 ? null : ownerReferences,
      },
    });
  } catch (error) {
    if (isStatusError(error, StatusReason.NotFound)) return undefined;
    throw error;
  }
}
