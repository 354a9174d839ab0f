import { frozenStore, registerStoreConformance } from '@keelson/conformance';
import test from 'ava';
import { lmdbHarness } from './support/lmdb-harness.ts';

// One after the other: each waits for the disk, and all at once would wait for each other.
// Frozen, since a store that reads from a memory map could hand out bytes that are not its own.
registerStoreConformance(
  test.serial,
  lmdbHarness('lmdb', (lmdb) => {
    const { store, verify } = frozenStore(lmdb);
    return { store, check: verify };
  }),
);
