import {
  type Change,
  type ChangeLog,
  checkNotCompacted,
  type Entry,
  type Key,
  type OrderedRange,
  type Revision,
  type WatchBatch,
} from '@keelson/core/storage-adapter';
import { OrderedMap } from './ordered-map.ts';

/**
 * One change of one key. The versions of a key form a chain to older ones, within the retained history; the newest is
 * in the index.
 */
export class Version {
  readonly key: Key;
  /** `key` in the form whose code-unit order is key order. */
  readonly ordered: string;
  readonly revision: Revision;
  /** The state from this revision on; undefined after a delete. */
  readonly entry: Entry | undefined;
  /** The version before; removed when this revision leaves history, since no read can reach it then. */
  before: Version | undefined;
  /** Monotonic time of the change, in milliseconds. */
  readonly at: number;
  #plain: Change | undefined;
  #full: Change | undefined;

  constructor(
    key: Key,
    ordered: string,
    revision: Revision,
    entry: Entry | undefined,
    before: Version | undefined,
    at: number,
  ) {
    this.key = key;
    this.ordered = ordered;
    this.revision = revision;
    this.entry = entry;
    this.before = before;
    this.at = at;
  }

  /** The change for watchers; one object is shared by all of them. */
  change(prevValue: boolean): Change {
    const prev = this.before?.entry;
    if (!prevValue || prev === undefined) {
      this.#plain ??= { type: this.#type(), revision: this.revision, key: this.key, entry: this.entry };
      return this.#plain;
    }
    this.#full ??= { type: this.#type(), revision: this.revision, key: this.key, entry: this.entry, prev };
    return this.#full;
  }

  /** Drops all references that only history needs. */
  leaveHistory(): void {
    this.before = undefined;
    this.#plain = undefined;
    this.#full = undefined;
  }

  #type(): Change['type'] {
    if (this.entry === undefined) return 'delete';
    return this.before?.entry === undefined ? 'create' : 'update';
  }
}

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
