import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/logger.ts';
import type { Metrics } from '../runtime/metrics.ts';
import { kindPrefix, storageKindOf } from '../scope/storage-key.ts';
import { Coalesced } from '../storage/coalesced.ts';
import { DirectStorage } from '../storage/direct-storage.ts';
import type { ResourceStorages } from '../storage/resource-storages.ts';
import { StorageMemory } from '../storage/storage-memory.ts';
import type { Store } from '../storage/store.ts';
import { CachedStorage } from './cached-storage.ts';
import { defaultWindowLimits, type WindowLimits } from './event-window.ts';
import { KindCache } from './kind-cache.ts';
import { StoreFeed } from './store-feed.ts';

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
    name: 'keelson_watch_cache_objects',
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
