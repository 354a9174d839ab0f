import assert from 'node:assert/strict';
import { isStorageError, type Store } from '@keelson/core';
import { Random } from '../../random.ts';
import type { StoreCase } from '../harness.ts';
import { plainEntry } from '../model.ts';
import { changesBetween, everything, failsWith, listAll, put, remove, Twin, textOf, Watcher } from '../store-driver.ts';

/** `/a` created, updated, deleted, with a bystander before and after each. */
async function tombstone(store: Store) {
  const start = await put(store, '/by/0', 'x');
  const created = await put(store, '/a', 'x');
  await put(store, '/by/1', 'x');
  const updated = await put(store, '/a', 'y', created);
  await put(store, '/by/2', 'x');
  const deleted = await remove(store, '/a', updated);
  const end = await put(store, '/by/3', 'x');
  return { start, created, updated, deleted, end };
}

const tombstoneCase = (where: 'before' | 'at' | 'after'): StoreCase => ({
  id: `compact.tombstone-${where}`,
  title: `compaction ${where} a delete loses it for no watcher that may still see it`,
  async run({ store }) {
    const { start, updated, deleted, end } = await tombstone(store);
    const behind = await Watcher.open(store, start, { prevValue: true });
    const before = await Watcher.open(store, updated, { prevValue: true });
    const current = await Watcher.open(store, end, { prevValue: true });
    const bound = { before: updated, at: deleted, after: end }[where];
    await store.compact(bound);
    await failsWith('Compacted', () => behind.until(end));
    if (bound > updated) {
      await failsWith('Compacted', () => before.until(end));
      await failsWith('Compacted', () => store.watch(everything, { after: updated }));
    } else {
      await before.until(end);
      const change = before.changes.find(({ type }) => type === 'delete');
      assert.equal(change?.revision, deleted);
      assert.equal(change?.prev?.value, 'y');
    }
    const again = await put(store, '/a', 'z');
    await current.until(again);
    assert.deepEqual(
      current.changes.map(({ type, key, prev }) => [type, key, prev]),
      [['create', '/a', undefined]],
    );
    assert.equal((await store.get('/a', { revision: end })).entry, undefined);
    assert.equal((await store.get('/a')).entry?.createRevision, again);
  },
});

