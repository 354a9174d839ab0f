import type { ClassifiedOwners } from './classify-owners.ts';

/**
 * Owners that were read from the server and whose deletion has not been observed since. Each owner is read once, not
 * once per dependent.
 */
export class VerifiedOwners {
  readonly #uids = new Set<string>();
  /** Owners deleted while a read was in progress. The result of that read may be older than the deletion. */
  readonly #deletedMeanwhile = new Set<string>();
  #asking = 0;
  #clearings = 0;

  has(uid: string): boolean {
    return this.#uids.has(uid);
  }

  /** Calls `ask`, which reads owners, and records the owners that exist and were not deleted in the meantime. */
  async during(ask: () => Promise<ClassifiedOwners>): Promise<ClassifiedOwners> {
    this.#asking += 1;
    const clearings = this.#clearings;
    try {
      const owners = await ask();
      if (clearings !== this.#clearings) return owners;
      for (const { uid } of owners.seen) if (!this.#deletedMeanwhile.has(uid)) this.#uids.add(uid);
      return owners;
    } finally {
      this.#asking -= 1;
      if (this.#asking === 0) this.#deletedMeanwhile.clear();
    }
  }

  gone(uid: string): void {
    this.#uids.delete(uid);
    if (this.#asking > 0) this.#deletedMeanwhile.add(uid);
  }

  /** Forgets all owners, because deletions may have been missed. */
  clear(): void {
    this.#clearings += 1;
    this.#uids.clear();
  }
}
