import assert from 'node:assert/strict';
import type { Store } from '@keelson/core/storage-adapter';
import { Random } from '../../suite/random.ts';
import type { StoreCase } from '../harness.ts';
import { plainEntry } from '../model.ts';
import { countIs, everything, failsWith, listAll, listPages, put, remove } from '../store-driver.ts';
import { Twin } from '../twin.ts';

/** A history of a few keys, with deletes and repeated creates of the same names. */
async function busyTwin(store: Store, seed: number, writes: number): Promise<Twin> {
  const random = new Random(seed);
  const twin = await Twin.of(store);
  const keys = ['/a', '/a/b', '/a/c', '/ab', '/b/1', '/b/2', '/b/3', '/c', '/é', '/\u{1f600}', '/\ue000'];
  for (let i = 0; i < writes; i++) {
    const key = random.pick(keys);
    if (twin.model.current(key) !== undefined && random.chance(0.35)) await twin.remove(key);
    else await twin.put(key, `${key}#${i}`);
  }
  return twin;
}

/** Invariants 2 and 5: reads, lists and counts at old revisions. */
export const pastCases: readonly StoreCase[] = [
  {
    id: 'list.pages-under-writes',
    title: 'pages at a pinned revision have that state while keys are created, changed and deleted between them',
    async run({ store, seed }) {
      const random = new Random(seed);
      const twin = await busyTwin(store, seed, 40);
      const pinned = twin.model.revision;
      const expected = twin.model.list(everything, pinned);
      for (const size of [1, 2, 3]) {
        const entries: unknown[] = [];
        let start = { start: '/', startExclusive: false };
        for (let more = true; more; ) {
          const page = await listAll(store, { ...start, end: '0' }, { revision: pinned, limit: size });
          entries.push(...page.entries);
          more = page.more;
          start = { start: page.keys.at(-1) ?? '/', startExclusive: true };
          const key = random.pick(['/a', '/a/a', '/ab', '/b/1', '/zz']);
          if (twin.model.current(key) === undefined) await twin.put(key, 'new');
          else await twin.remove(key);
        }
        assert.deepEqual(entries, expected);
      }
    },
  },
  {
    id: 'list.at-every-revision',
    title: 'a list at every retained revision, in pages of several sizes, equals the model',
    async run({ store, seed }) {
      const twin = await busyTwin(store, seed, 40);
      for (const { revision } of twin.model.changes) {
        const expected = twin.model.list(everything, revision);
        assert.deepEqual((await listAll(store, everything, { revision })).entries, expected);
        for (const size of [1, 3, 100]) {
          assert.deepEqual(
            (await listPages(store, everything, size, revision)).entries,
            expected,
            `pages of ${size} at ${revision}`,
          );
        }
      }
    },
  },
  {
    id: 'list.ranges-at-every-revision',
    title: 'ranges at every retained revision equal the model',
    async run({ store, seed }) {
      const twin = await busyTwin(store, seed, 40);
      const ranges = [
        { start: '/a', end: '/b' },
        { start: '/a', startExclusive: true, end: '/b' },
        { start: '/a/', end: '/a0' },
        { start: '/b/2', end: '/c' },
        { start: '/b/2', startExclusive: true, end: '/\u{10ffff}' },
        { start: '/c', startExclusive: true, end: '/\u{1f600}' },
      ];
      for (const { revision } of twin.model.changes) {
        for (const range of ranges) {
          const expected = twin.model.list(range, revision);
          assert.deepEqual((await listAll(store, range, { revision })).entries, expected);
          await countIs(store, range, expected.length, revision);
        }
      }
    },
  },
  {
    id: 'list.future-revision',
    title: 'a list at a future revision is FutureRevision',
    async run({ store }) {
      const revision = await put(store, '/a', 'x');
      await failsWith('FutureRevision', () => listAll(store, everything, { revision: revision + 1000 }));
      await failsWith('FutureRevision', () => store.count(everything, { revision: revision + 1000 }));
    },
  },
  {
    id: 'count.follows-writes',
    title: 'a count follows creates and deletes and ignores updates',
    async run({ store }) {
      const a = await put(store, '/a', 'x');
      const updated = await put(store, '/a', 'y', a);
      await put(store, '/b', 'x');
      await countIs(store, everything, 2);
      await remove(store, '/a', updated);
      await countIs(store, everything, 1);
      await countIs(store, everything, 1, updated);
      await countIs(store, everything, 0, a - 1);
    },
  },
  {
    id: 'get.at-every-revision',
    title: 'a get at every retained revision equals the model, also before creation and after deletion',
    async run({ store, seed }) {
      const twin = await busyTwin(store, seed, 40);
      for (const { revision } of twin.model.changes) {
        const expected = new Map(twin.model.list(everything, revision).map((entry) => [entry.key, entry]));
        for (const key of ['/a', '/a/b', '/b/1', '/c', '/é', '/\u{1f600}', '/never']) {
          const answer = await store.get(key, { revision });
          assert.equal(answer.revision, revision);
          assert.deepEqual(answer.entry && plainEntry(answer.entry), expected.get(key), `${key} at ${revision}`);
        }
      }
    },
  },
  {
    id: 'get.future-revision',
    title: 'a get at a future revision is FutureRevision',
    async run({ store }) {
      const revision = await put(store, '/a', 'x');
      await failsWith('FutureRevision', () => store.get('/a', { revision: revision + 1000 }));
    },
  },
];
