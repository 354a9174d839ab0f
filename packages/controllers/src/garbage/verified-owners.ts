import type { ClassifiedOwners } from './classify-owners.ts';

/**
 * Owners that were seen to exist and have not been seen to go since. The server is asked about an owner once, not once
 * for each of its dependents.
 */
export class VerifiedOwners {
  readonly #uids = new Set<string>();
  /** Gone while somebody was asking: an answer that is older than the deletion may still be on its way. */
  readonly #goneMeanwhile = new Set<string>();
  #asking = 0;
  #clearings = 0;

  has(uid: string): boolean {
    return this.#uids.has(uid);
  }

  /** Notes the owners that `ask` has seen. */
  async during(ask: () => Promise<ClassifiedOwners>): Promise<ClassifiedOwners> {
    this.#asking += 1;
    const clearings = this.#clearings;
    try {
      const owners = await ask();
      if (clearings !== this.#clearings) return owners;
      for (const { uid } of owners.seen) if (!this.#goneMeanwhile.has(uid)) this.#uids.add(uid);
      return owners;
    } finally {
      this.#asking -= 1;
      if (this.#asking === 0) this.#goneMeanwhile.clear();
    }
  }

  gone(uid: string): void {
    this.#uids.delete(uid);
    if (this.#asking > 0) this.#goneMeanwhile.add(uid);
  }

  /** Deletions may have been missed. */
  clear(): void {
    this.#clearings += 1;
    this.#uids.clear();
  }
}
