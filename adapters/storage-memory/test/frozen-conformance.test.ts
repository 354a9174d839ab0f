import { frozenStore, registerStoreConformance } from '@keelson/conformance';
import test from 'ava';
import { memoryHarness } from './support/memory-harness.ts';

registerStoreConformance(
  test.serial,
  memoryHarness('frozen memory', (memory) => {
    const { store, verify } = frozenStore(memory);
    return { store, check: verify };
  }),
);
