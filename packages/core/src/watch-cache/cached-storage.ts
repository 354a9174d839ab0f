import { StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/logger.ts';
import type { Metrics } from '../runtime/metrics.ts';
import { DirectStorage } from '../storage/direct-storage.ts';
import { createStored, guaranteedUpdate, KeyTurns, type WriteObserver } from '../storage/guaranteed-update.ts';
import type {
  CachedReads,
  ReadPoint,
  ResourceStorage,
  ResourceWatch,
  StorageListOptions,
  StorageWatchOptions,
  StoredList,
  UpdateDecision,
  UpdateOutcome,
  WriteOptions,
} from '../storage/resource-storage.ts';
import type { ResourceStorages } from '../storage/resource-storages.ts';
import { kindPrefix, storageKindOf } from '../storage/storage-key.ts';
import { type ObjectSource, StorageMemory } from '../storage/storage-memory.ts';
import type { Key, Revision, Store } from '../storage/store.ts';
import { Coalesced, futureRevision, pinnedPoint, throwIfAborted } from '../storage/store-helpers.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import { defaultWindowLimits, type WindowLimits } from './event-window.ts';
import { KindCache, ranksOf } from './kind-cache.ts';
import type { IndexSnapshot } from './ordered-index.ts';
import { SnapshotList, selectedList } from './snapshot-list.ts';
import { StoreFeed } from './store-feed.ts';

interface CachedStorageParts {
  readonly store: Store;
  readonly source: ObjectSource;
  readonly clock: Clock;
  readonly feed: StoreFeed;
  /** The revision of the store, shared by concurrent consistent reads. */
  readonly currentRevision: Coalesced<Revision>;
  readonly cache: KindCache;
  /** The same objects read directly from the store, for states that the cache no longer has. */
  readonly direct: ResourceStorage;
}

const none: readonly StoredObject[] = [];

/**
 * The objects of one kind from the watch cache. Writes are sent to the store. Reads and watches use the store only for
 * states and changes that the cache no longer has.
 */
export class CachedStorage implements ResourceStorage {
  readonly #store: Store;
  readonly #source: ObjectSource;
  readonly #clock: Clock;
  readonly #feed: StoreFeed;
  readonly #currentRevision: Coalesced<Revision>;
  readonly #cache: KindCache;
  readonly #direct: ResourceStorage;
  readonly #observer: WriteObserver;
  readonly #turns: KeyTurns<UpdateOutcome>;
  readonly #cachedReads: CachedReads = {
    get: (key) => this.#index().get(key)?.readable(),
    list: (prefix) => {
      const index = this.#index();
      if (index.size === 0) return none;
      const state = index.snapshot();
      const { from, to } = ranksOf(state, prefix);
      return Array.from(state.items(from, to), (object) => object.readable());
    },
  };

  constructor(parts: CachedStorageParts) {
    this.#store = parts.store;
    this.#source = parts.source;
    this.#clock = parts.clock;
    this.#feed = parts.feed;
    this.#currentRevision = parts.currentRevision;
    this.#cache = parts.cache;
    this.#direct = parts.direct;
    this.#turns = new KeyTurns(parts.clock);
    const { feed, cache } = parts;
    this.#observer = {
      // A store inside the process often delivers the change before it acknowledges the write.
      known: (key, revision) => {
        const object = feed.frontier >= revision ? cache.index?.get(key) : undefined;
        return object?.revision === revision ? object : undefined;
      },
      written: (object) => feed.offer({ revision: object.revision, key: object.key, object }),
      deleted: (key, revision) => feed.offer({ revision, key, object: undefined }),
    };
  }

  create(key: Key, json: Buffer, options: WriteOptions = {}): Promise<StoredObject> {
    const { signal, ttlMs } = options;
    return createStored(
      { store: this.#store, source: this.#source, key, observer: this.#observer, signal },
      json,
      ttlMs,
    );
  }

  async get(
    key: Key,
    at: ReadPoint,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<StoredObject | undefined> {
    await this.#reach(at, options.signal);
    if (at.at !== 'exact') return this.#index().get(key)?.readable();
    const state = this.#cache.stateAt(at.revision);
    return state === undefined ? this.#direct.get(key, at, options) : state.get(key)?.readable();
  }

  async list(prefix: string, options: StorageListOptions): Promise<StoredList> {
    const at = pinnedPoint(options);
    await this.#reach(at, options.signal);
    if (at.at !== 'exact') return this.#page(this.#index().snapshot(), this.#cache.revision, prefix, options);
    const state = this.#cache.stateAt(at.revision);
    return state === undefined ? this.#direct.list(prefix, options) : this.#page(state, at.revision, prefix, options);
  }

  get cached(): CachedReads | undefined {
    return this.#cache.index === undefined || !this.#feed.started ? undefined : this.#cachedReads;
  }

  async watch(prefix: string, options: StorageWatchOptions): Promise<ResourceWatch> {
    const { from, predicate, signal } = options;
    if (from.start === 'changesAfter') {
      await this.#reach({ at: 'any' }, signal);
      return this.#cache.watchChanges(prefix, predicate, from.revision, signal);
    }
    if (from.fresh) await this.#reach({ at: 'latest' }, signal);
    if (from.notOlderThan !== undefined) await this.#reach({ at: 'notOlderThan', revision: from.notOlderThan }, signal);
    else await this.#reach({ at: 'any' }, signal);
    return this.#cache.watchState(prefix, predicate, from.endBookmark === true, signal);
  }

  update(
    key: Key,
    decide: (current: StoredObject | undefined) => UpdateDecision | Promise<UpdateDecision>,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<UpdateOutcome> {
    const { signal } = options;
    return this.#turns.run(key, signal, (previous) => {
      const suggestion = newer(this.#cache.index?.get(key), previous);
      return guaranteedUpdate({
        store: this.#store,
        source: this.#source,
        key,
        decide,
        suggestion,
        observer: this.#observer,
        signal,
      });
    });
  }

  currentRevision(): Promise<Revision> {
    return this.#currentRevision.get();
  }

  #index() {
    const { index } = this.#cache;
    if (index !== undefined) return index;
    throw new StorageError(StorageErrorCode.Unavailable, 'the watch cache is being rebuilt');
  }

  /** Resolves when the cache has reached the revision that the read requires; undefined when no wait is necessary. */
  #reach(at: ReadPoint, signal: AbortSignal | undefined): Promise<void> | undefined {
    throwIfAborted(signal);
    if (!this.#feed.started) throw new StorageError(StorageErrorCode.Unavailable, 'the watch cache is not running');
    return at.at === 'any' && this.#cache.index !== undefined ? undefined : this.#wait(at, signal);
  }

  async #wait(at: ReadPoint, signal: AbortSignal | undefined): Promise<void> {
    const required = at.at === 'latest' ? await this.#currentRevision.get() : at.at === 'any' ? 0 : at.revision;
    if (this.#cache.index === undefined) await this.#cache.load();
    if (this.#cache.revision >= required || (await this.#feed.waitFor(required, signal))) return;
    if (at.at !== 'latest') throw futureRevision(required, this.#cache.revision);
    throw new StorageError(StorageErrorCode.Timeout, `the cache did not reach revision ${required} in time`, {
      revision: this.#cache.revision,
    });
  }

  async #page(
    state: IndexSnapshot,
    revision: Revision,
    prefix: string,
    options: StorageListOptions,
  ): Promise<StoredList> {
    const { predicate, resume, limit = 0 } = options;
    const range = ranksOf(state, prefix, predicate);
    const from = resume === undefined ? range.from : Math.max(range.from, state.rankAfter(resume.after));
    const to = Math.max(from, range.to);
    let page: StoredList;
    if (predicate.everything) {
      const end = limit > 0 ? Math.min(to, from + limit) : to;
      page = new SnapshotList(state, revision, from, end, to - end);
      // A corrupt object must fail the list before its first byte is sent.
      if (state.corrupt > 0) for (const object of page.objects()) object.readable();
    } else page = await selectedList(state, revision, { from, to }, options, this.#clock);
    if (page.next !== undefined) this.#cache.remember(revision, state);
    return page;
  }
}

/** The object of the cache, or the result of the previous update when the cache has not received that yet. */
function newer(cached: StoredObject | undefined, update: UpdateOutcome | undefined): StoredObject | undefined {
  if (update === undefined || update.outcome === 'deleted') return cached;
  return cached === undefined || update.object.revision > cached.revision ? update.object : cached;
}

export interface CachedStoragesOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly logger?: Logger;
  readonly metrics?: Metrics;
  /** Bounds of the events that stay in memory for each kind; older events are read from the history of the store. */
  readonly window?: Partial<WindowLimits>;
  /** Budgets for derived data, which several stores may share. Default: the default budgets for this store alone. */
  readonly memory?: StorageMemory;
}

/** Storages of all kinds behind a watch cache. The objects of a kind are read into memory when it is first used. */
export function createCachedStorages(options: CachedStoragesOptions): ResourceStorages {
  const { store, clock, logger, metrics } = options;
  const limits: WindowLimits = { ...defaultWindowLimits, ...options.window };
  const windowTotal = { bytes: 0 };
  const memory = options.memory ?? new StorageMemory(clock);
  const source = { sharedValues: store.capabilities.sharedValues === true, memory };
  const feed = new StoreFeed(store, source, clock, logger);
  const currentRevision = new Coalesced(() => store.currentRevision());
  const storages = new Map<string, CachedStorage>();
  return {
    forKind(kind) {
      const prefix = kindPrefix(kind);
      let storage = storages.get(prefix);
      if (storage === undefined) {
        const stamp = storageKindOf(kind);
        const resource = stamp.group === '' ? stamp.names.plural : `${stamp.names.plural}.${stamp.group}`;
        const cache = new KindCache(
          { prefix, stamp, store, clock, limits, windowTotal, memory, metrics: cacheMetricsOf(metrics, resource) },
          feed,
        );
        storage = new CachedStorage({
          store,
          source,
          clock,
          feed,
          currentRevision,
          cache,
          direct: new DirectStorage(store, clock, stamp, memory),
        });
        storages.set(prefix, storage);
      }
      return storage;
    },
    ready: () => feed.started && feed.connected,
    start: () => feed.start(),
    stop: () => feed.stop(),
  };
}

/** Metrics of the cache of one kind. */
export interface CacheMetrics {
  /** Records an applied event and the number of objects after it. */
  applied(objects: number): void;
  objects(count: number): void;
  watchers(difference: number): void;
  /** Records a watch of changes that the window no longer contains. */
  leftWindow(): void;
}

const unrecorded: CacheMetrics = { applied: () => {}, objects: () => {}, watchers: () => {}, leftWindow: () => {} };

/** `resource` is `plural` or `plural.group`. */
export function cacheMetricsOf(metrics: Metrics | undefined, resource: string): CacheMetrics {
  if (metrics === undefined) return unrecorded;
  const labels = { resource };
  const events = metrics.counter({
    name: 'keelson_watch_cache_events_total',
    help: 'Changes applied to the watch cache',
    labels: ['resource'],
  });
  const objects = metrics.gauge({
    name: 'apiserver_storage_objects',
    help: 'Objects in the watch cache',
    labels: ['resource'],
  });
  const watchers = metrics.gauge({
    name: 'keelson_watch_cache_watchers',
    help: 'Watches that are open on the watch cache',
    labels: ['resource'],
  });
  const history = metrics.counter({
    name: 'keelson_watch_cache_history_reads_total',
    help: 'Watches that read the history of the store because their changes had left the window of the cache',
    labels: ['resource'],
  });
  let last = -1;
  const setObjects = (count: number) => {
    if (count === last) return;
    last = count;
    objects.set(count, labels);
  };
  return {
    applied(count) {
      events.add(1, labels);
      setObjects(count);
    },
    objects: setObjects,
    watchers: (difference) => watchers.add(difference, labels),
    leftWindow: () => history.add(1, labels),
  };
}
