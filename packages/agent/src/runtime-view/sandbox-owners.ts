import type { SandboxId } from '@keelson/container-runtime';

/** Which sandbox belongs to which pod. Times are numbers of looks. */
export class SandboxOwners {
  readonly #pods = new Map<string, Map<SandboxId, number>>();
  readonly #owners = new Map<SandboxId, string>();

  ownerOf(id: SandboxId): string | undefined {
    return this.#owners.get(id);
  }

  sandboxesOf(uid: string): SandboxId[] {
    return [...(this.#pods.get(uid)?.keys() ?? [])];
  }

  /** The sandbox was heard of when `look` was the latest look. */
  note(uid: string, id: SandboxId, look: number): void {
    const ids = this.#pods.get(uid) ?? new Map<SandboxId, number>();
    ids.set(id, look);
    this.#pods.set(uid, ids);
    this.#owners.set(id, uid);
  }

  /** A look showed these sandboxes of a pod. Those that were heard of after it began may exist all the same. */
  showed(uid: string, ids: Iterable<SandboxId>, look: number): void {
    const shown = new Set(ids);
    for (const [id, heard] of this.#pods.get(uid) ?? []) {
      if (shown.has(id) || heard >= look) continue;
      this.#pods.get(uid)?.delete(id);
      this.#owners.delete(id);
    }
    for (const id of shown) this.note(uid, id, look);
    if (this.#pods.get(uid)?.size === 0) this.#pods.delete(uid);
  }
}
