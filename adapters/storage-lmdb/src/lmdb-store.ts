import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  type ChangeLog,
  type Clock,
  checkKey,
  checkNotCompacted,
  type Entry,
  type Key,
  type KeyRange,
  type ListChunk,
  type Logger,
  makePrivateDirectory,
  OrderedRange,
  type ReadOptions,
  type Revision,
  StorageError,
  StorageErrorCode,
  type Store,
  type StoreCapabilities,
  type StoreIdentity,
  silentLogger,
  systemClock,
  throwIfAborted,
  WatchHub,
  type WatchStream,
  type WriteOp,
  type WriteResult,
} from '@keelson/core';
import { checkPages } from './check-pages.ts';
import { Compactor } from './compactor.ts';
import { DirectoryLock } from './directory-lock.ts';
import { DiskReserve, isDiskFull } from './disk-reserve.ts';
import { Environment } from './environment.ts';
import { ExpirySweeper } from './expiry-sweeper.ts';
import { GroupWriter, type PendingWrite } from './group-writer.ts';
import { Past, type ScanPosition } from './past.ts';
import { RecentChanges } from './recent-changes.ts';
import { corrupt } from './records.ts';
import type { Patience } from './settlement.ts';

export interface LmdbStoreOptions {
  /** Directory of the database; made when it does not exist. One process at a time may open it. */
  readonly path: string;
  readonly clock?: Clock;
  readonly logger?: Logger;
  /**
   * What is kept for readers and watchers of the past: both hold, so whichever keeps more. Default 1000, five minutes.
   */
  readonly history?: { readonly minChanges?: number; readonly minAgeMs?: number };
}

const scanKeys = 500;
/** Up to this many keys are counted in one go. */
const countAtOnce = 100_000;
const nothing = new Uint8Array(0);

/** What exists between `ready` and `close`. */
interface Opened {
  readonly readOnly: boolean;
  readonly lock: DirectoryLock;
  readonly env: Environment;
  readonly writer: GroupWriter;
  readonly past: Past;
  readonly recent: RecentChanges;
  readonly hub: WatchHub;
  readonly compactor: Compactor;
  readonly sweeper: ExpirySweeper;
  /** Absent where nothing is written. */
  readonly reserve: DiskReserve | undefined;
}

