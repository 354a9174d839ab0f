import type { OwnerReference } from '@keelson/core';
import type { ClassifiedOwners, SeenOwner } from './classify-owners.ts';

/** As in Kubernetes, the last deleted owners are remembered in this number. */
const maxDeleted = 500;

/**
 * Owners that were read from the server and whose deletion has not been observed since. Each owner is read once, not
 * once per dependent.
 */
export class VerifiedOwners {
  readonly #owners = new Map<string, SeenOwner>();
  /** Owners deleted while a read was in progress. The result of that read may be older than the deletion. */
  readonly #deletedMeanwhile = new Set<string>();
  /** The last owners with dependents whose deletion was observed, oldest first. */
  readonly #deleted = new Set<string>();
  #asking = 0;
  #clearings = 0;

  /** True when the reference of an object in this namespace states the name and the kind of the verified owner. */
  has(reference: OwnerReference, namespace: string | undefined): boolean {
    const owner = this.#owners.get(reference.uid);
    if (owner === undefined || (owner.namespace !== undefined && owner.namespace !== namespace)) return false;
    const { name, kind, apiVersion } = owner.reference;
    return reference.name === name && reference.kind === kind && reference.apiVersion === apiVersion;
  }

  /** Calls `ask`, which reads owners, and records the owners that exist and were not deleted in the meantime. */
  async during(ask: () => Promise<ClassifiedOwners>): Promise<ClassifiedOwners> {
    this.#asking += 1;
    const clearings = this.#clearings;
    try {
      const owners = await ask();
      if (clearings !== this.#clearings) return owners;
      for (const seen of owners.seen)
        if (!this.#deletedMeanwhile.has(seen.reference.uid)) this.#owners.set(seen.reference.uid, seen);
      return owners;
    } finally {
      this.#asking -= 1;
      if (this.#asking === 0) this.#deletedMeanwhile.clear();
    }
  }

  gone(uid: string, hasDependents: boolean): void {
    this.#owners.delete(uid);
    if (this.#asking > 0) this.#deletedMeanwhile.add(uid);
    if (!hasDependents) return;
    this.#deleted.add(uid);
    for (const oldest of this.#deleted) {
      if (this.#deleted.size <= maxDeleted) break;
      this.#deleted.delete(oldest);
    }
  }

  /** True when the deletion of the owner was observed of late. */
  isGone(uid: string): boolean {
    return this.#deleted.has(uid);
  }

  /** Forgets all owners, because deletions may have been missed. */
  clear(): void {
    this.#clearings += 1;
    this.#owners.clear();
  }
}
