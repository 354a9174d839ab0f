import assert from 'node:assert/strict';
import type { Store } from '@keelson/core/storage-adapter';
import { Random } from '../../suite/random.ts';
import type { StoreCase } from '../harness.ts';
import { plainEntry } from '../model.ts';
import { countIs, everything, listAll, listPages, put, putAll, remove } from '../store-driver.ts';

async function fill(store: Store, count: number): Promise<string[]> {
  const keys = Array.from({ length: count }, (_, i) => `/k/${String(i).padStart(5, '0')}`);
  await putAll(store, keys);
  return keys;
}

/** Invariants 2 and 4: lists of the current state. */
export const listCases: readonly StoreCase[] = [
  {
    id: 'list.empty',
    title: 'a list without results is one empty chunk at the current revision',
    async run({ store }) {
      for (const range of [everything, { start: '/x', end: '/y' }]) {
        const { entries, chunks, revision } = await listAll(store, range);
        assert.equal(entries.length, 0);
        assert.equal(chunks, 1);
        assert.equal(revision, await store.currentRevision());
      }
    },
  },
  {
    id: 'list.inverted-range',
    title: 'a range whose end is not after its start is empty',
    async run({ store }) {
      await put(store, '/b', 'x');
      for (const range of [
        { start: '/b', end: '/b' },
        { start: '/c', end: '/a' },
        { start: '/b', startExclusive: true, end: '/b' },
      ]) {
        assert.equal((await listAll(store, range)).entries.length, 0);
        await countIs(store, range, 0);
      }
    },
  },
  {
    id: 'list.bounds',
    title: 'a range includes its start, unless it is exclusive, and never its end',
    async run({ store }) {
      for (const key of ['/a', '/b', '/c', '/d']) await put(store, key, 'x');
      assert.deepEqual((await listAll(store, { start: '/b', end: '/d' })).keys, ['/b', '/c']);
      assert.deepEqual((await listAll(store, { start: '/b', startExclusive: true, end: '/d' })).keys, ['/c']);
      assert.deepEqual((await listAll(store, { start: '/bb', startExclusive: true, end: '/d' })).keys, ['/c']);
      assert.deepEqual((await listAll(store, { start: '/c', startExclusive: true, end: '/d' })).keys, []);
      await countIs(store, { start: '/b', startExclusive: true, end: '/d' }, 1);
    },
  },
  {
    id: 'list.no-prefix-bleed',
    title: 'sibling keys with a common prefix are separate',
    async run({ store }) {
      for (const key of ['/pods/ns1/a', '/pods/ns10/a', '/pods/ns1-x/a', '/podsx/ns1/a', '/pods/ns1'])
        await put(store, key, 'x');
      assert.deepEqual((await listAll(store, { start: '/pods/ns1/', end: '/pods/ns10' })).keys, ['/pods/ns1/a']);
      assert.deepEqual((await listAll(store, { start: '/pods/', end: '/pods0' })).keys.length, 4);
    },
  },
  {
    id: 'list.entries-complete',
    title: 'listed entries equal those of get',
    async run({ store }) {
      const created = await put(store, '/a', 'x');
      await put(store, '/a', 'y', created);
      await put(store, '/b', 'z');
      for (const entry of (await listAll(store, everything)).entries) {
        const got = (await store.get(entry.key)).entry;
        assert.deepEqual(got && plainEntry(got), entry);
      }
    },
  },
  {
    id: 'list.keys-only',
    title: 'a list of keys has keys and revisions and no values',
    async run({ store }) {
      const created = await put(store, '/a', 'x');
      const updated = await put(store, '/a', 'y', created);
      const now = await listAll(store, everything, { keysOnly: true });
      assert.deepEqual(now.entries, [{ key: '/a', value: '', createRevision: created, modRevision: updated }]);
      const then = await listAll(store, everything, { keysOnly: true, revision: created });
      assert.deepEqual(then.entries, [{ key: '/a', value: '', createRevision: created, modRevision: created }]);
    },
  },
  {
    id: 'list.limit',
    title: 'a limit is exact, and `more` reports whether keys follow in the range',
    async run({ store }) {
      await fill(store, 10);
      for (const [limit, count, more] of [
        [1, 1, true],
        [9, 9, true],
        [10, 10, false],
        [11, 10, false],
        [1000, 10, false],
      ] as const) {
        const page = await listAll(store, everything, { limit });
        assert.equal(page.entries.length, count);
        assert.equal(page.more, more, `limit ${limit}`);
      }
      assert.equal(
        (await listAll(store, { start: '/k/', end: '/k/00003' }, { limit: 3 })).more,
        false,
        'keys beyond the range do not count',
      );
    },
  },
  {
    id: 'list.pages',
    title: 'pages of any size together are the whole list',
    async run({ store }) {
      const keys = await fill(store, 50);
      for (const size of [1, 2, 7, 10, 49, 50, 51])
        assert.deepEqual((await listPages(store, everything, size)).keys, keys);
    },
  },
  {
    id: 'list.large',
    title: 'a list of thousands of entries is complete, in order, at one revision',
    async run({ store }) {
      const keys = await fill(store, 3500);
      assert.deepEqual((await listAll(store, everything)).keys, keys);
      await countIs(store, everything, 3500);
      assert.deepEqual((await listAll(store, everything, { limit: 2100 })).keys, keys.slice(0, 2100));
      assert.deepEqual((await listPages(store, everything, 1200)).keys, keys);
    },
  },
  {
    id: 'list.large-values',
    title: 'a list of large values is complete',
    async run({ store }) {
      for (let i = 0; i < 24; i++)
        await put(store, `/k/${String(i).padStart(2, '0')}`, Buffer.alloc(200_000, String(i)));
      const { entries } = await listAll(store, everything);
      assert.equal(entries.length, 24);
      for (const [i, entry] of entries.entries())
        assert.equal(entry.value, Buffer.alloc(200_000, String(i)).toString());
    },
  },
  {
    id: 'list.snapshot-under-writes',
    title: 'writes between its chunks do not change a list',
    async run({ store }) {
      const keys = await fill(store, 2500);
      const seen: string[] = [];
      let revision = 0;
      let i = 0;
      for await (const chunk of store.list(everything)) {
        if (revision === 0) revision = chunk.revision;
        assert.equal(chunk.revision, revision);
        for (const entry of chunk.entries) {
          seen.push(entry.key);
          assert.ok(entry.modRevision <= revision);
        }
        await put(store, `/k/0${i}a`, 'new');
        await put(store, `/k/9${i}`, 'new');
        for (const key of [keys[i], keys[2499 - i]]) {
          const { entry } = await store.get(key as string);
          if (entry !== undefined) await remove(store, entry.key, entry.modRevision);
        }
        i++;
      }
      assert.deepEqual(seen, keys);
    },
  },
  {
    id: 'list.early-break',
    title: 'a list may be abandoned after its first chunk',
    async run({ store }) {
      await fill(store, 2500);
      for (let i = 0; i < 20; i++) {
        for await (const chunk of store.list(everything)) {
          assert.ok(chunk.entries.length > 0);
          break;
        }
      }
      await put(store, '/z', 'x');
      assert.equal((await listAll(store, everything)).entries.length, 2501);
    },
  },
  {
    id: 'list.sees-acknowledged',
    title: 'a list that starts after a write was acknowledged contains it',
    async run({ store }) {
      for (let i = 0; i < 20; i++) {
        const revision = await put(store, `/a/${String(i).padStart(2, '0')}`, 'x');
        const listed = await listAll(store, everything);
        assert.ok(listed.revision >= revision);
        assert.equal(listed.entries.length, i + 1);
      }
    },
  },
  {
    id: 'list.no-torn-state',
    title: 'a list concurrent with writers has exactly the state of its revision',
    async run({ store, seed }) {
      const base = await store.currentRevision();
      const random = new Random(seed);
      const lists: Awaited<ReturnType<typeof listAll>>[] = [];
      const writer = async (name: string) => {
        let expect = 0;
        for (let i = 0; i < 30; i++) expect = await put(store, `/${name}`, `${i}`, expect);
      };
      const reader = async () => {
        for (let i = 0; i < 20; i++) {
          lists.push(await listAll(store, everything));
          if (random.chance(0.3)) await new Promise((resolve) => setImmediate(resolve));
        }
      };
      await Promise.all([...'abcdef'].map(writer).concat([reader(), reader()]));
      assert.ok(lists.length === 40 && base >= 1);
      for (const list of lists) {
        assert.deepEqual((await listAll(store, everything, { revision: list.revision })).entries, list.entries);
      }
    },
  },
  {
    id: 'get.values-independent',
    title: 'a returned value does not change when the key changes',
    async run({ store }) {
      const created = await put(store, '/a', 'first value');
      const { entry } = await store.get('/a');
      const listed = await listAll(store, everything);
      const updated = await put(store, '/a', 'SECOND VAL', created);
      await remove(store, '/a', updated);
      for (let i = 0; i < 50; i++) await put(store, `/b/${i}`, 'other bytes of it');
      await listAll(store, everything);
      assert.equal(Buffer.from(entry?.value ?? []).toString(), 'first value');
      assert.equal(listed.entries[0]?.value, 'first value');
    },
  },
];
