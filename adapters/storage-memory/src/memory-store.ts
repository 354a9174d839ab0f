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
  orderedForm,
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
import { Expirer } from './expirer.ts';
import { VersionedState } from './versioned-state.ts';

/** The history that readers and watchers of old revisions can use; both bounds apply. */
export interface HistoryOptions {
  /** Number of changes that are kept at least. Default 1000. */
  readonly minChanges?: number;
  /** Changes younger than this many milliseconds are kept. Default five minutes. */
  readonly minAgeMs?: number;
}

export interface MemoryStoreOptions {
  readonly clock?: Clock;
  readonly history?: HistoryOptions;
}

const chunkEntries = 1000;
/** Versions that are dropped per write: more than one, so that a backlog shrinks while writes continue. */
const trimPerWrite = 4;
const trimPerTurn = 10_000;
const nothing = new Uint8Array(0);

/**
 * The reference semantics of a {@link Store}, in memory, lost when the process ends. A write is applied synchronously
 * within the call. Values are shared, never copied.
 */
export class MemoryStore implements Store {
  readonly capabilities: StoreCapabilities = {
    denseRevisions: true,
    oneChangePerRevision: true,
    multiWriter: false,
    durable: false,
    sharedValues: true,
    maxKeyBytes: 1024,
    maxValueBytes: 3 * 1024 * 1024,
  };
  readonly #clock: Clock;
  readonly #minChanges: number;
  readonly #minAgeMs: number;
  readonly #identity: StoreIdentity = { storeId: randomUUID(), epoch: 1 };
  readonly #state = new VersionedState();
  readonly #hub = new WatchHub(this.#state);
  readonly #expirer: Expirer;
  #closed = false;
  #cancelTrim: (() => void) | undefined;

