import {
  type Change,
  type ChangeLog,
  checkNotCompacted,
  type Entry,
  type OrderedRange,
  orderedForm,
  type WatchBatch,
} from '@keelson/core/storage-adapter';

/** One state of one key, and the previous one within the retained history. */
export interface Version {
  readonly key: string;
  readonly revision: number;
  /** Undefined after a delete. */
  readonly entry: Entry | undefined;
  readonly at: number;
  before: Version | undefined;
}

const batchChanges = 500;

/** The newest and the older states of all keys, in memory. All of them are also on the disk. */
export class VersionHistory implements ChangeLog {
  /** Newest versions by `orderedForm` of the key. */
  readonly #newest = new Map<string, Version>();
  readonly #keys: string[] = [];
  /** Changes above `compacted`, in order, without gaps. */
  #log: Version[] = [];
  compacted: number;

  constructor(compacted: number) {
    this.compacted = compacted;
  }

  get head(): number {
    return this.compacted + this.#log.length;
  }

  newest(key: string): Entry | undefined {
    return this.#newest.get(orderedForm(key))?.entry;
  }

  at(key: string, revision: number): Entry | undefined {
    return entryAt(this.#newest.get(orderedForm(key)), revision);
  }

  /** Adds a version at or below the compacted revision unchanged, a newer one as the change after `head`. */
  apply(version: Omit<Version, 'before'>): void {
    const ordered = orderedForm(version.key);
    const before = this.#newest.get(ordered);
    const made: Version = { ...version, before };
    if (before === undefined) this.#keys.splice(this.#rank(ordered, false), 0, ordered);
    this.#newest.set(ordered, made);
    if (version.revision > this.compacted) this.#log.push(made);
  }

  /** Visits the entries of a range at a revision, in key order, until `visit` returns false. */
  scan(range: OrderedRange, revision: number, visit: (entry: Entry) => boolean): void {
    for (let i = this.#rank(range.start, range.startExclusive); i < this.#keys.length; i += 1) {
      const ordered = this.#keys[i] ?? '';
      if (ordered >= range.end) return;
      const entry = entryAt(this.#newest.get(ordered), revision);
      if (entry !== undefined && !visit(entry)) return;
    }
  }

  read(after: number, range: OrderedRange, prevValue: boolean): WatchBatch {
    checkNotCompacted(after, this.compacted);
    const changes: Change[] = [];
    let frontier = after;
    while (frontier < this.head && changes.length < batchChanges) {
      const version = this.#log[frontier - this.compacted];
      frontier += 1;
      if (version !== undefined && range.covers(orderedForm(version.key))) changes.push(changeOf(version, prevValue));
    }
    return { changes, frontier };
  }

  /** Raises the compacted revision, below which no state can be read. */
  compact(upTo: number): void {
    const gone = this.#log.slice(0, Math.max(0, upTo - this.compacted));
    this.#log = this.#log.slice(gone.length);
    this.compacted += gone.length;
    for (const version of gone) {
      version.before = undefined;
      const ordered = orderedForm(version.key);
      // A key whose newest state is a delete exists only for history.
      if (version.entry !== undefined || this.#newest.get(ordered) !== version) continue;
      this.#newest.delete(ordered);
      this.#keys.splice(this.#rank(ordered, false), 1);
    }
  }

  /** Returns the revision up to which changes are neither among the last `minChanges` nor younger than `since`. */
  expendable(minChanges: number, since: number): number {
    const spare = this.#log.length - minChanges;
    let count = 0;
    while (count < spare && (this.#log[count]?.at ?? since) < since) count += 1;
    return this.compacted + count;
  }

  /**
   * Yields all versions from which this object can be rebuilt: the states at the compacted revision, then the changes.
   */
  *versions(): Generator<Version> {
    const base = [...this.#newest.values()].map((version) => versionAt(version, this.compacted));
    const living = base.filter((version) => version?.entry !== undefined) as Version[];
    yield* living.sort((a, b) => a.revision - b.revision);
    yield* this.#log;
  }

  /** Returns the index of the first key at or after `ordered`, or strictly after it. */
  #rank(ordered: string, behind: boolean): number {
    let from = 0;
    let to = this.#keys.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      const key = this.#keys[middle] ?? '';
      if (key < ordered || (behind && key === ordered)) from = middle + 1;
      else to = middle;
    }
    return from;
  }
}

function versionAt(newest: Version | undefined, revision: number): Version | undefined {
  let version = newest;
  while (version !== undefined && version.revision > revision) version = version.before;
  return version;
}

function entryAt(newest: Version | undefined, revision: number): Entry | undefined {
  return versionAt(newest, revision)?.entry;
}

function changeOf({ key, revision, entry, before }: Version, prevValue: boolean): Change {
  const prev = before?.entry;
  const type = entry === undefined ? 'delete' : prev === undefined ? 'create' : 'update';
  return { type, revision, key, entry, ...(prevValue && type !== 'create' ? { prev } : {}) };
}
