import assert from 'node:assert/strict';
import type { StoreCase } from '../harness.ts';
import { everything, failsWith, listAll } from '../store-driver.ts';
import { Twin } from '../twin.ts';
import { changesBetween } from '../watcher.ts';

/** Invariant 6: the history that is kept by default. */
export const historyCases: readonly StoreCase[] = [
  {
    id: 'history.last-thousand',
    title: 'without compaction the last thousand changes stay readable and watchable',
    async run({ store }) {
      const twin = await Twin.of(store);
      for (let i = 0; i < 1200; i++) await twin.put(`/a/${i % 20}`, `v${i}`);
      const last = twin.model.revision;
      const from = twin.model.changes.at(-1001)?.revision as number;
      assert.deepEqual(await changesBetween(store, from, last), twin.model.changesAfter(from, everything));
      assert.deepEqual(
        (await listAll(store, everything, { revision: from })).entries,
        twin.model.list(everything, from),
      );
    },
  },
  {
    id: 'history.last-five-minutes',
    title: 'changes younger than five minutes are retained, however many there are',
    requires: ['advance'],
    async run({ store, advance }) {
      const twin = await Twin.of(store);
      const start = twin.model.revision;
      for (let i = 0; i < 1500; i++) await twin.put(`/a/${i % 20}`, `v${i}`);
      await advance(4 * 60_000);
      for (let i = 0; i < 50; i++) await twin.put('/b', `v${i}`);
      assert.deepEqual(
        await changesBetween(store, start, twin.model.revision),
        twin.model.changesAfter(start, everything),
      );
    },
  },
  {
    id: 'history.old-is-dropped',
    title: 'the store compacts changes older than the window itself, and reports the compacted revision',
    requires: ['advance'],
    async run({ store, advance }) {
      const twin = await Twin.of(store);
      const start = twin.model.revision;
      for (let i = 0; i < 2500; i++) await twin.put(`/a/${i % 20}`, `v${i}`);
      for (let i = 0; i < 12 && (await store.compactedRevision()) <= start; i++) await advance(60_000);
      await twin.put('/b', 'x');
      await advance(60_000);
      const bound = await store.compactedRevision();
      assert.ok(bound > start, 'history older than its window was kept');
      assert.ok(bound <= (twin.model.changes.at(-1001)?.revision as number), 'the last thousand changes must stay');
      await failsWith('Compacted', () => store.watch(everything, { after: start }));
      assert.deepEqual(
        (await listAll(store, everything, { revision: bound })).entries,
        twin.model.list(everything, bound),
      );
      assert.deepEqual(
        await changesBetween(store, bound, twin.model.revision),
        twin.model.changesAfter(bound, everything),
      );
    },
  },
];
