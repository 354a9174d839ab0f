import type { Change, Entry, Key, OrderedRange, Revision, WatchBatch } from '@keelson/core/storage-adapter';
import { orderedForm } from '@keelson/core/storage-adapter';
import type { Environment } from './environment.ts';
import { corrupt, decodeCommit, historyEnd, historyKey, keyOfHistory, readRevision, revisionKey } from './records.ts';

const batchChanges = 256;
const batchBytes = 4 * 1024 * 1024;
/** Changes that are read for one batch of a narrow range. */
const batchScan = 4096;

/** The position at which a scan continues: after or at `key`. */
export interface ScanPosition {
  readonly key: Buffer;
  readonly exclusive: boolean;
}

export interface ScanStep {
  readonly entries: readonly Entry[];
  /** Undefined at the end of the range. */
  readonly next: ScanPosition | undefined;
}

/**
 * Reads states and changes of old revisions from the current rows and from the rows that changes have replaced. Every
 * method reads synchronously, thus within one snapshot, and keeps no transaction open.
 */
export class HistoryReader {
  readonly #env: Environment;

  constructor(env: Environment) {
    this.#env = env;
  }

  entryAt(key: Key, revision: Revision): Entry | undefined {
    const bytes = Buffer.from(key);
    const row = this.#env.obj.getBinary(bytes);
    return row === undefined ? this.#replacedEntry(bytes, revision) : this.#entryAsOf(bytes, row, revision);
  }

  /**
   * Returns the entries at `revision` in the next piece of `[position, end)`, of at most `size` keys.
   * @param changed whether the snapshot may contain deletes after `revision`
   */
  scan(position: ScanPosition, end: Buffer, revision: Revision, size: number, changed: boolean): ScanStep {
    const start = position.key;
    if (Buffer.compare(start, end) >= 0) return { entries: [], next: undefined };
    const { rows, full } = this.#rows(position, end, size);
    let bound = full ? rows.at(-1)?.key : undefined;
    let states = rows.map(({ key, value }) => ({
      key,
      entry: this.#entryAsOf(key, value, revision),
    }));
    if (changed) {
      const deleted = this.#changedKeys(position, bound === undefined ? end : historyEnd(bound), size);
      if (deleted.bound !== undefined && (bound === undefined || Buffer.compare(deleted.bound, bound) < 0)) {
        bound = deleted.bound;
        const limit = bound;
        states = states.filter(({ key }) => Buffer.compare(key, limit) <= 0);
      }
      const living = new Set(states.map(({ key }) => key.toString('latin1')));
      for (const key of deleted.keys) {
        if (!living.has(key.toString('latin1'))) states.push({ key, entry: this.#replacedEntry(key, revision) });
      }
      states.sort((a, b) => Buffer.compare(a.key, b.key));
    }
    const entries = states.flatMap(({ entry }) => (entry === undefined ? [] : [entry]));
    return { entries, next: bound === undefined ? undefined : { key: bound, exclusive: true } };
  }

  /**
   * Returns the state at `revision` of a key with a current row. The revision of a damaged row is unreliable, so a
   * damaged entry is always returned.
   */
  #entryAsOf(key: Buffer, row: Buffer, revision: Revision): Entry | undefined {
    const { entry } = this.#env.decode(key.toString(), row);
    return entry.damaged || entry.modRevision <= revision ? entry : this.#replacedEntry(key, revision);
  }

  /** Returns a bounded batch of the changes in `(after, head]`. */
  changes(after: Revision, head: Revision, range: OrderedRange, prevValue: boolean): WatchBatch {
    const changes: Change[] = [];
    let frontier = after;
    let bytes = 0;
    let scanned = 0;
    for (const commit of this.#commitsFrom(after + 1)) {
      for (const [i, logged] of commit.changes.entries()) {
        const revision = commit.first + i;
        if (revision <= after) continue;
        if (revision > head || changes.length >= batchChanges || bytes >= batchBytes || scanned >= batchScan) {
          return { changes, frontier };
        }
        frontier = revision;
        scanned++;
        const key = logged.key.toString();
        if (!range.covers(orderedForm(key))) continue;
        const entry = logged.type === 'delete' ? undefined : this.#writtenAt(logged.key, key, revision);
        const change: Change = { type: logged.type, revision, key, entry };
        bytes += entry?.value.byteLength ?? 0;
        if (!prevValue || logged.type === 'create') {
          changes.push(change);
          continue;
        }
        const prev = this.#replacedBy(logged.key, key, revision);
        bytes += prev.value.byteLength;
        changes.push({ ...change, prev });
      }
    }
    return { changes, frontier };
  }

  /** Returns at most `size` rows and about `batchBytes`; `full` when more rows may follow. */
  #rows(position: ScanPosition, end: Buffer, size: number): { rows: { key: Buffer; value: Buffer }[]; full: boolean } {
    const options = { end, limit: size, exclusiveStart: position.exclusive };
    const rows: { key: Buffer; value: Buffer }[] = [];
    let bytes = 0;
    const { key: start } = position;
    for (const row of this.#env.obj.getRange(start.byteLength === 0 ? options : { ...options, start })) {
      rows.push(row);
      bytes += row.value.byteLength;
      if (bytes >= batchBytes) return { rows, full: true };
    }
    return { rows, full: rows.length === size };
  }

