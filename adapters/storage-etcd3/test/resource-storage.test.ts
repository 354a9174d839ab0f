import {
  type ResourceStorageHarness,
  registerResourceStorageConformance,
  resourceStorageCases,
  storeDependentResourceStorageCases,
} from '@keelson/conformance';
import { createCachedStorages, createDirectStorages } from '@keelson/core/internal';
import test from 'ava';
import { etcdForThisFile, etcdHarness, type OpenedEtcd } from './support/etcd-harness.ts';

const direct: ResourceStorageHarness<OpenedEtcd> = {
  name: 'direct on etcd',
  stores: etcdHarness('etcd'),
  storages: (store, clock) => createDirectStorages({ store, clock }),
};

const cached: ResourceStorageHarness<OpenedEtcd> = {
  name: 'cached on etcd',
  stores: etcdHarness('etcd'),
  storages: (store, clock) => createCachedStorages({ store, clock }),
  narrow: (store, clock, events) => createCachedStorages({ store, clock, window: { maxEvents: events } }),
};

// Cases that no adapter can change run on memory and LMDB, and so do all cases without the watch cache.
const isFull = process.env['KEELSON_TEST_FULL'] === '1';

if (etcdForThisFile()) {
  // One after the other: compaction and revisions are of the whole etcd.
  if (isFull) registerResourceStorageConformance(test.serial, direct);
  registerResourceStorageConformance(
    test.serial,
    cached,
    isFull ? resourceStorageCases : storeDependentResourceStorageCases,
  );
}
