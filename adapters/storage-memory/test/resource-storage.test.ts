import { type ResourceStorageHarness, registerResourceStorageConformance } from '@keelson/conformance';
import { createCachedStorages, createDirectStorages } from '@keelson/core';
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

registerResourceStorageConformance(test, direct);
registerResourceStorageConformance(test, cached);