  *#commitsFrom(revision: Revision) {
    let start = revisionKey(revision);
    // The commit that contains the revision begins at or before it.
    for (const key of this.#env.log.getKeys({ start, reverse: true, limit: 1 })) start = key;
    for (const { key, value } of this.#env.log.getRange({ start, limit: batchScan + 1 })) {
      yield { first: readRevision(key), changes: decodeCommit(value) };
    }
  }

  /** Returns the entry that a put at `revision` wrote: the current row, or the row that the next change replaced. */
  #writtenAt(bytes: Buffer, key: Key, revision: Revision): Entry {
    const row = this.#env.obj.getBinary(bytes);
    const current = row === undefined ? undefined : this.#env.decode(key, row).entry;
    if (current?.modRevision === revision) return current;
    const replaced = this.#firstReplaced(bytes, revision);
    // The revision in a damaged row is unreliable. The position of the row shows that a put at `revision` wrote it.
    const entry = replaced === undefined ? current : this.#env.decode(key, replaced).entry;
    if (entry?.damaged) return { ...entry, modRevision: revision };
    if (entry?.modRevision === revision) return entry;
    throw corrupt(`the value of ${JSON.stringify(key)} at revision ${revision} is missing`);
  }

  #replacedBy(bytes: Buffer, key: Key, revision: Revision): Entry {
    const row = this.#env.hist.getBinary(historyKey(bytes, revision));
    if (row === undefined) throw corrupt(`the value of ${JSON.stringify(key)} before revision ${revision} is missing`);
    return this.#env.decode(key, row).entry;
  }

  /** Returns the state at `revision` of a key that was changed later. */
  #replacedEntry(bytes: Buffer, revision: Revision): Entry | undefined {
    const row = this.#firstReplaced(bytes, revision);
    if (row === undefined) return undefined;
    const { entry } = this.#env.decode(bytes.toString(), row);
    return entry.damaged || entry.modRevision <= revision ? entry : undefined;
  }

  #firstReplaced(bytes: Buffer, after: Revision): Buffer | undefined {
    const range = { start: historyKey(bytes, after + 1), end: historyEnd(bytes), limit: 1 };
    for (const { value } of this.#env.hist.getRange(range)) return value;
    return undefined;
  }

  /** Returns at most `size` keys with history in the range; `bound` is the last key when more may follow. */
  #changedKeys(position: ScanPosition, end: Buffer, size: number): { keys: Buffer[]; bound: Buffer | undefined } {
    const keys: Buffer[] = [];
    let start = position.exclusive ? historyEnd(position.key) : position.key;
    while (keys.length < size) {
      let found: Buffer | undefined;
      const range = { end, limit: 1 };
      for (const key of this.#env.hist.getKeys(start.byteLength === 0 ? range : { ...range, start }))
        found = keyOfHistory(key);
      if (found === undefined) return { keys, bound: undefined };
      keys.push(found);
      start = historyEnd(found);
    }
    return { keys, bound: keys.at(-1) };
  }
}
