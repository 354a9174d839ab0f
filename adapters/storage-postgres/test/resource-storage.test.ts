import {
  type ResourceStorageHarness,
  registerResourceStorageConformance,
  resourceStorageCases,
  storeDependentResourceStorageCases,
} from '@keelson/conformance';
import { createCachedStorages, createDirectStorages } from '@keelson/core/internal';
import test from 'ava';
import { type OpenedPostgres, postgresHarness } from './support/postgres-harness.ts';
import { serverFor } from './support/test-server.ts';

// Cases that no adapter can change run on memory and LMDB, and so do all cases without the watch cache.
const isFull = process.env['KEELSON_TEST_FULL'] === '1';
const at = serverFor(test);

if (at !== undefined) {
  const stores = postgresHarness('postgres', at);
  const direct: ResourceStorageHarness<OpenedPostgres> = {
    name: 'direct on postgres',
    stores,
    storages: (store, clock) => createDirectStorages({ store, clock }),
  };
  const cached: ResourceStorageHarness<OpenedPostgres> = {
    name: 'cached on postgres',
    stores,
    storages: (store, clock) => createCachedStorages({ store, clock }),
    narrow: (store, clock, events) => createCachedStorages({ store, clock, window: { maxEvents: events } }),
  };
  if (isFull) registerResourceStorageConformance(test.serial, direct);
  registerResourceStorageConformance(
    test.serial,
    cached,
    isFull ? resourceStorageCases : storeDependentResourceStorageCases,
  );
}
