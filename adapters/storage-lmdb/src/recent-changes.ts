import {
  type Change,
  type Entry,
  type OrderedRange,
  orderedForm,
  type Revision,
  type WatchBatch,
} from '@keelson/core/storage-adapter';

/** Twice the limits of one commit. A watcher that is further behind, which is rare, reads from disk. */
const maxChanges = 2048;
const maxBytes = 8 * 1024 * 1024;
const batchChanges = 512;

/** The newest changes, in memory, so that watchers near the newest revision read nothing from disk. */
export class RecentChanges {
  /** Each change includes the previous state. */
  #changes: (Change | undefined)[] = [];
  /** Changes before this index are dropped. */
  #offset = 0;
  #bytes = 0;
  #head: Revision;

  /** Starts empty: changes up to `head` are only on disk. */
  constructor(head: Revision) {
    this.#head = head;
  }

  get head(): Revision {
    return this.#head;
  }

  /** All changes after this revision are in memory. */
  get after(): Revision {
    return this.#head - (this.#changes.length - this.#offset);
  }

  push(type: Change['type'], revision: Revision, key: string, entry: Entry | undefined, prev: Entry | undefined): void {
    const change: Change = prev === undefined ? { type, revision, key, entry } : { type, revision, key, entry, prev };
    this.#changes.push(change);
    this.#bytes += bytesOf(change);
    this.#head = revision;
    while (this.#changes.length - this.#offset > maxChanges || this.#bytes > maxBytes) this.#dropFirst();
    if (this.#offset < maxChanges) return;
    this.#changes = this.#changes.slice(this.#offset);
    this.#offset = 0;
  }

  /** @param after at least {@link after} */
  read(after: Revision, range: OrderedRange, prevValue: boolean): WatchBatch {
    const changes: Change[] = [];
    let frontier = after;
    for (let i = this.#offset + (after - this.after); i < this.#changes.length && changes.length < batchChanges; i++) {
      const change = this.#changes[i];
      if (change === undefined) break;
      frontier = change.revision;
      if (range.covers(orderedForm(change.key))) changes.push(prevValue ? change : withoutPrev(change));
    }
    return { changes, frontier };
  }

  #dropFirst(): void {
    const first = this.#changes[this.#offset];
    if (first !== undefined) this.#bytes -= bytesOf(first);
    this.#changes[this.#offset] = undefined;
    this.#offset++;
  }
}

function bytesOf({ entry, prev }: Change): number {
  return (entry?.value.byteLength ?? 0) + (prev?.value.byteLength ?? 0);
}

function withoutPrev(change: Change): Change {
  if (change.prev === undefined) return change;
  const { type, revision, key, entry } = change;
  return { type, revision, key, entry };
}
