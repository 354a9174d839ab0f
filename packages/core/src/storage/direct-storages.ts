import type { Clock } from '../runtime/clock.ts';
import { DirectStorage } from './direct-storage.ts';
import type { ResourceStorages } from './resource-storages.ts';
import { kindPrefix, storageKindOf } from './storage-key.ts';
import { StorageMemory } from './storage-memory.ts';
import type { Store } from './store.ts';

export interface DirectStoragesOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** Default: the default budgets, for these storages alone. */
  readonly memory?: StorageMemory;
}

/** The storages of all kinds directly on the store, without a watch cache. */
export function createDirectStorages(options: DirectStoragesOptions): ResourceStorages {
  const storages = new Map<string, DirectStorage>();
  const memory = options.memory ?? new StorageMemory(options.clock);
  let running = false;
  return {
    forKind(kind) {
      const prefix = kindPrefix(kind);
      let storage = storages.get(prefix);
      if (storage === undefined) {
        storage = new DirectStorage(options.store, options.clock, storageKindOf(kind), memory);
        storages.set(prefix, storage);
      }
      return storage;
    },
    ready: () => running,
    async start() {
      running = true;
    },
    async stop() {
      running = false;
      for (const storage of storages.values()) storage.stop();
    },
  };
}
