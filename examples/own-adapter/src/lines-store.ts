import { randomUUID } from 'node:crypto';
import { StorageError, StorageErrorCode } from '@keelson/core';
import { type Clock, systemClock } from '@keelson/core/runtime';
import {
  checkKey,
  checkNotCompacted,
  checkWrite,
  type Entry,
  type Key,
  type KeyRange,
  type ListChunk,
  OrderedRange,
  type ReadOptions,
  type Revision,
  type Store,
  type StoreCapabilities,
  type StoreIdentity,
  throwIfAborted,
  WatchHub,
  type WatchStream,
  type WriteOp,
  type WriteResult,
} from '@keelson/core/storage-adapter';
import { type ChangeLine, type Line, LineFile } from './line-file.ts';
import { type Version, VersionHistory } from './version-history.ts';

export interface LinesStoreOptions {
  readonly path: string;
  readonly clock?: Clock;
  readonly history?: { readonly minChanges?: number; readonly minAgeMs?: number };
}

interface Waiting {
  readonly op: WriteOp;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (result: WriteResult) => void;
  readonly reject: (error: unknown) => void;
}

type PinOptions = { readonly revision?: Revision | undefined; readonly signal?: AbortSignal | undefined };

/** Revision of an empty store. */
const emptyRevision = 1;
const chunkEntries = 1000;
const housekeepingMs = 30_000;
const nothing = new Uint8Array(0);

/** A {@link Store} in an append-only file, for one process at a time. All data is in memory too. */
export class LinesStore implements Store {
  readonly capabilities: StoreCapabilities = {
    denseRevisions: true,
    oneChangePerRevision: true,
    multiWriter: false,
    durable: true,
    maxKeyBytes: 1024,
    maxValueBytes: 3 * 1024 * 1024,
  };
  readonly #clock: Clock;
  readonly #minChanges: number;
  readonly #minAgeMs: number;
  readonly #file: LineFile;
  #identity: StoreIdentity = { storeId: '', epoch: 1 };
  #history = new VersionHistory(emptyRevision);
  #hub = new WatchHub(this.#history);
  #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;
  /** Expiry times by key. */
  readonly #expiries = new Map<Key, Entry>();
  #cancelTimer: () => void = () => {};
  #opening: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  /** Set when the file could not be written, so that the end of its content is unknown. */
  #broken: StorageError | undefined;

  constructor({ path, clock = systemClock, history = {} }: LinesStoreOptions) {
    this.#clock = clock;
    this.#minChanges = history.minChanges ?? 1000;
    this.#minAgeMs = history.minAgeMs ?? 300_000;
    this.#file = new LineFile(path);
  }

  /** Reads the file and rewrites it without obsolete lines. */
  ready(): Promise<void> {
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  async #open(): Promise<void> {
    const found = await this.#file.read();
    const header = found?.header ?? { storeId: randomUUID(), epoch: 1, head: emptyRevision, compacted: emptyRevision };
    this.#identity = { storeId: header.storeId, epoch: header.epoch };
    this.#history = new VersionHistory(header.compacted);
    this.#hub = new WatchHub(this.#history);
    for (const line of found?.lines ?? []) {
      if ('k' in line) this.#apply(line);
      else this.#history.compact(line.compacted);
    }
    const { head, compacted } = this.#history;
    await this.#file.rewrite({ ...this.#identity, head, compacted }, [...this.#history.versions()].map(lineOf));
    this.#housekeeping();
  }

  async identity(): Promise<StoreIdentity> {
    this.#pin();
    return this.#identity;
  }

  write(op: WriteOp, { signal }: { readonly signal?: AbortSignal } = {}): Promise<WriteResult> {
    return new Promise((resolve, reject) => {
      this.#pin({ signal });
      checkWrite(op, this.capabilities);
      this.#waiting.push({ op, signal, resolve, reject });
      this.#writing ??= this.#writeAll();
    });
  }

