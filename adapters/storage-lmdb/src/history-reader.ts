import type { Change, Entry, Key, OrderedRange, Revision, WatchBatch } from '@keelson/core';
import { orderedForm } from '@keelson/core';
import type { Environment } from './environment.ts';
import { corrupt, decodeCommit, historyEnd, historyKey, keyOfHistory, readRevision, revisionKey } from './records.ts';

const batchChanges = 256;
const batchBytes = 4 * 1024 * 1024;
/** Changes looked at for one batch of a narrow range. */
const batchScan = 4096;

/** Where a scan goes on: after or at `key`. */
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
 * The states and changes of the past, out of the current rows and the rows that changes replaced. Every method reads
 * within one turn, thus within one snapshot, and keeps nothing open.
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
   * Entries as they were at `revision` in the next piece of `[position, end)`, of at most `size` keys. `changed` says
   * whether the snapshot may hold deletes that came after `revision`.
   */
  scan(position: ScanPosition, end: Buffer, revision: Revision, size: number, changed: boolean): ScanStep {
    const start = position.key;
    if (Buffer.compare(start, end) >= 0) return { entries: [], next: undefined };
    const { rows, full } = this.#rows(position, end, size);
    let bound = full ? rows.at(-1)?.key : undefined;
    let found = rows.map(({ key, value }) => ({
      key,
      entry: this.#entryAsOf(key, value, revision),
    }));
    if (changed) {
      const gone = this.#changedKeys(position, bound === undefined ? end : historyEnd(bound), size);
      if (gone.bound !== undefined && (bound === undefined || Buffer.compare(gone.bound, bound) < 0)) {
        bound = gone.bound;
        const limit = bound;
        found = found.filter(({ key }) => Buffer.compare(key, limit) <= 0);
      }
      const living = new Set(found.map(({ key }) => key.toString('latin1')));
      for (const key of gone.keys) {
        if (!living.has(key.toString('latin1'))) found.push({ key, entry: this.#replacedEntry(key, revision) });
      }
      found.sort((a, b) => Buffer.compare(a.key, b.key));
    }
    const entries = found.flatMap(({ entry }) => (entry === undefined ? [] : [entry]));
    return { entries, next: bound === undefined ? undefined : { key: bound, exclusive: true } };
  }

  /**
   * The entry of a current row as it was at `revision`. A damaged one does not tell since when it is as it is, so it is
   * always shown.
   */
  #entryAsOf(key: Buffer, row: Buffer, revision: Revision): Entry | undefined {
    const { entry } = this.#env.decode(key.toString(), row);
    return entry.damaged || entry.modRevision <= revision ? entry : this.#replacedEntry(key, revision);
  }

  /** A bounded piece of the changes in `(after, head]`. */
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

  /** At most `size` rows and not many bytes; `full` when there may be more. */
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

  /** The entry that a put at `revision` wrote: still the current one, or what the next change of the key replaced. */
  #writtenAt(bytes: Buffer, key: Key, revision: Revision): Entry {
    const row = this.#env.obj.getBinary(bytes);
    const current = row === undefined ? undefined : this.#env.decode(key, row).entry;
    if (current?.modRevision === revision) return current;
    const replaced = this.#firstReplaced(bytes, revision);
    // A damaged row does not tell its revision; it is the one in this place.
    const entry = replaced === undefined ? current : this.#env.decode(key, replaced).entry;
    if (entry?.damaged) return { ...entry, modRevision: revision };
    if (entry?.modRevision === revision) return entry;
    throw corrupt(`the value of ${JSON.stringify(key)} at revision ${revision} is missing`);
  }

  #replacedBy(bytes: Buffer, key: Key, revision: Revision): Entry {
    const row = this.#env.hist.getBinary(historyKey(bytes, revision));
    if (row === undefined) throw corrupt(`what ${JSON.stringify(key)} was before revision ${revision} is missing`);
    return this.#env.decode(key, row).entry;
  }

  /** The state at `revision` of a key that has changed since. */
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

  /** Keys with history in the range, at most `size`; `bound` is the last one when there may be more. */
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
