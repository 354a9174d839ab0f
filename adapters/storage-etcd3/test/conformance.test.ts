import { registerStoreConformance } from '@keelson/conformance';
import test from 'ava';
import { etcdForThisFile, etcdHarness } from './support/etcd-harness.ts';

// One after the other: etcd has one revision and one compaction for all prefixes, and the cases compare revisions
// exactly.
if (etcdForThisFile()) registerStoreConformance(test.serial, etcdHarness('etcd'));
