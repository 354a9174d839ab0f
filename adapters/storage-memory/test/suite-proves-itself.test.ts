import { frozenStore, missingRequirements, runStoreCase, storeCases } from '@keelson/conformance';
import test from 'ava';
import { brokenStores } from './support/broken-stores.ts';
import { memoryHarness } from './support/memory-harness.ts';

const seed = 20_261_120;

/** The first case that rejects the store; the cases before it have accepted it. */
async function firstRejection(
  harness: ReturnType<typeof memoryHarness>,
): Promise<{ id: string; why: string } | undefined> {
  for (const storeCase of storeCases) {
    if (missingRequirements(harness, storeCase).length > 0) continue;
    try {
      await runStoreCase(harness, storeCase, { seed, timeoutMs: 2000 });
    } catch (error) {
      return { id: storeCase.id, why: String((error as Error).cause ?? error).split('\n')[0] ?? '' };
    }
  }
  return undefined;
}

for (const { fault, make } of brokenStores) {
  test.serial(`the suite rejects a store that ${fault}`, async (t) => {
    const caught = await firstRejection(memoryHarness(`store that ${fault}`, (memory) => ({ store: make(memory) })));
    t.truthy(caught, 'no case detected the fault');
    t.log(`caught by ${caught?.id}: ${caught?.why.slice(0, 120)}`);
  });
}

test.serial('the suite accepts the unmodified store', async (t) => {
  t.is(await firstRejection(memoryHarness('sound store')), undefined);
});

test.serial('the suite rejects a store that changes returned values, through the frozen wrapper', async (t) => {
  const harness = memoryHarness('modifying store', (memory) => {
    const { store, verify } = frozenStore(memory);
    return {
      store: {
        ...store,
        async write(op, options) {
          const { entry } = await memory.get(op.key).catch(() => ({ entry: undefined }));
          entry?.value.fill(0);
          return store.write(op, options);
        },
      },
      check: verify,
    };
  });
  t.truthy(await firstRejection(harness));
});
