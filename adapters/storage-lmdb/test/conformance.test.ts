import { frozenStore, registerStoreConformance } from '@keelson/conformance';
import test from 'ava';
import { lmdbHarness } from './support/lmdb-harness.ts';

// Serial: each case waits for the disk, and concurrent ones would wait for each other.
// Frozen, since a store that reads from a memory map could return bytes that it does not own.
registerStoreConformance(
  test.serial,
  lmdbHarness('lmdb', (lmdb) => {
    const { store, verify } = frozenStore(lmdb);
    return { store, check: verify };
  }),
);
