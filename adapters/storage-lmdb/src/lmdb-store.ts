import { StorageError, StorageErrorCode } from '@keelson/core';
import { type Clock, type Logger, silentLogger, systemClock } from '@keelson/core/runtime';
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
  type WatchStream,
  type WriteOp,
  type WriteResult,
} from '@keelson/core/storage-adapter';
import type { ScanPosition } from './history-reader.ts';
import { OpenStore } from './open-store.ts';
import type { WriteOptions } from './write-settlement.ts';

export interface LmdbStoreOptions {
  /** Directory of the database; created when it does not exist. One process at a time may open it. */
  readonly path: string;
  readonly clock?: Clock;
  readonly logger?: Logger;
  /**
   * The history that readers and watchers of old revisions can use: at least `minChanges` changes and at least all
   * changes younger than `minAgeMs`. Default: 1000 changes and five minutes.
   */
  readonly history?: { readonly minChanges?: number; readonly minAgeMs?: number };
}

const scanKeys = 500;
/** Larger stores are counted in steps, so that other work runs in between. */
const countAtOnce = 100_000;
const nothing = new Uint8Array(0);

/**
 * A durable {@link Store} in one LMDB environment, for one process. A write is acknowledged, readable and watched when
 * it is on disk, never before. Writes that arrive while a commit runs share the next commit.
 */
export class LmdbStore implements Store {
  readonly capabilities: StoreCapabilities = {
    denseRevisions: true,
    oneChangePerRevision: true,
    multiWriter: false,
    durable: true,
    maxKeyBytes: 1024,
    maxValueBytes: 3 * 1024 * 1024,
  };
  readonly #options: LmdbStoreOptions;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #opened: OpenStore | undefined;
  #opening: Promise<void> | undefined;
  /** Set when another process has written to the store; every later call fails with it. */
  #fenced: StorageError | undefined;
  #reportFailure: (error: StorageError) => void = () => {};
  readonly failed = new Promise<StorageError>((resolve) => {
    this.#reportFailure = resolve;
  });
  #closing: Promise<void> | undefined;

  /** Opens nothing yet: see {@link ready}. */
  constructor(options: LmdbStoreOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#logger = (options.logger ?? silentLogger).child({ component: 'storage-lmdb' });
  }

