import {
  type Change,
  type ChangeLog,
  checkNotCompacted,
  type Entry,
  type Key,
  type OrderedRange,
  type Revision,
  type WatchBatch,
} from '@keelson/core';
import { History } from './history.ts';
import { OrderedMap } from './ordered-map.ts';
import { Version } from './version.ts';

const emptyRevision = 1;
const batchChanges = 512;
/** Changes that are examined for one batch of a narrow range, so that no stream blocks the process. */
const batchScan = 8192;

/**
 * The chain of versions of every key, and all versions by revision: the state at each retained revision, and the change
 * log.
 */
export class VersionedState implements ChangeLog {
  readonly #index = new OrderedMap<Version>();
  readonly #history = new History(emptyRevision + 1);
  #compacted: Revision = 0;

  get head(): Revision {
    return this.#history.next - 1;
  }

  get compacted(): Revision {
    return this.#compacted;
  }

  /** Number of versions that are retained for history. */
  get retained(): number {
    return this.#history.next - this.#history.first;
  }

  current(ordered: string): Entry | undefined {
    return this.#index.get(ordered)?.entry;
  }

  at(ordered: string, revision: Revision): Entry | undefined {
    return entryAt(this.#index.get(ordered), revision);
  }

  /** Puts `entry`, or deletes when it is undefined, at the revision after `head`. */
  apply(key: Key, ordered: string, entry: Entry | undefined, at: number): void {
    const version = new Version(key, ordered, this.#history.next, entry, this.#index.get(ordered), at);
    this.#history.push(version);
    this.#index.set(ordered, version);
  }

  /** Visits the entries of a range at `revision`, in key order, until `visit` returns false. */
  scan(range: OrderedRange, revision: Revision, visit: (entry: Entry, ordered: string) => boolean): void {
    this.#index.scan(range.start, range.startExclusive, range.end, (version, ordered) => {
      const entry = entryAt(version, revision);
      return entry === undefined || visit(entry, ordered);
    });
  }

  read(after: Revision, range: OrderedRange, prevValue: boolean): WatchBatch {
    checkNotCompacted(after, this.#compacted);
    const changes: Change[] = [];
    const end = Math.min(this.head, after + batchScan);
    let frontier = Math.max(after, emptyRevision);
    while (frontier < end && changes.length < batchChanges) {
      const version = this.#history.get(++frontier);
      if (version !== undefined && range.covers(version.ordered)) changes.push(version.change(prevValue));
    }
    return { changes, frontier };
  }

  /** Raises the compacted revision. Older history is unreadable immediately and removed by {@link drop}. */
  compact(upTo: Revision): void {
    this.#compacted = Math.max(this.#compacted, upTo);
  }

  /** Raises the compacted revision by at most `steps` over versions that `expired` accepts, oldest first. */
  compactWhile(steps: number, expired: (version: Version) => boolean): void {
    for (let i = 0; i < steps; i++) {
      const version = this.#history.get(Math.max(this.#compacted + 1, this.#history.first));
      if (version === undefined || !expired(version)) return;
      this.#compacted = version.revision;
    }
  }

  /** Drops at most `steps` versions at or below the compacted revision; returns true when more remain. */
  drop(steps: number): boolean {
    for (let i = 0; i < steps && this.#history.first <= this.#compacted; i++) {
      const version = this.#history.shift();
      if (version === undefined) return false;
      version.leaveHistory();
      // A key whose newest version is a delete exists only for history.
      if (version.entry === undefined && this.#index.get(version.ordered) === version)
        this.#index.delete(version.ordered);
    }
    return this.#history.first <= this.#compacted && this.retained > 0;
  }

  get oldest(): Version | undefined {
    return this.#history.get(this.#history.first);
  }
}

function entryAt(version: Version | undefined, revision: Revision): Entry | undefined {
  while (version !== undefined && version.revision > revision) version = version.before;
  return version?.entry;
}