/**
 * A durable {@link Store} in one LMDB environment, for one process. A write is acknowledged, visible and watched when
 * it is on disk, never before; writes that arrive while a commit runs share the next one.
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
  #opened: Opened | undefined;
  #opening: Promise<void> | undefined;
  /** Another process wrote: nothing is read or written any more. */
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
   * @throws StorageError `Unavailable` when the directory is in use or cannot be opened, `Corrupt` when it is not ours.
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

  // Not `async`: one promise less for every write.
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

  #write(op: WriteOp, options: Patience): Promise<WriteResult> {
    const { writer, sweeper, readOnly } = this.#use();
    if (readOnly)
      throw new StorageError(StorageErrorCode.Unavailable, 'the store was opened to be checked, not to be written');
    throwIfAborted(options.signal);
    checkKey(op.key);
    if (op.op === 'delete') return writer.write(op, options);
    const limit = this.capabilities.maxValueBytes;
    if (op.value.byteLength > limit) {
      throw new StorageError(
        StorageErrorCode.TooLarge,
        `a value has at most ${limit} bytes, got ${op.value.byteLength}`,
        {
          key: op.key,
        },
      );
    }
    if (op.ttlMs === undefined) return writer.write(op, options);
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
    const { writer, past } = this.#use();
    const revision = this.#pin(options);
    checkKey(key);
    const entry = options.revision === undefined ? writer.get(key) : past.entryAt(key, revision);
    return { entry, revision };
  }

  async *list(
    range: KeyRange,
    options: ReadOptions & { readonly revision?: Revision; readonly limit?: number; readonly keysOnly?: boolean } = {},
  ): AsyncGenerator<ListChunk, void, undefined> {
    const revision = this.#pin(options);
    let left = options.limit || Number.POSITIVE_INFINITY;
    let held: readonly Entry[] | undefined;
    for await (const found of this.#scan(range, revision, options.signal)) {
      const entries = options.keysOnly === true ? found.map((entry) => ({ ...entry, value: nothing })) : found;
      // Only the entries after a chunk tell whether more follow it.
      if (held !== undefined) yield { entries: held, revision, more: true };
      if (left === 0) return;
      held = entries.slice(0, left);
      left -= held.length;
      if (held.length < entries.length) {
        yield { entries: held, revision, more: true };
        return;
      }
    }
    yield { entries: held ?? [], revision, more: false };
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
    const { env, lock, writer, compactor, sweeper, hub, reserve } = this.#use();
    reserve?.stop();
    await sweeper.stop();
    await writer.drained();
    await compactor.stop();
    hub.close();
    await env.leapOver(seen);
    this.#opened = this.#begin(env, lock);
  }

  /** Resolves when no write, expiry or removal of old changes is under way: for tests, and before files are copied. */
  async settled(): Promise<void> {
    const { writer, compactor, sweeper } = this.#use();
    await sweeper.settled();
    await compactor.settled();
    await writer.drained();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #open(readOnly: boolean): Promise<void> {
    if (this.#opened !== undefined) return;
    try {
      await this.#openOnce(readOnly);
    } catch (error) {
      if (readOnly || !isDiskFull(error) || !DiskReserve.giveUp(this.#options.path)) throw error;
      await this.#openOnce(readOnly);
    }
  }

  async #openOnce(readOnly: boolean): Promise<void> {
    const { path } = this.#options;
    let lock: DirectoryLock | undefined;
    try {
      if (readOnly) requireStore(path);
      else makePrivateDirectory(path, this.#logger);
      lock = await DirectoryLock.acquire(path, this.#logger);
      if (this.#closing !== undefined) throw closed();
      await this.#check(join(path, 'data.mdb'));
      const env = new Environment(path, this.#logger, readOnly);
      env.onFenced = (error) => this.#fence(error);
      this.#opened = this.#begin(env, lock, readOnly);
    } catch (error) {
      lock?.release();
      if (error instanceof StorageError) throw error;
      const text = error instanceof Error ? error.message : String(error);
      throw new StorageError(StorageErrorCode.Unavailable, `the store in ${path} cannot be opened: ${text}`, {
        cause: error,
      });
    }
  }

  /** @throws StorageError `Corrupt` when pages of the file are damaged. */
  async #check(file: string): Promise<void> {
    const damages = await checkPages(file, () => this.#closing !== undefined);
    if (this.#closing !== undefined) throw closed();
    if (damages.length === 0) return;
    throw corrupt(`${file} is damaged and cannot be used; restore a back-up. Found: ${damages.join('; ')}`);
  }

  /** Ends every watch and refuses every call: what this process knows of the store is no longer true. */
  #fence(error: StorageError): void {
    this.#fenced = error;
    this.#logger.error('another process has written to the store', { path: this.#options.path });
    this.#opened?.hub.close();
    this.#reportFailure(error);
  }

  /** What works on an environment, from where it is. */
  #begin(env: Environment, lock: DirectoryLock, readOnly = false): Opened {
    const { history } = this.#options;
    const recent = new RecentChanges(env.head());
    const past = new Past(env);
    const reserve = readOnly ? undefined : this.#reserve(env);
    const writer = new GroupWriter(env, { committed: (writes) => this.#committed(writes) }, this.#clock, reserve);
    const window = { minChanges: history?.minChanges ?? 1000, minAgeMs: history?.minAgeMs ?? 300_000 };
    const compactor = new Compactor(env, this.#clock, this.#logger, window, () => writer.head, readOnly);
    const hub = new WatchHub(changeLog(recent, past, compactor));
    const expire = (key: Key, revision: Revision) => writer.write({ op: 'delete', key, expect: revision }, {});
    const sweeper = new ExpirySweeper(env, this.#clock, this.#logger, expire, readOnly);
    return { readOnly, lock, env, writer, past, recent, hub, compactor, sweeper, reserve };
  }

  #reserve(env: Environment): DiskReserve {
    // While the disk is full no history is kept: its pages are what deletes and, at last, new objects need.
    const shrink = () => {
      const { compactor, writer } = this.#opened ?? {};
      if (compactor === undefined || writer === undefined) return;
      compactor
        .raise(writer.head)
        .catch((err: unknown) => this.#logger.warn('history cannot be compacted now', { err }));
    };
    const reserve = new DiskReserve(this.#options.path, this.#clock, this.#logger, () => env.freeBytes(), shrink);
    reserve.begin();
    return reserve;
  }

  /** Everything that follows from a commit, before its callers hear of it. */
  #committed(writes: readonly PendingWrite[]): void {
    if (this.#opened === undefined) return;
    const { recent, compactor, hub } = this.#opened;
    for (const { type, revision, key, before, after } of writes)
      recent.push(type, revision, key, after?.entry, before?.entry);
    compactor.noteWrites();
    hub.wake();
  }

  async #close(): Promise<void> {
    await this.#opening?.catch(() => {});
    const opened = this.#opened;
    if (opened === undefined) return;
    opened.reserve?.stop();
    await opened.sweeper.stop();
    await opened.writer.drained();
    await opened.compactor.stop();
    opened.hub.close();
    this.#opened = undefined;
    try {
      await opened.env.close();
    } finally {
      opened.lock.release();
    }
  }

  /** Non-empty pieces of the state at `revision`, in key order, with a turn for others between them. */
  async *#scan(
    range: KeyRange,
    revision: Revision,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<readonly Entry[], void, undefined> {
    const { start, end } = boundsOf(range);
    let position: ScanPosition | undefined = start;
    while (position !== undefined) {
      const { past, writer } = this.#use();
      this.#pin({ revision, signal });
      const step = past.scan(position, end, revision, scanKeys, writer.lastDelete > revision);
      position = step.next;
      if (step.entries.length > 0) yield step.entries;
      if (position !== undefined) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** The revision that a read is about: the one asked for, which must be readable, or the newest. */
  #pin(options: { readonly revision?: Revision | undefined; readonly signal?: AbortSignal | undefined }): Revision {
    const { writer, compactor } = this.#use();
    throwIfAborted(options.signal);
    const { revision } = options;
    if (revision === undefined) return writer.head;
    assertReached(revision, writer.head);
    checkNotCompacted(revision, compactor.bound);
    return revision;
  }

  #use(): Opened {
    if (this.#closing !== undefined) throw closed();
    if (this.#fenced !== undefined) throw this.#fenced;
    if (this.#opened === undefined) throw new StorageError(StorageErrorCode.Unavailable, 'the store is not open yet');
    return this.#opened;
  }
}

function changeLog(recent: RecentChanges, past: Past, compactor: Compactor): ChangeLog {
  return {
    get head() {
      return recent.head;
    },
    read(after, range, prevValue) {
      checkNotCompacted(after, compactor.bound);
      if (after >= recent.after) return recent.read(after, range, prevValue);
      return past.changes(Math.max(after, 1), recent.head, range, prevValue);
    },
  };
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
    `revision ${revision} is not reached, the store is at ${current}`,
    {
      revision: current,
    },
  );
}

function requireStore(path: string): void {
  if (existsSync(join(path, 'data.mdb'))) return;
  throw new StorageError(StorageErrorCode.Unavailable, `there is no store in ${path}`);
}

function closed(): StorageError {
  return new StorageError(StorageErrorCode.Closed, 'the store is closed');
}
