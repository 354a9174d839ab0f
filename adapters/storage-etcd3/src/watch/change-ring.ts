import type { Change, OrderedRange, Revision, WatchBatch } from '@keelson/core/storage-adapter';
import type { LoggedChange } from './logged-change.ts';

const maxChanges = 10_000;
const maxBytes = 32 * 1024 * 1024;
const batchChanges = 512;
/** Changes that are examined for one batch of a narrow range, so that no stream blocks the process. */
const batchScan = 8192;

/** The newest changes of a store, in order, within fixed bounds: all changes after `floor`, up to `frontier`. */
export class ChangeRing {
  #changes: LoggedChange[] = [];
  /** Index of the oldest change; earlier elements are removed periodically. */
  #first = 0;
  #bytes = 0;
  #floor: Revision;
  #frontier: Revision;

  constructor(at: Revision) {
    this.#floor = at;
    this.#frontier = at;
  }

  get floor(): Revision {
    return this.#floor;
  }

  get frontier(): Revision {
    return this.#frontier;
  }

  push(changes: readonly LoggedChange[], frontier: Revision): void {
    for (const change of changes) {
      this.#changes.push(change);
      this.#bytes += change.sizeBytes;
    }
    this.#frontier = frontier;
    while (this.#changes.length - this.#first > maxChanges || this.#bytes > maxBytes) this.#dropOldest();
    if (this.#first > maxChanges) {
      this.#changes = this.#changes.slice(this.#first);
      this.#first = 0;
    }
  }

  /** Changes after `after`, which is at least `floor` and below `frontier`. */
  read(after: Revision, range: OrderedRange): WatchBatch {
    return batchOf(this.#changes, this.#indexAfter(after), range, this.#frontier);
  }

  #dropOldest(): void {
    const revision = this.#changes[this.#first]?.revision;
    while (this.#first < this.#changes.length && this.#changes[this.#first]?.revision === revision) {
      this.#bytes -= this.#changes[this.#first]?.sizeBytes ?? 0;
      this.#changes[this.#first++] = dropped;
    }
    this.#floor = revision ?? this.#floor;
  }

  #indexAfter(after: Revision): number {
    let low = this.#first;
    let high = this.#changes.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#changes[middle] as LoggedChange).revision <= after) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

const dropped: LoggedChange = {
  revision: 0,
  ordered: undefined,
  change: { type: 'delete', revision: 0, key: '', entry: undefined },
  sizeBytes: 0,
  prevMissing: false,
};

/**
 * Returns a bounded batch of the changes in range from `index` on.
 * @param frontier revision up to which the log is complete
 */
export function batchOf(
  log: readonly LoggedChange[],
  index: number,
  range: OrderedRange,
  frontier: Revision,
): WatchBatch {
  const changes: Change[] = [];
  const stop = index + batchScan;
  let revision = 0;
  for (; index < log.length; index++) {
    const logged = log[index] as LoggedChange;
    if (logged.revision !== revision && (index >= stop || changes.length >= batchChanges))
      return { changes, frontier: revision };
    revision = logged.revision;
    if (logged.ordered !== undefined && range.covers(logged.ordered)) changes.push(logged.change);
  }
  return { changes, frontier };
}
