import { frozenStore, type ResourceStorageHarness, registerResourceStorageConformance } from '@keelson/conformance';
import { createCachedStorages, createDirectStorages } from '@keelson/core/internal';
import test from 'ava';
import { memoryHarness, type OpenedMemory } from './support/memory-harness.ts';

const direct: ResourceStorageHarness<OpenedMemory> = {
  name: 'direct on memory',
  stores: memoryHarness('memory'),
  storages: (store, clock) => createDirectStorages({ store, clock }),
};

const cached: ResourceStorageHarness<OpenedMemory> = {
  name: 'cached on memory',
  stores: memoryHarness('memory'),
  storages: (store, clock) => createCachedStorages({ store, clock }),
  narrow: (store, clock, events) => createCachedStorages({ store, clock, window: { maxEvents: events } }),
};

/** Detects a cache that modifies values returned by the store. */
const frozen: ResourceStorageHarness<OpenedMemory> = {
  ...cached,
  name: 'cached on frozen memory',
  stores: memoryHarness('frozen memory', (memory) => {
    const { store, verify } = frozenStore(memory);
    return { store, check: verify };
  }),
};

registerResourceStorageConformance(test.serial, direct);
registerResourceStorageConformance(test.serial, cached);
registerResourceStorageConformance(test.serial, frozen);
