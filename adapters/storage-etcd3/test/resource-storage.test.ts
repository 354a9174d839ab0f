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

// Cases that no adapter can change run on memory and LMDB.
const cases = process.env['KEELSON_TEST_FULL'] === '1' ? resourceStorageCases : storeDependentResourceStorageCases;

if (etcdForThisFile()) {
  // One after the other: compaction and revisions are of the whole etcd.
  registerResourceStorageConformance(test.serial, direct, cases);
  registerResourceStorageConformance(test.serial, cached, cases);
}
