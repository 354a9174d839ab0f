import { type ResourceStorageHarness, registerResourceStorageConformance } from '@keelson/conformance';
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

if (etcdForThisFile()) {
  // One after the other: compaction and revisions are of the whole etcd.
  registerResourceStorageConformance(test.serial, direct);
  registerResourceStorageConformance(test.serial, cached);
}