/** Invariants 6, 10 and 11: history, its bound, and nothing wrong at its edge. */
export const compactionCases: readonly StoreCase[] = [
  {
    id: 'compact.bound',
    title: 'the bound is reported, only rises, and lower compactions do nothing',
    async run({ store }) {
      const { created, updated, deleted } = await tombstone(store);
      assert.ok((await store.compactedRevision()) < created);
      await store.compact(updated);
      assert.equal(await store.compactedRevision(), updated);
      await store.compact(created);
      await store.compact(updated);
      assert.equal(await store.compactedRevision(), updated);
      await store.compact(deleted);
      assert.equal(await store.compactedRevision(), deleted);
    },
  },
  {
    id: 'compact.future',
    title: 'compaction above the current revision is refused and changes nothing',
    async run({ store }) {
      const { start, end } = await tombstone(store);
      const bound = await store.compactedRevision();
      await failsWith('FutureRevision', () => store.compact(end + 1000));
      assert.equal(await store.compactedRevision(), bound);
      assert.equal((await changesBetween(store, start, end)).length, 6);
    },
  },
  {
    id: 'compact.to-current',
    title: 'after compaction to the current revision that revision and what follows remain',
    async run({ store }) {
      const { end } = await tombstone(store);
      await store.compact(end);
      assert.equal((await listAll(store, everything, { revision: end })).entries.length, 4);
      const revision = await put(store, '/b', 'x');
      assert.equal((await changesBetween(store, end, revision)).length, 1);
      assert.equal((await listAll(store, everything, { revision: end })).entries.length, 4);
    },
  },
  {
    id: 'compact.below',
    title: 'every read and watch below the bound is Compacted and tells the bound',
    async run({ store }) {
      const { created, updated } = await tombstone(store);
      await store.compact(updated);
      const reads = [
        () => store.get('/a', { revision: created }),
        () => store.get('/never', { revision: updated - 1 }),
        () => listAll(store, everything, { revision: created }),
        () => listAll(store, everything, { revision: updated - 1, limit: 1 }),
        () => store.count(everything, { revision: created }),
        () => store.watch(everything, { after: created }),
        () => store.watch(everything, { after: updated - 1 }),
      ];
      for (const read of reads) assert.equal((await failsWith('Compacted', read)).revision, updated);
    },
  },
  {
    id: 'compact.at-and-above',
    title: 'every read and watch at or above the bound answers as before',
    async run({ store, seed }) {
      const random = new Random(seed);
      const twin = await Twin.of(store);
      for (let i = 0; i < 60; i++) {
        const key = `/a/${random.below(6)}`;
        if (random.chance(0.4) && twin.model.current(key) !== undefined) await twin.remove(key);
        else await twin.put(key, `v${i}`);
      }
      const { changes, revision: last } = twin.model;
      for (const at of [10, 25, 26, 40, 59]) {
        const bound = changes[at]?.revision as number;
        await store.compact(bound);
        for (const { revision } of changes.slice(at)) {
          assert.deepEqual((await listAll(store, everything, { revision })).entries, twin.model.list(everything, revision));
          assert.deepEqual(await changesBetween(store, revision, last), twin.model.changesAfter(revision, everything));
        }
      }
    },
  },
  tombstoneCase('before'),
  tombstoneCase('at'),
  tombstoneCase('after'),
  {
    id: 'compact.keeps-current-state',
    title: 'compaction changes nothing of the current state',
    async run({ store }) {
      const twin = await Twin.of(store);
      for (let i = 0; i < 50; i++) await twin.put(`/a/${i % 7}`, `v${i}`);
      for (const key of ['/a/1', '/a/3']) await twin.remove(key);
      await store.compact(twin.model.revision);
      assert.deepEqual((await listAll(store, everything)).entries, twin.model.list(everything, twin.model.revision));
      assert.equal((await store.get('/a/1')).entry, undefined);
      const created = await twin.put('/a/1', 'again');
      assert.equal((await store.get('/a/1')).entry?.createRevision, created);
      await twin.put('/a/2', 'again');
    },
  },
  {
    id: 'compact.untouched-keys',
    title: 'a key not written since long before the bound stays readable at every revision above it',
    async run({ store }) {
      const created = await put(store, '/old', 'kept');
      const { updated, end } = await tombstone(store);
      await store.compact(updated);
      for (let revision = updated; revision <= end; revision++) {
        const { entry } = await store.get('/old', { revision });
        assert.equal(textOf(entry), 'kept');
        assert.equal(entry?.modRevision, created);
      }
      assert.equal((await changesBetween(store, updated, end)).length, 3);
    },
  },
  {
    id: 'compact.prev-at-bound',
    title: 'the first change above the bound still has its prev',
    async run({ store }) {
      const { created, updated, deleted } = await tombstone(store);
      await store.compact(updated);
      const [, change] = await changesBetween(store, updated, deleted);
      assert.equal(change?.prev?.value, 'y');
      assert.equal(change?.prev?.createRevision, created);
      await store.compact(deleted - 1);
      assert.equal((await changesBetween(store, deleted - 1, deleted))[0]?.prev?.value, 'y');
    },
  },
  {
    id: 'compact.caught-up-watcher',
    title: 'a watcher that has everything survives compaction up to the current revision',
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
    title: 'a watcher that fell behind the bound fails with Compacted and has seen no gap before',
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
    title: 'pages that race with compaction show the pinned state or fail with Compacted',
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
    title: 'a long list that races with compaction is whole or fails with Compacted',
    async run({ store }) {
      const keys = Array.from({ length: 2500 }, (_, i) => `/k/${String(i).padStart(5, '0')}`);
      await Promise.all(keys.map((key) => put(store, key, 'x')));
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
    title: 'a watch that races with compaction is complete as far as it goes',
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
    title: 'concurrent compactions end at the highest bound',
    async run({ store }) {
      const { start, created, updated, deleted, end } = await tombstone(store);
      await Promise.all([created, end, start, deleted, updated].map((bound) => store.compact(bound)));
      assert.equal(await store.compactedRevision(), end);
      assert.equal((await listAll(store, everything)).entries.length, 4);
    },
  },
  {
    id: 'compact.deleted-and-recreated',
    title: 'a key deleted and created again around the bound has the right state at each revision above',
    async run({ store }) {
      const twin = await Twin.of(store);
      for (let i = 0; i < 12; i++) {
        await twin.put('/a', `life ${i}`);
        await twin.put('/a', `more ${i}`);
        await twin.remove('/a');
      }
      for (const at of [1, 2, 3, 9, 20, 35]) {
        const bound = twin.model.changes[at]?.revision as number;
        await store.compact(bound);
        for (const { revision } of twin.model.changes.slice(at)) {
          const { entry } = await store.get('/a', { revision });
          assert.deepEqual(entry && plainEntry(entry), twin.model.list(everything, revision)[0]);
        }
      }
    },
  },
  {
    id: 'history.last-thousand',
    title: 'without compaction the last thousand changes stay readable and watchable',
    async run({ store }) {
      const twin = await Twin.of(store);
      for (let i = 0; i < 1500; i++) await twin.put(`/a/${i % 20}`, `v${i}`);
      const last = twin.model.revision;
      const from = twin.model.changes.at(-1001)?.revision as number;
      assert.deepEqual(await changesBetween(store, from, last), twin.model.changesAfter(from, everything));
      assert.deepEqual((await listAll(store, everything, { revision: from })).entries, twin.model.list(everything, from));
    },
  },
  {
    id: 'history.last-five-minutes',
    title: 'changes younger than five minutes stay, however many they are',
    requires: ['advance'],
    async run({ store, advance }) {
      const twin = await Twin.of(store);
      const start = twin.model.revision;
      for (let i = 0; i < 2500; i++) await twin.put(`/a/${i % 20}`, `v${i}`);
      await advance(4 * 60_000);
      for (let i = 0; i < 50; i++) await twin.put('/b', `v${i}`);
      assert.deepEqual(await changesBetween(store, start, twin.model.revision), twin.model.changesAfter(start, everything));
    },
  },
  {
    id: 'history.old-is-dropped',
    title: 'changes older than the window are let go by the store itself, and the bound says so',
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
      assert.deepEqual((await listAll(store, everything, { revision: bound })).entries, twin.model.list(everything, bound));
      assert.deepEqual(await changesBetween(store, bound, twin.model.revision), twin.model.changesAfter(bound, everything));
    },
  },
];
