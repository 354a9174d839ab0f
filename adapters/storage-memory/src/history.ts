import type { Revision } from '@keelson/core/storage-adapter';
import type { Version } from './versioned-state.ts';

const chunkBits = 10;
const chunkSize = 1 << chunkBits;

/**
 * The retained versions by revision: a dense queue in chunks, so that dropping the oldest takes constant time.
 */
export class History {
  #chunks: (Version | undefined)[][] = [];
  /** Revision at index 0 of the first chunk. */
  #base: Revision;
  #first: Revision;
  #next: Revision;

  constructor(first: Revision) {
    this.#base = first;
    this.#first = first;
    this.#next = first;
  }

  /** The oldest retained revision; equals `next` when empty. */
  get first(): Revision {
    return this.#first;
  }

  /** The revision that the next version must have. */
  get next(): Revision {
    return this.#next;
  }

  push(version: Version): void {
    const offset = this.#next++ - this.#base;
    if ((offset & (chunkSize - 1)) === 0) this.#chunks.push([]);
    this.#chunks[offset >> chunkBits]?.push(version);
  }

  get(revision: Revision): Version | undefined {
    if (revision < this.#first || revision >= this.#next) return undefined;
    const offset = revision - this.#base;
    return this.#chunks[offset >> chunkBits]?.[offset & (chunkSize - 1)];
  }

  /** Removes and returns the oldest version. */
  shift(): Version | undefined {
    const version = this.get(this.#first);
    if (version === undefined) return undefined;
    const offset = this.#first++ - this.#base;
    const chunk = this.#chunks[0];
    if (chunk !== undefined) chunk[offset] = undefined;
    if (this.#first - this.#base === chunkSize) {
      this.#chunks.shift();
      this.#base += chunkSize;
    }
    return version;
  }
}