  async get(key: Key, options: ReadOptions & { readonly revision?: Revision } = {}) {
    const revision = this.#pin(options);
    checkKey(key);
    return { entry: this.#history.at(key, revision), revision };
  }

  async *list(
    range: KeyRange,
    options: ReadOptions & { readonly revision?: Revision; readonly limit?: number; readonly keysOnly?: boolean } = {},
  ): AsyncGenerator<ListChunk, void, undefined> {
    const revision = this.#pin(options);
    let rest = new OrderedRange(range);
    let left = options.limit || Number.POSITIVE_INFINITY;
    for (let more = true; more && left > 0; ) {
      this.#pin({ ...options, revision });
      const size = Math.min(chunkEntries, left);
      const entries: Entry[] = [];
      more = false;
      this.#history.scan(rest, revision, (entry) => {
        more = entries.length === size;
        if (!more) entries.push(options.keysOnly === true ? { ...entry, value: nothing } : entry);
        return !more;
      });
      yield { entries, revision, more };
      left -= entries.length;
      const last = entries.at(-1);
      if (last !== undefined) rest = new OrderedRange({ start: last.key, startExclusive: true, end: range.end });
    }
  }

  async count(range: KeyRange, options: ReadOptions & { readonly revision?: Revision } = {}) {
    const revision = this.#pin(options);
    let count = 0;
    this.#history.scan(new OrderedRange(range), revision, () => {
      count += 1;
      return true;
    });
    return { count, exact: true, revision };
  }

  async currentRevision(options: ReadOptions = {}): Promise<Revision> {
    return this.#pin(options);
  }

  async watch(
    range: KeyRange,
    options: { readonly after: Revision; readonly prevValue?: boolean; readonly signal?: AbortSignal },
  ): Promise<WatchStream> {
    this.#pin({ signal: options.signal });
    return this.#hub.open(range, options, this.#history.compacted);
  }

  async compact(upTo: Revision): Promise<void> {
    this.#pin();
    this.#assertReached(upTo);
    this.#history.compact(upTo);
    // After the running writes, so that the lines of the file are in the order of the events.
    await this.#writing;
    await this.#append([{ compacted: this.#history.compacted }]);
  }

  async compactedRevision(): Promise<Revision> {
    this.#pin();
    return this.#history.compacted;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Resolves when no write is running. */
  async settled(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  async #close(): Promise<void> {
    this.#cancelTimer();
    await this.settled();
    this.#hub.close();
    await this.#file.close();
  }

  /** Writes that arrive while others wait for the disk share one flush. */
  async #writeAll(): Promise<void> {
    // Writes of the same turn of the event loop share the batch.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      await this.#writeBatch(batch);
    }
    this.#writing = undefined;
  }

  async #writeBatch(batch: readonly Waiting[]): Promise<void> {
    const lines = new Map<Key, ChangeLine>();
    const all: ChangeLine[] = [];
    const answers: (() => void)[] = [];
    for (const { op, signal, resolve, reject } of batch) {
      if (signal?.aborted) {
        reject(new StorageError(StorageErrorCode.Timeout, 'the call was aborted', { cause: signal.reason }));
        continue;
      }
      const changed = lines.get(op.key);
      const current = changed === undefined ? this.#history.newest(op.key) : entryOf(changed);
      const head = this.#history.head + all.length;
      if ((current?.modRevision ?? 0) !== op.expect || (op.op === 'delete' && current === undefined)) {
        answers.push(() => resolve({ ok: false, current, revision: head }));
        continue;
      }
      const line = lineFor(op, head + 1, current?.createRevision ?? head + 1, this.#clock.now());
      lines.set(op.key, line);
      all.push(line);
      answers.push(() => resolve({ ok: true, revision: line.r, createRevision: line.c }));
    }
    try {
      if (all.length > 0) await this.#append(all);
    } catch (error) {
      for (const { reject } of batch) reject(error);
      return;
    }
    for (const line of all) this.#apply(line);
    for (const answer of answers) answer();
    this.#hub.wake();
  }

  async #append(lines: readonly Line[]): Promise<void> {
    if (this.#broken !== undefined) throw this.#broken;
    try {
      await this.#file.append(lines);
    } catch (cause) {
      this.#broken = new StorageError(StorageErrorCode.Unavailable, 'the file could not be written before', { cause });
      throw new StorageError(StorageErrorCode.OutcomeUnknown, 'the file could not be written', { cause });
    }
  }

  #apply(line: ChangeLine): void {
    const entry = entryOf(line);
    this.#history.apply({ key: line.k, revision: line.r, entry, at: line.t });
    if (entry?.expiresAt === undefined) this.#expiries.delete(line.k);
    else {
      this.#expiries.set(line.k, entry);
      this.#wakeAt(entry.expiresAt);
    }
  }

  /**
   * Drops history outside the window and deletes expired keys, then waits until more work is due.
   */
  #housekeeping(): void {
    const now = this.#clock.now();
    this.#history.compact(this.#history.expendable(this.#minChanges, now - this.#minAgeMs));
    let next = now + housekeepingMs;
    for (const [key, { expiresAt = 0, modRevision }] of this.#expiries) {
      if (expiresAt > now) next = Math.min(next, expiresAt);
      // When the key was put in the meantime, the expectation fails and the key stays.
      else this.write({ op: 'delete', key, expect: modRevision }).catch(() => {});
    }
    this.#timerAt = Number.POSITIVE_INFINITY;
    this.#wakeAt(next);
  }

  #timerAt = Number.POSITIVE_INFINITY;

  #wakeAt(time: number): void {
    if (time >= this.#timerAt || this.#closing !== undefined) return;
    this.#cancelTimer();
    this.#timerAt = time;
    this.#cancelTimer = this.#clock.after(Math.max(time - this.#clock.now(), 0), () => this.#housekeeping());
  }

  /** Returns the revision of a read: the requested one, which must be readable, or the newest. */
  #pin({ revision, signal }: PinOptions = {}): Revision {
    if (this.#closing !== undefined) throw new StorageError(StorageErrorCode.Closed, 'the store is closed');
    throwIfAborted(signal);
    if (revision === undefined) return this.#history.head;
    this.#assertReached(revision);
    checkNotCompacted(revision, this.#history.compacted);
    return revision;
  }

  #assertReached(revision: Revision): void {
    const { head } = this.#history;
    if (revision <= head) return;
    throw new StorageError(StorageErrorCode.FutureRevision, `revision ${revision} is not reached`, { revision: head });
  }
}

function lineFor(op: WriteOp, revision: Revision, createRevision: Revision, now: number): ChangeLine {
  const line = { r: revision, k: op.key, c: createRevision, t: now };
  if (op.op === 'delete') return line;
  const value = Buffer.from(op.value.buffer, op.value.byteOffset, op.value.byteLength).toString('base64');
  return { ...line, v: value, ...(op.ttlMs === undefined ? {} : { x: now + op.ttlMs }) };
}

function entryOf({ r, k, c, v, x }: ChangeLine): Entry | undefined {
  if (v === undefined) return undefined;
  const entry = { key: k, value: Buffer.from(v, 'base64'), createRevision: c, modRevision: r };
  return x === undefined ? entry : { ...entry, expiresAt: x };
}

function lineOf({ key, revision, entry, at }: Version): ChangeLine {
  const line = { r: revision, k: key, c: entry?.createRevision ?? revision, t: at };
  if (entry === undefined) return line;
  const value = Buffer.from(entry.value).toString('base64');
  return { ...line, v: value, ...(entry.expiresAt === undefined ? {} : { x: entry.expiresAt }) };
}
