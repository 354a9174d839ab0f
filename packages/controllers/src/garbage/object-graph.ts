import { apiVersionOf, type DiscoveredResource, type KubeObject, type OwnerReference } from '@keelson/core';

/** The cached part of an object. */
export interface ObjectNode {
  readonly uid: string;
  readonly resource: DiscoveredResource;
  readonly namespace: string | undefined;
  readonly name: string;
  readonly owners: readonly OwnerReference[];
  readonly deleting: boolean;
  /** Being deleted in the foreground: its dependents must be deleted first. */
  readonly foreground: boolean;
  /** Being deleted with orphaning: references of its dependents must be removed first. */
  readonly orphaning: boolean;
}

export const foregroundFinalizer = 'foregroundDeletion';
export const orphanFinalizer = 'orphan';

const none: readonly OwnerReference[] = [];
const noFinalizers: readonly string[] = [];

/** The graph node of an object; undefined for an object without a uid. */
export function nodeOf(resource: DiscoveredResource, { metadata = {} }: KubeObject): ObjectNode | undefined {
  if (metadata.uid === undefined) return undefined;
  const deleting = metadata.deletionTimestamp !== undefined;
  const finalizers = metadata.finalizers ?? noFinalizers;
  return {
    uid: metadata.uid,
    resource,
    namespace: metadata.namespace,
    name: metadata.name ?? '',
    owners: metadata.ownerReferences ?? none,
    deleting,
    foreground: deleting && finalizers.includes(foregroundFinalizer),
    orphaning: deleting && finalizers.includes(orphanFinalizer),
  };
}

/** True for objects that the collector must cache: owned ones and those being deleted. */
export function isTied(node: ObjectNode | undefined): boolean {
  return node !== undefined && (node.deleting || node.owners.length > 0);
}

/** True when a reference of an object to a node with its uid also states the name, the kind and the namespace. */
export function isOwner(node: ObjectNode, { name, kind, apiVersion }: OwnerReference, of: ObjectNode): boolean {
  const { resource } = node;
  const isNear = node.namespace === undefined || node.namespace === of.namespace;
  return isNear && node.name === name && resource.kind === kind && apiVersionOf(resource) === apiVersion;
}

/** Owner references by uid. The dependents of an owner are tracked even if the owner is not cached. */
export class ObjectGraph {
  readonly #nodes = new Map<string, ObjectNode>();
  readonly #dependents = new Map<string, Set<string>>();

  get(uid: string): ObjectNode | undefined {
    return this.#nodes.get(uid);
  }

  get size(): number {
    return this.#nodes.size;
  }

  values(): IterableIterator<ObjectNode> {
    return this.#nodes.values();
  }

  put(node: ObjectNode): void {
    const before = this.#nodes.get(node.uid);
    this.#nodes.set(node.uid, node);
    if (before !== undefined) this.#unlink(before);
    for (const owner of node.owners) {
      const set = this.#dependents.get(owner.uid);
      if (set === undefined) this.#dependents.set(owner.uid, new Set([node.uid]));
      else set.add(node.uid);
    }
  }

  remove(uid: string): ObjectNode | undefined {
    const node = this.#nodes.get(uid);
    if (node === undefined) return undefined;
    this.#nodes.delete(uid);
    this.#unlink(node);
    return node;
  }

  /** Objects that have the object with this uid as an owner. */
  dependents(uid: string): ObjectNode[] {
    const uids = this.#dependents.get(uid);
    if (uids === undefined) return [];
    return [...uids].flatMap((dependent) => this.#nodes.get(dependent) ?? []);
  }

  /**
   * UIDs of the objects whose foreground deletion waits for the given object: its owners through blocking references,
   * their owners, and so on. The object itself is included when it is its own owner, directly or indirectly.
   */
  waitingOwners(node: ObjectNode): ReadonlySet<string> {
    const found = new Set<string>();
    const pending = [node];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      for (const { uid, blockOwnerDeletion } of next.owners) {
        const owner = blockOwnerDeletion === true && !found.has(uid) ? this.#nodes.get(uid) : undefined;
        if (owner?.foreground !== true) continue;
        found.add(uid);
        pending.push(owner);
      }
    }
    return found;
  }

  #unlink(node: ObjectNode): void {
    for (const owner of node.owners) {
      const set = this.#dependents.get(owner.uid);
      set?.delete(node.uid);
      if (set?.size === 0) this.#dependents.delete(owner.uid);
    }
  }
}
