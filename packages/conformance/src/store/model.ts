import type { Change, Entry, Key, KeyRange, Revision, WriteOp } from '@keelson/core/storage-adapter';

/** An entry whose value is latin1 text, so that it compares by value. */
export interface PlainEntry {
  readonly key: Key;
  readonly value: string;
  readonly createRevision: Revision;
  readonly modRevision: Revision;
}

/** A change of a store as the model records it. */
export interface PlainChange {
  readonly type: Change['type'];
  readonly revision: Revision;
  readonly key: Key;
  readonly entry: PlainEntry | undefined;
  readonly prev: PlainEntry | undefined;
}

export function plainEntry(entry: Entry): PlainEntry {
  const { key, value, createRevision, modRevision } = entry;
  return { key, value: Buffer.from(value).toString('latin1'), createRevision, modRevision };
}

export function plainChange(change: Change): PlainChange {
  const { type, revision, key, entry, prev } = change;
  return { type, revision, key, entry: entry && plainEntry(entry), prev: prev && plainEntry(prev) };
}

/** Compares the bytes of keys, independently of the key order of any store. */
export function byteOrder(a: Key, b: Key): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

export function inRange(range: KeyRange, key: Key): boolean {
  const fromStart = byteOrder(key, range.start);
  return (range.startExclusive === true ? fromStart > 0 : fromStart >= 0) && byteOrder(key, range.end) < 0;
}

/** The expected results of a store, derived from the list of successful writes by brute force. */
export class StoreModel {
  readonly changes: PlainChange[] = [];
  readonly #live = new Map<Key, PlainEntry>();
  readonly #emptyRevision: Revision;

  constructor(emptyRevision: Revision) {
    this.#emptyRevision = emptyRevision;
  }

  get revision(): Revision {
    return this.changes.at(-1)?.revision ?? this.#emptyRevision;
  }

  current(key: Key): PlainEntry | undefined {
    return this.#live.get(key);
  }

  /** Returns whether a write with this expectation must succeed now. */
  accepts(op: WriteOp): boolean {
    const current = this.#live.get(op.key);
    return (current?.modRevision ?? 0) === op.expect && !(op.op === 'delete' && current === undefined);
  }

  /** Records a write that succeeded with `revision`. */
  apply(op: WriteOp, revision: Revision): void {
    if (revision <= this.revision) throw new Error(`revision ${revision} was returned after ${this.revision}`);
    if (!this.accepts(op)) throw new Error(`a write of ${op.key} expecting ${op.expect} succeeded`);
    const prev = this.#live.get(op.key);
    let entry: PlainEntry | undefined;
    if (op.op === 'put') {
      const value = Buffer.from(op.value).toString('latin1');
      entry = { key: op.key, value, createRevision: prev?.createRevision ?? revision, modRevision: revision };
      this.#live.set(op.key, entry);
    } else {
      this.#live.delete(op.key);
    }
    const type = entry === undefined ? 'delete' : prev === undefined ? 'create' : 'update';
    this.changes.push({ type, revision, key: op.key, entry, prev });
  }

  /** Returns the entries in range at `revision`, in key order. */
  list(range: KeyRange, revision: Revision): PlainEntry[] {
    const state = new Map<Key, PlainEntry>();
    for (const change of this.changes) {
      if (change.revision > revision) break;
      if (!inRange(range, change.key)) continue;
      if (change.entry === undefined) state.delete(change.key);
      else state.set(change.key, change.entry);
    }
    return [...state.values()].sort((a, b) => byteOrder(a.key, b.key));
  }

  changesAfter(after: Revision, range: KeyRange): PlainChange[] {
    return this.changes.filter((change) => change.revision > after && inRange(range, change.key));
  }
}
