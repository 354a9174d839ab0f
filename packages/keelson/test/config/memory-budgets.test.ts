import { UsageError } from '@keelson/core/internal';
import test from 'ava';
import { type MemoryBudgets, parseMemoryBudgets } from '../../src/config/memory-budgets.ts';
import { createControlPlane } from '../../src/control-plane/create-control-plane.ts';
import { createPromMetrics } from '../../src/observe/prom-metrics.ts';

const all: Required<MemoryBudgets> = {
  derivedFormsBytes: 1001,
  watchFramesBytes: 1002,
  listBlocksBytes: 1003,
  selectorIndexesBytes: 1004,
  listBuffersBytes: 1005,
  compressedListsBytes: 1006,
  recentBodiesBytes: 1007,
};

test('memoryBudgets has whole numbers of bytes, 0 included', (t) => {
  t.deepEqual(parseMemoryBudgets({}, 'memoryBudgets'), {});
  t.deepEqual(parseMemoryBudgets(all, 'memoryBudgets'), all);
  t.deepEqual(parseMemoryBudgets({ watchFramesBytes: 0 }, 'memoryBudgets'), { watchFramesBytes: 0 });
  for (const [raw, message] of [
    ['1Mi', /^memoryBudgets must be an object with derivedFormsBytes, .* and? ?recentBodiesBytes$|recentBodiesBytes$/],
    [{ watchFrameBytes: 1 }, 'memoryBudgets has no key watchFrameBytes; did you mean watchFramesBytes?'],
    [{ watchFramesBytes: -1 }, 'memoryBudgets.watchFramesBytes must be a whole number of at least 0, not -1'],
  ] as const) {
    t.throws(() => parseMemoryBudgets(raw, 'memoryBudgets'), { instanceOf: UsageError, message });
  }
});

async function budgetsOf(memoryBudgets?: MemoryBudgets): Promise<Record<string, number>> {
  const metrics = createPromMetrics();
  await using plane = await createControlPlane({ metrics, ...(memoryBudgets ? { memoryBudgets } : {}) });
  await plane.listen();
  const lines = (await metrics.text()).matchAll(/^keelson_memory_budget_bytes\{budget="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries([...lines].map(([, name, bytes]) => [`${name}Bytes`, Number(bytes)]));
}

test('the budgets of a plane reach its stores and its listener, and have the documented defaults', async (t) => {
  t.deepEqual(await budgetsOf(all), all);
  const mebibyte = 1024 * 1024;
  t.deepEqual(await budgetsOf({ watchFramesBytes: 5 }), {
    derivedFormsBytes: 32 * mebibyte,
    watchFramesBytes: 5,
    listBlocksBytes: 64 * mebibyte,
    selectorIndexesBytes: 64 * mebibyte,
    listBuffersBytes: 4 * mebibyte,
    compressedListsBytes: 16 * mebibyte,
    recentBodiesBytes: 4 * mebibyte,
  });
});
