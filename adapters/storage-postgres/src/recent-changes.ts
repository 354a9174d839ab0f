import {
  type Change,
  type OrderedRange,
  orderedForm,
  type Revision,
  type WatchBatch,
} from '@keelson/core/storage-adapter';

const maxChanges = 4096;
const maxBytes = 16 * 1024 * 1024;
const batchChanges = 512;

/** A change, with the previous state if that was read. */
export interface ReadChange {
  readonly plain: Change;
  readonly full: Change | undefined;
}

interface Recent extends ReadChange {
  readonly ordered: string;
  readonly bytes: number;
}

/** The newest changes of the log, from which all watchers near the newest revision are served. */
export class RecentChanges {
  #changes: Recent[] = [];
  /** Changes before this index are dropped. */
  #offset = 0;
  #bytes = 0;
  #head: Revision = 0;
  #after: Revision = 0;
  #fullAfter: Revision = 0;

  get head(): Revision {
    return this.#head;
  }

  /** Starts again at `head`, without changes. */
  restart(head: Revision): void {
    this.#changes = [];
    this.#offset = 0;
    this.#bytes = 0;
    this.#head = head;
    this.#after = head;
    this.#fullAfter = head;
  }

  /** Returns whether all changes after `revision` are in memory. */
  reachesBack(revision: Revision, prevValue: boolean): boolean {
    return revision >= (prevValue ? this.#fullAfter : this.#after);
  }

  /** Appends all changes between {@link head} and the new `head`. */
  append(changes: readonly ReadChange[], head: Revision): void {
    for (const change of changes) {
      const { plain, full } = change;
      const bytes = (plain.entry?.value.byteLength ?? 0) + (full?.prev?.value.byteLength ?? 0);
      this.#changes.push({ ...change, ordered: orderedForm(plain.key), bytes });
      this.#bytes += bytes;
      if (full === undefined) this.#fullAfter = plain.revision;
    }
    this.#head = head;
    while (this.#changes.length - this.#offset > maxChanges || this.#bytes > maxBytes) {
      const oldest = this.#changes[this.#offset];
      if (oldest === undefined) break;
      this.#offset++;
      this.#bytes -= oldest.bytes;
      this.#after = oldest.plain.revision;
      this.#fullAfter = Math.max(this.#fullAfter, this.#after);
    }
    if (this.#offset < maxChanges) return;
    this.#changes = this.#changes.slice(this.#offset);
    this.#offset = 0;
  }

  /** Returns a bounded batch of the changes after `after`, which is below {@link head} and at least the lower bound. */
  read(after: Revision, range: OrderedRange, prevValue: boolean): WatchBatch {
    const changes: Change[] = [];
    for (let i = this.#firstAfter(after); i < this.#changes.length; i++) {
      const recent = this.#changes[i];
      if (recent === undefined) break;
      if (!range.covers(recent.ordered)) continue;
      if (changes.length === batchChanges) return { changes, frontier: changes.at(-1)?.revision ?? after };
      changes.push(prevValue ? (recent.full ?? recent.plain) : recent.plain);
    }
    return { changes, frontier: this.#head };
  }

  #firstAfter(revision: Revision): number {
    let low = this.#offset;
    let high = this.#changes.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#changes[middle]?.plain.revision ?? Number.POSITIVE_INFINITY) <= revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
