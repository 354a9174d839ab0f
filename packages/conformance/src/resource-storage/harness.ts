import type { ResourceStorage, ResourceStorages } from '@keelson/core/internal';
import type { Clock, FakeClock } from '@keelson/core/runtime';
import type { Store } from '@keelson/core/storage-adapter';
import type { OpenedStore, StoreHarness, StoreRequirement } from '../store/harness.ts';
import type { ConformanceCase } from '../suite/conformance-suite.ts';
import type { ControlledStore } from './controlled-store.ts';

/** Access of the suite to an implementation of `ResourceStorage` on a store. */
export interface ResourceStorageHarness<O extends OpenedStore = OpenedStore> {
  /** Part of every test title. */
  readonly name: string;
  readonly stores: StoreHarness<O>;
  /** Creates storages on an open store; all time comes from the clock. */
  storages(store: Store, clock: Clock): ResourceStorages;
  /** Present when the storages keep events in memory: creates storages that keep `events` events of each kind. */
  narrow?(store: Store, clock: Clock, events: number): ResourceStorages;
}

/** `cache`: the case tests behaviour of a cache. */
export type ResourceStorageRequirement = 'cache' | Extract<StoreRequirement, 'advance' | 'denseRevisions'>;

/** The context of a running case. */
export interface ResourceStorageContext {
  /** The storages under test, started. */
  readonly storages: ResourceStorages;
  /** A namespaced kind under test. */
  readonly pods: ResourceStorage;
  /** A cluster-scoped kind under test. */
  readonly nodes: ResourceStorage;
  /** The same pods as used by another process: bypasses the storages under test and the faults. */
  readonly others: ResourceStorage;
  /** The store of the storages, into which faults can be injected. */
  readonly store: ControlledStore;
  /** The clock of the storages. */
  readonly clock: FakeClock;
  readonly cached: boolean;
  readonly seed: number;
  /** Starts storages with a small window on the same store. Caches only. */
  narrow(events: number): Promise<ResourceStorages>;
  /** Advances the clock of the store. */
  advance(ms: number): Promise<void>;
  log(message: string): void;
}

/** One statement about every implementation of `ResourceStorage`. */
export type ResourceStorageCase = ConformanceCase<ResourceStorageContext, ResourceStorageRequirement>;

/** Returns the requirements of a case that a harness does not meet. */
export function missingResourceStorageRequirements(
  harness: ResourceStorageHarness,
  resourceCase: ResourceStorageCase,
): ResourceStorageRequirement[] {
  return (resourceCase.requires ?? []).filter((need) => {
    if (need === 'cache') return harness.narrow === undefined;
    if (need === 'advance') return harness.stores.advance === undefined;
    return !harness.stores.capabilities.denseRevisions;
  });
}
