import assert from 'node:assert/strict';
import type { Store } from '@keelson/core/storage-adapter';
import { Random } from '../../suite/random.ts';
import type { StoreCase } from '../harness.ts';
import { plainEntry } from '../model.ts';
import { everything, failsWith, listAll, put, remove, textOf } from '../store-driver.ts';
import { Twin } from '../twin.ts';
import { changesBetween, Watcher } from '../watcher.ts';

/** `/a` is created, updated and deleted, with changes of another key before and after each. */
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
  title: `compaction ${where} a delete does not hide the delete from retained watch positions`,
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

/** Invariants 10 and 11: the compacted revision, and reads and watches next to it. */
export const compactionCases: readonly StoreCase[] = [
  {
    id: 'compact.bound',
    title: 'the compacted revision is reported, only rises, and lower compactions have no effect',
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
    title: 'compaction above the current revision is rejected and changes nothing',
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
    title: 'after compaction to the current revision, that revision and later ones can be read',
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
    title: 'every read and watch below the compacted revision fails with Compacted and reports that revision',
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
    title: 'every read and watch at or above the compacted revision has the same result as before',
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
          assert.deepEqual(
            (await listAll(store, everything, { revision })).entries,
            twin.model.list(everything, revision),
          );
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
    title: 'compaction does not change the current state',
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
    title: 'a key last written long before the compacted revision is readable at every revision above it',
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
    title: 'the first change above the compacted revision still has its prev',
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
    id: 'compact.deleted-and-recreated',
    title: 'a key deleted and created again near the compacted revision has the right state at each revision above',
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
];
