import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/logger.ts';
import type { Metrics } from '../runtime/metrics.ts';
import { kindPrefix, storageKindOf } from '../scope/storage-key.ts';
import { Coalesced } from '../storage/coalesced.ts';
import { DirectStorage } from '../storage/direct-storage.ts';
import type { ResourceStorages } from '../storage/resource-storages.ts';
import { StorageMemory } from '../storage/storage-memory.ts';
import type { Store } from '../storage/store.ts';
import { cacheMetricsOf } from './cache-metrics.ts';
import { CachedStorage } from './cached-storage.ts';
import { defaultWindowLimits, type WindowLimits } from './event-window.ts';
import { KindCache } from './kind-cache.ts';
import { StoreFeed } from './store-feed.ts';

export interface CachedStoragesOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly logger?: Logger;
  readonly metrics?: Metrics;
  /** How many events of each kind stay in memory; what is older comes from the store's history. */
  readonly window?: Partial<WindowLimits>;
  /** Budgets for derived data, which several stores may share. Default: the default budgets for this store alone. */
  readonly memory?: StorageMemory;
}

/** Every kind through the watch cache; a kind is read into memory at its first use. */
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