  /**
   * @throws StorageError `Unavailable` when the directory is in use or cannot be opened, `Corrupt` when it contains no
   *   store or a damaged one
   */
  async ready(options: { readonly readOnly?: boolean } = {}): Promise<void> {
    if (this.#closing !== undefined) throw closed();
    this.#opening ??= this.#open(options.readOnly === true).finally(() => {
      this.#opening = undefined;
    });
    await this.#opening;
  }

  async identity(): Promise<StoreIdentity> {
    return this.#use().env.identity;
  }

  // Not `async`: that would cost one more promise per write.
  write(
    op: WriteOp,
    options: { readonly signal?: AbortSignal; readonly timeoutMs?: number } = {},
  ): Promise<WriteResult> {
    try {
      return this.#write(op, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #write(op: WriteOp, options: WriteOptions): Promise<WriteResult> {
    const { writer, sweeper, readOnly } = this.#use();
    if (readOnly) throw new StorageError(StorageErrorCode.Unavailable, 'the store is open for reading only');
    throwIfAborted(options.signal);
    checkWrite(op, this.capabilities);
    if (op.op === 'delete' || op.ttlMs === undefined) return writer.write(op, options);
    const expiresAt = Math.ceil(this.#clock.now() + op.ttlMs);
    return writer.write(op, options, expiresAt).then((result) => {
      if (result.ok) sweeper.note(expiresAt);
      return result;
    });
  }

  async get(
    key: Key,
    options: ReadOptions & { readonly revision?: Revision } = {},
  ): Promise<{ readonly entry: Entry | undefined; readonly revision: Revision }> {
    const { writer, history } = this.#use();
    const revision = this.#pin(options);
    checkKey(key);
    const entry = options.revision === undefined ? writer.get(key) : history.entryAt(key, revision);
    return { entry, revision };
  }

  async *list(
    range: KeyRange,
    options: ReadOptions & { readonly revision?: Revision; readonly limit?: number; readonly keysOnly?: boolean } = {},
  ): AsyncGenerator<ListChunk, void, undefined> {
    const revision = this.#pin(options);
    let left = options.limit || Number.POSITIVE_INFINITY;
    let previous: readonly Entry[] | undefined;
    for await (const found of this.#scan(range, revision, options.signal)) {
      const entries = options.keysOnly === true ? found.map((entry) => ({ ...entry, value: nothing })) : found;
      // Whether more entries follow a chunk is known when the next one was read.
      if (previous !== undefined) yield { entries: previous, revision, more: true };
      if (left === 0) return;
      previous = entries.slice(0, left);
      left -= previous.length;
      if (previous.length < entries.length) {
        yield { entries: previous, revision, more: true };
        return;
      }
    }
    yield { entries: previous ?? [], revision, more: false };
  }

  async count(
    range: KeyRange,
    options: ReadOptions & { readonly revision?: Revision } = {},
  ): Promise<{ readonly count: number; readonly exact: boolean; readonly revision: Revision }> {
    const { env, writer } = this.#use();
    const revision = this.#pin(options);
    const { start, end } = boundsOf(range);
    if (revision === writer.exposed && env.size() <= countAtOnce && Buffer.compare(start.key, end) < 0) {
      const from = start.key.byteLength === 0 ? { end } : { start: start.key, end };
      const all = env.obj.getKeysCount(from);
      const first = start.exclusive && env.obj.doesExist(start.key) ? 1 : 0;
      return { count: all - first, exact: true, revision };
    }
    let count = 0;
    for await (const entries of this.#scan(range, revision, options.signal)) count += entries.length;
    return { count, exact: true, revision };
  }

  async currentRevision(options: ReadOptions = {}): Promise<Revision> {
    this.#use();
    return this.#pin({ signal: options.signal });
  }

  async watch(
    range: KeyRange,
    options: { readonly after: Revision; readonly prevValue?: boolean; readonly signal?: AbortSignal },
  ): Promise<WatchStream> {
    const { hub, compactor } = this.#use();
    return hub.open(range, options, compactor.bound);
  }

  async compact(upTo: Revision): Promise<void> {
    const { compactor, writer } = this.#use();
    assertReached(upTo, writer.head);
    await compactor.raise(upTo);
  }

  async compactedRevision(): Promise<Revision> {
    return this.#use().compactor.bound;
  }

  async passOver(seen: Revision): Promise<void> {
    this.#opened = await this.#use().leapOver(seen);
  }

  /**
   * Resolves when no write, no expiry and no removal of old changes is running: for tests, and before files are copied.
   */
  async settled(): Promise<void> {
    await this.#use().settled();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #open(readOnly: boolean): Promise<void> {
    if (this.#opened !== undefined) return;
    const { path, history } = this.#options;
    this.#opened = await OpenStore.open({
      path,
      readOnly,
      clock: this.#clock,
      logger: this.#logger,
      window: { minChanges: history?.minChanges ?? 1000, minAgeMs: history?.minAgeMs ?? 300_000 },
      onFenced: (error) => this.#fence(error),
      throwIfClosed: () => {
        if (this.#closing !== undefined) throw closed();
      },
    });
  }

  /** Another process has written: what this process has cached of the store is no longer true. */
  #fence(error: StorageError): void {
    this.#fenced = error;
    this.#logger.error('another process has written to the store', { path: this.#options.path });
    this.#reportFailure(error);
  }

  async #close(): Promise<void> {
    await this.#opening?.catch(() => {});
    await this.#opened?.close();
    this.#opened = undefined;
  }

  /** Yields the state at `revision` in non-empty pieces in key order. Other work may run between two pieces. */
  async *#scan(
    range: KeyRange,
    revision: Revision,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<readonly Entry[], void, undefined> {
    const { start, end } = boundsOf(range);
    let position: ScanPosition | undefined = start;
    while (position !== undefined) {
      const { history, writer } = this.#use();
      this.#pin({ revision, signal });
      const step = history.scan(position, end, revision, scanKeys, writer.lastDelete > revision);
      position = step.next;
      if (step.entries.length > 0) yield step.entries;
      if (position !== undefined) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Returns the revision of a read: the requested one, which must be readable, or the newest. */
  #pin(options: { readonly revision?: Revision | undefined; readonly signal?: AbortSignal | undefined }): Revision {
    const { writer, compactor } = this.#use();
    throwIfAborted(options.signal);
    const { revision } = options;
    if (revision === undefined) return writer.head;
    assertReached(revision, writer.head);
    checkNotCompacted(revision, compactor.bound);
    return revision;
  }

  #use(): OpenStore {
    if (this.#closing !== undefined) throw closed();
    if (this.#fenced !== undefined) throw this.#fenced;
    if (this.#opened === undefined) throw new StorageError(StorageErrorCode.Unavailable, 'the store is not open yet');
    return this.#opened;
  }
}

function boundsOf(range: KeyRange): { readonly start: ScanPosition; readonly end: Buffer } {
  new OrderedRange(range);
  return {
    start: { key: Buffer.from(range.start), exclusive: range.startExclusive === true },
    end: Buffer.from(range.end),
  };
}

function assertReached(revision: Revision, current: Revision): void {
  if (revision <= current) return;
  throw new StorageError(
    StorageErrorCode.FutureRevision,
    `revision ${revision} has not been reached, the store is at ${current}`,
    {
      revision: current,
    },
  );
}

function closed(): StorageError {
  return new StorageError(StorageErrorCode.Closed, 'the store is closed');
}
