import assert from 'node:assert/strict';
import { isStorageError } from '@keelson/core';
import { Random } from '../../suite/random.ts';
import type { StoreCase } from '../harness.ts';
import { everything, failsWith, listAll, put, putAll, remove } from '../store-driver.ts';
import { Twin } from '../twin.ts';
import { Watcher } from '../watcher.ts';

/** Invariants 5, 7 and 11 during compactions that run concurrently with readers, watchers and other compactions. */
export const compactionRaceCases: readonly StoreCase[] = [
  {
    id: 'compact.caught-up-watcher',
    title: 'a watcher without pending changes continues after compaction to the current revision',
    async run({ store }) {
      const watcher = await Watcher.open(store, await store.currentRevision(), { prevValue: true });
      let expect = 0;
      for (let i = 0; i < 20; i++) {
        expect = await put(store, '/a', `v${i}`, expect);
        await watcher.until(expect);
        await store.compact(expect);
      }
      assert.deepEqual(
        watcher.changes.map((change) => change.prev?.value),
        [undefined, ...Array.from({ length: 19 }, (_, i) => `v${i}`)],
      );
      await watcher.close();
    },
  },
  {
    id: 'compact.watcher-behind',
    title: 'a watcher behind the compacted revision fails with Compacted and has delivered no gap before',
    async run({ store }) {
      const twin = await Twin.of(store);
      const watcher = await Watcher.open(store, twin.model.revision, { prevValue: true });
      for (let i = 0; i < 5; i++) await twin.put(`/a/${i}`, 'x');
      await watcher.pull();
      const seen = watcher.changes.length;
      for (let i = 0; i < 2000; i++) await twin.put('/b', `v${i}`);
      await store.compact(twin.model.revision);
      await failsWith('Compacted', async () => {
        while (await watcher.pull());
      });
      assert.deepEqual(watcher.changes, twin.model.changes.slice(0, watcher.changes.length));
      assert.ok(watcher.changes.length >= seen);
      assert.equal(await watcher.pull(), false, 'the failure is the end');
    },
  },
  {
    id: 'compact.racing-pages',
    title: 'pages concurrent with compaction have the pinned state or fail with Compacted',
    async run({ store, seed }) {
      const random = new Random(seed);
      const twin = await Twin.of(store);
      for (let i = 0; i < 30; i++) await twin.put(`/a/${i % 10}`, `v${i}`);
      let refusals = 0;
      for (let round = 0; round < 30; round++) {
        const pinned = twin.model.revision;
        const expected = twin.model.list(everything, pinned);
        const entries: unknown[] = [];
        try {
          for (let start = { start: '/', startExclusive: false }, more = true; more; ) {
            const page = await listAll(store, { ...start, end: '0' }, { revision: pinned, limit: 3 });
            entries.push(...page.entries);
            start = { start: page.keys.at(-1) ?? '/', startExclusive: true };
            more = page.more;
            const key = `/a/${random.below(10)}`;
            if (random.chance(0.5) && twin.model.current(key) !== undefined) await twin.remove(key);
            else await twin.put(key, `r${round}`);
            if (random.chance(0.2)) await store.compact(random.chance(0.5) ? pinned : twin.model.revision);
          }
          assert.deepEqual(entries, expected);
        } catch (error) {
          if (!isStorageError(error, 'Compacted')) throw error;
          refusals++;
          assert.deepEqual(entries, expected.slice(0, entries.length));
        }
      }
      assert.ok(refusals < 30);
    },
  },
  {
    id: 'compact.racing-chunks',
    title: 'a long list concurrent with compaction is complete or fails with Compacted',
    async run({ store }) {
      const keys = Array.from({ length: 2500 }, (_, i) => `/k/${String(i).padStart(5, '0')}`);
      await putAll(store, keys);
      const seen: string[] = [];
      try {
        for await (const chunk of store.list(everything)) {
          seen.push(...chunk.entries.map((entry) => entry.key));
          for (const key of keys.slice(-3)) {
            const { entry } = await store.get(key);
            if (entry !== undefined) await remove(store, key, entry.modRevision);
          }
          await store.compact(await store.currentRevision());
        }
        assert.deepEqual(seen, keys);
      } catch (error) {
        if (!isStorageError(error, 'Compacted')) throw error;
        assert.deepEqual(seen, keys.slice(0, seen.length));
      }
    },
  },
  {
    id: 'compact.racing-watch',
    title: 'a watch concurrent with compaction is complete up to its end',
    async run({ store }) {
      const twin = await Twin.of(store);
      const start = twin.model.revision;
      for (let round = 0; round < 20; round++) {
        const after = twin.model.revision;
        const watcher = await Watcher.open(store, after, { prevValue: true });
        for (let i = 0; i < 10; i++) await twin.put(`/a/${i % 3}`, `${round}-${i}`);
        const compacting = store.compact(round % 2 === 0 ? after : after + 5);
        try {
          await watcher.until(twin.model.revision);
          assert.deepEqual(watcher.changes, twin.model.changesAfter(after, everything));
        } catch (error) {
          if (!isStorageError(error, 'Compacted')) throw error;
          const due = twin.model.changesAfter(after, everything);
          assert.deepEqual(watcher.changes, due.slice(0, watcher.changes.length));
          assert.equal(round % 2, 1, 'the bound was not above the watcher');
        }
        await compacting;
      }
      assert.ok(twin.model.revision > start);
    },
  },
  {
    id: 'compact.concurrent',
    title: 'concurrent compactions result in the highest compacted revision',
    async run({ store }) {
      const revisions: number[] = [];
      for (let i = 0; i < 5; i++) revisions.push(await put(store, `/a/${i}`, 'x'));
      await Promise.all([1, 4, 0, 3, 2].map((i) => store.compact(revisions[i] as number)));
      assert.equal(await store.compactedRevision(), revisions[4]);
      assert.equal((await listAll(store, everything)).entries.length, 5);
    },
  },
];
