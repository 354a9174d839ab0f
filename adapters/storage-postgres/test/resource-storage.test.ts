import { type ResourceStorageHarness, registerResourceStorageConformance } from '@keelson/conformance';
import { createCachedStorages, createDirectStorages } from '@keelson/core/internal';
import test from 'ava';
import { type OpenedPostgres, postgresHarness } from './support/postgres-harness.ts';
import { serverFor } from './support/test-server.ts';

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
  registerResourceStorageConformance(test.serial, direct);
  registerResourceStorageConformance(test.serial, cached);
}
