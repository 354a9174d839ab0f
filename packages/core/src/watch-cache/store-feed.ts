import { isStorageError, StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import { addAbortListener, removeAbortListener } from '../meta/abort-listeners.ts';
import { type Clock, pause } from '../runtime/clock.ts';
import type { Logger } from '../runtime/logger.ts';
import type { ObjectSource } from '../storage/storage-memory.ts';
import {
  type Key,
  prefixRange,
  type Revision,
  type Store,
  type StoreIdentity,
  type WatchBatch,
  type WatchStream,
} from '../storage/store.ts';
import { futureRevisionWaitMs, throwIfAborted } from '../storage/store-helpers.ts';
import { StoredObject } from '../storage/stored-object.ts';
import type { Incoming, KindCache, KindFeed } from './kind-cache.ts';
import type { WaitingWatch, WatchView } from './watch-scopes.ts';

const firstPauseMs = 50;
const longestPauseMs = 5_000;
/** All keys of resources begin with a slash. */
const everything = prefixRange('/');

/**
 * The one stream of changes of a store, which fills the caches of all kinds. After a failure it resumes at its
 * position. When that is impossible, every cache is reset and every watch ends with the error, so that no change is
 * missed silently.
 */
export class StoreFeed implements KindFeed {
  readonly #store: Store;
  readonly #source: ObjectSource;
  readonly #clock: Clock;
  readonly #logger: Logger | undefined;
  readonly #caches = new Map<string, KindCache>();
  readonly #waiters: FrontierWaiters;
  readonly #wakeQueue: WakeQueue;
  readonly #contiguous: boolean;
  readonly #stopping = new AbortController();
  /** Objects written by this process that the stream has not delivered yet. */
  readonly #own = new Map<Revision, StoredObject>();
  #frontier: Revision = 0;
  #advancing: Revision = 0;
  #identity: StoreIdentity | undefined;
  #stream: WatchStream | undefined;
  #running: Promise<void> | undefined;

  constructor(store: Store, source: ObjectSource, clock: Clock, logger: Logger | undefined) {
    this.#store = store;
    this.#source = source;
    this.#clock = clock;
    this.#logger = logger?.child({ component: 'watch-cache' });
    this.#waiters = new FrontierWaiters(clock);
    this.#wakeQueue = new WakeQueue(clock, (err) => this.#logger?.error('the reader of a watch failed', { err }));
    this.#contiguous = store.capabilities.denseRevisions && store.capabilities.oneChangePerRevision;
  }

  get frontier(): Revision {
    return this.#frontier;
  }

  /** False while the stream is interrupted. */
  get connected(): boolean {
    return this.#stream !== undefined;
  }

  get started(): boolean {
    return this.#running !== undefined && !this.#stopping.signal.aborted;
  }

  attach(cache: KindCache): void {
    this.#caches.set(cache.prefix, cache);
  }

  detach(cache: KindCache): void {
    if (this.#caches.get(cache.prefix) === cache) this.#caches.delete(cache.prefix);
  }

  async start(): Promise<void> {
    if (this.#running !== undefined) return;
    this.#running = this.#run(await this.#first());
  }

  async stop(): Promise<void> {
    if (!this.#stopping.signal.aborted) {
      this.#stopping.abort();
      this.#resetAll(new StorageError(StorageErrorCode.Closed, 'the watch cache was stopped'));
      await this.#stream?.close();
    }
    await this.#running;
  }

  /** Resolves with true when the caches have all changes up to the revision, with false after three seconds. */
  async waitFor(revision: Revision, signal?: AbortSignal): Promise<boolean> {
    if (this.#frontier >= revision) return true;
    if (this.#stream !== undefined) this.#advance(this.#stream, revision);
    const reached = await this.#waiters.wait(revision, futureRevisionWaitMs, signal);
    throwIfAborted(signal);
    return reached;
  }

  /**
   * Accepts a write of this process that the store has acknowledged. When no other change can be between it and the
   * frontier, it is delivered at once, so that its writer and its watches do not wait for the stream.
   */
  offer(change: Incoming): void {
    if (change.revision <= this.#frontier || !this.started) return;
    if (this.#contiguous && change.revision === this.#frontier + 1) this.#route([change], change.revision);
    else if (change.object !== undefined && this.#cacheOf(change.key) !== undefined)
      this.#own.set(change.revision, change.object);
  }

  #advance(stream: WatchStream, revision: Revision): void {
    if (revision <= this.#advancing) return;
    this.#advancing = revision;
    // The result arrives as a batch; a failure ends the stream.
    stream.advanceTo(revision).catch(() => {});
  }

  async #begin(): Promise<void> {
    const identity = await this.#store.identity();
    const frontier = await this.#store.currentRevision();
    this.#identity = identity;
    this.#frontier = frontier;
    this.#own.clear();
  }

  /** When compaction overtakes the first read of the revision, it is read again. */
  async #first(): Promise<WatchStream> {
    for (;;) {
      await this.#begin();
      try {
        return await this.#open();
      } catch (error) {
        if (!isStorageError(error, 'Compacted')) throw error;
      }
    }
  }

  async #open(): Promise<WatchStream> {
    const identity = await this.#store.identity();
    if (identity.storeId !== this.#identity?.storeId || identity.epoch !== this.#identity.epoch) {
      throw new StorageError(StorageErrorCode.EpochChanged, 'the store was replaced or restored');
    }
    const stream = await this.#store.watch(everything, { after: this.#frontier });
    this.#advancing = 0;
    this.#stream = stream;
    // Readers that began to wait while there was no stream have not requested an advance yet.
    if (this.#waiters.highest > this.#frontier) this.#advance(stream, this.#waiters.highest);
    return stream;
  }

  async #run(first: WatchStream): Promise<void> {
    let stream: WatchStream | undefined = first;
    let pauseMs = firstPauseMs;
    while (!this.#stopping.signal.aborted) {
      try {
        stream ??= await this.#open();
        for await (const batch of stream) {
          this.#accept(batch);
          pauseMs = firstPauseMs;
        }
        throw new StorageError(StorageErrorCode.Closed, 'the store was closed');
      } catch (error) {
        this.#stream = undefined;
        if (this.#stopping.signal.aborted) return;
        await stream?.close().catch(() => {});
        stream = undefined;
        if (isStorageError(error, 'Closed')) {
          this.#resetAll(error);
          return;
        }
        this.#logger?.warn('the watch of the store failed and is resumed', { err: error });
        if (await this.#isLost(error)) continue;
        await pause(this.#clock, pauseMs, this.#stopping.signal);
        pauseMs = Math.min(pauseMs * 2, longestPauseMs);
      }
    }
  }

  /**
   * When the error means that the stream cannot be resumed: resets all caches and reads the revision and identity of
   * the store again. Returns whether this was necessary and has succeeded.
   */
  async #isLost(error: unknown): Promise<boolean> {
    if (!isStorageError(error, 'Compacted') && !isStorageError(error, 'EpochChanged')) return false;
    // A write of this process reaches the caches before the stream delivers it. When the compacted revision is not
    // above the frontier of the caches, they have missed no change, and a new stream starts at the frontier.
    if (error.code === StorageErrorCode.Compacted && error.revision !== undefined && error.revision <= this.#frontier)
      return false;
    this.#resetAll(error);
    try {
      await this.#begin();
      // Caches that were loaded in the meantime may lack changes up to the new frontier.
      this.#resetAll(error);
      this.#waiters.reached(this.#frontier);
      return true;
    } catch (err) {
      // The frontier is still the old one: the next attempt to open the stream ends here again.
      this.#logger?.warn('the store cannot be read', { err });
      return false;
    }
  }

  /** Resets and detaches all caches. A cache attaches itself when it is loaded again. */
  #resetAll(error: StorageError): void {
    const caches = [...this.#caches.values()];
    this.#caches.clear();
    for (const cache of caches) cache.reset(error);
  }

  #accept(batch: WatchBatch): void {
    const changes: Incoming[] = [];
    for (const { revision, key, entry } of batch.changes) {
      if (revision <= this.#frontier || this.#cacheOf(key) === undefined) continue;
      const own = this.#own.size > 0 ? this.#own.get(revision) : undefined;
      changes.push({
        revision,
        key,
        object: entry === undefined ? undefined : (own ?? StoredObject.fromEntry(entry, this.#source)),
      });
    }
    if (batch.frontier > this.#frontier) this.#route(changes, batch.frontier);
  }

  #route(changes: readonly Incoming[], frontier: Revision): void {
    const touched: WatchView[] = [];
    for (const change of changes) this.#cacheOf(change.key)?.receive(change, touched);
    this.#frontier = frontier;
    if (this.#own.size > 0) {
      for (const revision of this.#own.keys()) if (revision <= frontier) this.#own.delete(revision);
    }
    this.#waiters.reached(frontier);
    for (const view of touched) this.#wakeQueue.add(view.takeWaiting());
    this.#wakeQueue.flush();
  }

  /** The cache of the kind that a key `/group/plural/...` belongs to. */
  #cacheOf(key: Key): KindCache | undefined {
    const plural = key.indexOf('/', 1);
    const end = plural === -1 ? -1 : key.indexOf('/', plural + 1);
    return end === -1 ? undefined : this.#caches.get(key.slice(0, end + 1));
  }
}

interface Waiter {
  readonly revision: Revision;
  readonly settle: (reached: boolean) => void;
}

/** Reads that wait until a revision has been reached, each with a timeout. */
export class FrontierWaiters {
  readonly #clock: Clock;
  #waiters: Waiter[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves with true when {@link reached} is called with the revision, with false after the timeout or an abort. */
  wait(revision: Revision, timeoutMs: number, signal?: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const waiter: Waiter = {
        revision,
        settle: (reached) => {
          cancel();
          removeAbortListener(signal, expire);
          resolve(reached);
        },
      };
      const expire = () => {
        this.#waiters = this.#waiters.filter((other) => other !== waiter);
        waiter.settle(false);
      };
      const cancel = this.#clock.after(timeoutMs, expire);
      addAbortListener(signal, expire);
      this.#waiters.push(waiter);
    });
  }

  /** The greatest revision that a read waits for; 0 without waiting reads. */
  get highest(): Revision {
    return this.#waiters.reduce((highest, { revision }) => Math.max(highest, revision), 0);
  }

  reached(revision: Revision): void {
    if (this.#waiters.length === 0) return;
    const ready = this.#waiters.filter((waiter) => waiter.revision <= revision);
    if (ready.length === 0) return;
    this.#waiters = this.#waiters.filter((waiter) => waiter.revision > revision);
    for (const waiter of ready) waiter.settle(true);
  }
}

/** Longest time of waking watches before other work of the process gets its turn. */
const sliceMs = 2;
const checkEvery = 64;

/** Wakes watches in time slices: as many as one slice allows at once, the others in later turns of the event loop. */
export class WakeQueue {
  readonly #clock: Clock;
  readonly #onError: (error: unknown) => void;
  #watches: WaitingWatch[] = [];
  #scheduled = false;

  /** @param onError receives the error of a reader that throws; the other readers are not affected. */
  constructor(clock: Clock, onError: (error: unknown) => void) {
    this.#clock = clock;
    this.#onError = onError;
  }

  add(watches: readonly WaitingWatch[]): void {
    if (this.#watches.length === 0) this.#watches = watches as WaitingWatch[];
    else this.#watches = this.#watches.concat(watches);
  }

  flush(): void {
    if (!this.#scheduled && this.#watches.length > 0) this.#run();
  }

  #run(): void {
    const watches = this.#watches;
    this.#watches = [];
    const start = this.#clock.monotonic();
    for (let i = 0; i < watches.length; i++) {
      try {
        (watches[i] as WaitingWatch).wakeIfReadable();
      } catch (error) {
        this.#onError(error);
      }
      if (i % checkEvery === checkEvery - 1 && this.#clock.monotonic() - start > sliceMs) {
        this.#watches = watches.slice(i + 1).concat(this.#watches);
        break;
      }
    }
    if (this.#watches.length === 0) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#run();
    });
  }
}
