import { type ResourceStorageHarness, resourceStorageCases, runResourceStorageCase } from '@keelson/conformance';
import { createCachedStorages } from '@keelson/core/internal';
import test from 'ava';
import { type BrokenStorages, breakStorages, brokenStorages } from './support/broken-resource-storages.ts';
import { memoryHarness, type OpenedMemory } from './support/memory-harness.ts';

const seed = 20_261_120;

function harnessOf(make: BrokenStorages['make']): ResourceStorageHarness<OpenedMemory> {
  return {
    name: 'broken storages',
    stores: memoryHarness('memory'),
    storages: (store, clock) => breakStorages(createCachedStorages({ store, clock }), make),
  };
}

/** The first case of the group that rejects the storages. */
async function firstRejection(
  harness: ResourceStorageHarness<OpenedMemory>,
  group: RegExp,
): Promise<string | undefined> {
  for (const resourceCase of resourceStorageCases) {
    if (!group.test(resourceCase.id) || resourceCase.requires?.includes('cache')) continue;
    try {
      await runResourceStorageCase(harness, resourceCase, { seed, timeoutMs: 1500 });
    } catch (error) {
      return `${resourceCase.id}: ${String((error as Error).cause ?? error)
        .split('\n')[0]
        ?.slice(0, 120)}`;
    }
  }
  return undefined;
}

for (const { fault, group, make } of brokenStorages) {
  test.serial(`the suite rejects storages of which each ${fault}`, async (t) => {
    const caught = await firstRejection(harnessOf(make), group);
    t.truthy(caught, 'no case detected the fault');
    t.log(`caught by ${caught}`);
  });
}
