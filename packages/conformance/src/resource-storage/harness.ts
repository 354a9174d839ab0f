import type { Clock, FakeClock, ResourceStorage, ResourceStorages, Store } from '@keelson/core';
import type { OpenedStore, StoreHarness, StoreRequirement } from '../store/harness.ts';
import type { ConformanceCase } from '../suite/conformance-suite.ts';
import type { ControlledStore } from './controlled-store.ts';

/** How the suite gets at an implementation of `ResourceStorage` over some store. */
export interface ResourceStorageHarness<O extends OpenedStore = OpenedStore> {
  /** Part of every test title. */
  readonly name: string;
  readonly stores: StoreHarness<O>;
  /** Storages over a store that is open; all time comes from the clock. */
  storages(store: Store, clock: Clock): ResourceStorages;
  /** Present when the storages keep events in memory: the same with room for so many events of each kind. */
  narrow?(store: Store, clock: Clock, events: number): ResourceStorages;
}

/** `cache`: the case is about what a cache does beyond reading the store. */
export type ResourceStorageRequirement = 'cache' | Extract<StoreRequirement, 'advance' | 'denseRevisions'>;

/** What a running case has at hand. */
export interface ResourceStorageContext {
  /** The storages under test, started. */
  readonly storages: ResourceStorages;
  /** A namespaced kind under test. */
  readonly pods: ResourceStorage;
  /** A cluster-scoped kind under test. */
  readonly nodes: ResourceStorage;
  /** The same pods as another process sees and changes them: past the storages under test, and past the faults. */
  readonly others: ResourceStorage;
  /** The store under the storages, with faults to order. */
  readonly store: ControlledStore;
  /** The clock of the storages. */
  readonly clock: FakeClock;
  readonly cached: boolean;
  readonly seed: number;
  /** Storages with a small window over the same store, started. Caches only. */
  narrow(events: number): Promise<ResourceStorages>;
  /** Moves the clock of the store. */
  advance(ms: number): Promise<void>;
  log(message: string): void;
}

/** One statement about every implementation of `ResourceStorage`. */
export type ResourceStorageCase = ConformanceCase<ResourceStorageContext, ResourceStorageRequirement>;

/** The requirements of a case that a harness does not meet. */
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
