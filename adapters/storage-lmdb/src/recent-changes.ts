import { type Change, type Entry, type OrderedRange, orderedForm, type Revision, type WatchBatch } from '@keelson/core';

const maxChanges = 4096;
const maxBytes = 16 * 1024 * 1024;
const batchChanges = 512;

interface Recent {
  readonly ordered: string;
  readonly plain: Change;
  readonly full: Change;
  readonly bytes: number;
}

/** The newest changes, in memory, so that watchers near the head read nothing from disk. */
export class RecentChanges {
  #changes: Recent[] = [];
  /** Changes before this index are let go of. */
  #offset = 0;
  #bytes = 0;
  #head: Revision;

  /** Starts empty: changes up to `head` are on disk alone. */
  constructor(head: Revision) {
    this.#head = head;
  }

  get head(): Revision {
    return this.#head;
  }

  /** Changes after this revision are here. */
  get after(): Revision {
    return this.#head - (this.#changes.length - this.#offset);
  }

  push(type: Change['type'], revision: Revision, key: string, entry: Entry | undefined, prev: Entry | undefined): void {
    const plain: Change = { type, revision, key, entry };
    const full: Change = prev === undefined ? plain : { ...plain, prev };
    const bytes = (entry?.value.byteLength ?? 0) + (prev?.value.byteLength ?? 0);
    this.#changes.push({ ordered: orderedForm(key), plain, full, bytes });
    this.#bytes += bytes;
    this.#head = revision;
    while (this.#changes.length - this.#offset > maxChanges || this.#bytes > maxBytes) {
      this.#bytes -= this.#changes[this.#offset]?.bytes ?? 0;
      this.#offset++;
    }
    if (this.#offset < maxChanges) return;
    this.#changes = this.#changes.slice(this.#offset);
    this.#offset = 0;
  }

  /** `after` must not be below {@link after}. */
  read(after: Revision, range: OrderedRange, prevValue: boolean): WatchBatch {
    const changes: Change[] = [];
    let frontier = after;
    for (let i = this.#offset + (after - this.after); i < this.#changes.length && changes.length < batchChanges; i++) {
      const recent = this.#changes[i];
      if (recent === undefined) break;
      frontier = recent.plain.revision;
      if (range.covers(recent.ordered)) changes.push(prevValue ? recent.full : recent.plain);
    }
    return { changes, frontier };
  }
}
