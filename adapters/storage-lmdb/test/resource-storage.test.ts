import { type ResourceStorageHarness, registerResourceStorageConformance } from '@keelson/conformance';
import { createCachedStorages, createDirectStorages } from '@keelson/core/internal';
import test from 'ava';
import { lmdbHarness, type OpenedLmdb } from './support/lmdb-harness.ts';

const direct: ResourceStorageHarness<OpenedLmdb> = {
  name: 'direct on lmdb',
  stores: lmdbHarness('lmdb'),
  storages: (store, clock) => createDirectStorages({ store, clock }),
};

const cached: ResourceStorageHarness<OpenedLmdb> = {
  name: 'cached on lmdb',
  stores: lmdbHarness('lmdb'),
  storages: (store, clock) => createCachedStorages({ store, clock }),
  narrow: (store, clock, events) => createCachedStorages({ store, clock, window: { maxEvents: events } }),
};

registerResourceStorageConformance(test.serial, direct);
registerResourceStorageConformance(test.serial, cached);