  constructor(options: MemoryStoreOptions = {}) {
    this.#clock = options.clock ?? systemClock;
    this.#minChanges = options.history?.minChanges ?? 1000;
    this.#minAgeMs = options.history?.minAgeMs ?? 300_000;
    this.#expirer = new Expirer(this.#clock, (ordered, revision) => {
      const entry = this.#state.current(ordered);
      if (entry?.modRevision === revision) this.#apply(entry.key, ordered, undefined);
    });
  }

  async ready(): Promise<void> {
    this.#assertOpen();
  }

  async identity(): Promise<StoreIdentity> {
    this.#assertOpen();
    return this.#identity;
  }

  async write(op: WriteOp, options: { readonly signal?: AbortSignal } = {}): Promise<WriteResult> {
    this.#assertOpen();
    throwIfAborted(options.signal);
    checkWrite(op, this.capabilities);
    const ordered = orderedForm(op.key);
    const current = this.#state.current(ordered);
    if ((current?.modRevision ?? 0) !== op.expect || (op.op === 'delete' && current === undefined)) {
      return { ok: false, current, revision: this.#state.head };
    }
    const revision = this.#state.head + 1;
    if (op.op === 'delete') {
      this.#apply(op.key, ordered, undefined);
      return { ok: true, revision, createRevision: current?.createRevision ?? revision };
    }
    const createRevision = current?.createRevision ?? revision;
    const entry: Entry = { key: op.key, value: op.value, createRevision, modRevision: revision };
    if (op.ttlMs === undefined) {
      this.#apply(op.key, ordered, entry);
    } else {
      const expiresAt = this.#clock.now() + op.ttlMs;
      this.#apply(op.key, ordered, { ...entry, expiresAt });
      this.#expirer.add({ at: expiresAt, ordered, revision });
    }
    return { ok: true, revision, createRevision };
  }

  async get(
    key: Key,
    options: ReadOptions & { readonly revision?: Revision } = {},
  ): Promise<{ readonly entry: Entry | undefined; readonly revision: Revision }> {
    const revision = this.#pin(options);
    checkKey(key);
    return { entry: this.#state.at(orderedForm(key), revision), revision };
  }

  async *list(
    range: KeyRange,
    options: ReadOptions & { readonly revision?: Revision; readonly limit?: number; readonly keysOnly?: boolean } = {},
  ): AsyncGenerator<ListChunk, void, undefined> {
    const revision = this.#pin(options);
    let rest = new OrderedRange(range);
    let left = options.limit || Number.POSITIVE_INFINITY;
    for (let more = true; more; ) {
      this.#pin({ ...options, revision });
      const size = Math.min(chunkEntries, left);
      const entries: Entry[] = [];
      more = false;
      this.#state.scan(rest, revision, (entry) => {
        more = entries.length === size;
        if (!more) entries.push(options.keysOnly === true ? { ...entry, value: nothing } : entry);
        return !more;
      });
      yield { entries, revision, more };
      left -= entries.length;
      const last = entries.at(-1);
      if (last === undefined || left <= 0) return;
      if (more) rest = new OrderedRange({ start: last.key, startExclusive: true, end: range.end });
    }
  }

  async count(
    range: KeyRange,
    options: ReadOptions & { readonly revision?: Revision } = {},
  ): Promise<{ readonly count: number; readonly exact: boolean; readonly revision: Revision }> {
    const revision = this.#pin(options);
    let count = 0;
    this.#state.scan(new OrderedRange(range), revision, () => {
      count++;
      return true;
    });
    return { count, exact: true, revision };
  }

  async currentRevision(options: ReadOptions = {}): Promise<Revision> {
    return this.#pin({ signal: options.signal });
  }

  async watch(
    range: KeyRange,
    options: { readonly after: Revision; readonly prevValue?: boolean; readonly signal?: AbortSignal },
  ): Promise<WatchStream> {
    return this.#hub.open(range, options, this.#state.compacted);
  }

  async compact(upTo: Revision): Promise<void> {
    this.#assertOpen();
    this.#assertReached(upTo);
    this.#state.compact(upTo);
    while (this.#state.drop(trimPerTurn)) await new Promise((resolve) => setImmediate(resolve));
  }

  async compactedRevision(): Promise<Revision> {
    this.#assertOpen();
    return this.#state.compacted;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#expirer.stop();
    this.#cancelTrim?.();
    this.#cancelTrim = undefined;
    this.#hub.close();
  }

  #apply(key: Key, ordered: string, entry: Entry | undefined): void {
    const now = this.#clock.monotonic();
    this.#state.apply(key, ordered, entry, now);
    this.#trim(trimPerWrite, now);
    this.#hub.wake();
  }

  /** Drops history outside the window. A timer continues when writes cease. */
  #trim(steps: number, now: number): void {
    const oldestByCount = this.#state.head - this.#minChanges;
    this.#state.compactWhile(steps, (v) => v.revision <= oldestByCount && v.at <= now - this.#minAgeMs);
    this.#state.drop(steps);
    if (this.#cancelTrim !== undefined || this.#state.retained <= this.#minChanges) return;
    const oldest = this.#state.oldest;
    const wait = oldest === undefined ? 0 : oldest.at + this.#minAgeMs - now;
    this.#cancelTrim = this.#clock.after(Math.max(wait, 10), () => {
      this.#cancelTrim = undefined;
      this.#trim(trimPerTurn, this.#clock.monotonic());
    });
  }

  /** Returns the revision of a read: the requested one, which must be readable, or the newest. */
  #pin(options: { readonly revision?: Revision | undefined; readonly signal?: AbortSignal | undefined }): Revision {
    this.#assertOpen();
    throwIfAborted(options.signal);
    const { revision } = options;
    if (revision === undefined) return this.#state.head;
    this.#assertReached(revision);
    checkNotCompacted(revision, this.#state.compacted);
    return revision;
  }

  #assertReached(revision: Revision): void {
    const current = this.#state.head;
    if (revision <= current) return;
    throw new StorageError(
      StorageErrorCode.FutureRevision,
      `revision ${revision} has not been reached, the store is at ${current}`,
      {
        revision: current,
      },
    );
  }

  #assertOpen(): void {
    if (this.#closed) throw new StorageError(StorageErrorCode.Closed, 'the store is closed');
  }
}
