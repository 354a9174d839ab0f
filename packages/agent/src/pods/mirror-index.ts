import type { Pod } from '@keelson/kinds';
import { fullNameOf } from '../base/pod/pod-spec.ts';

/** The mirror pods that the API server has for static pods of this node, by full name. */
export class MirrorIndex {
  readonly #mirrors = new Map<string, Pod>();

  get(fullName: string): Pod | undefined {
    return this.#mirrors.get(fullName);
  }

  set(mirror: Pod): void {
    this.#mirrors.set(fullNameOf(mirror), mirror);
  }

  /** Removes a mirror pod unless another one has replaced it under the same name. */
  delete(mirror: Pod): void {
    const name = fullNameOf(mirror);
    if (this.#mirrors.get(name)?.metadata?.uid === mirror.metadata?.uid) this.#mirrors.delete(name);
  }
}
