import assert from 'node:assert/strict';
import type { StoreCase } from '../harness.ts';
import { bytes, changesBetween, everything, put, refused, remove, Twin, Watcher } from '../store-driver.ts';

const keys = ['/a', '/a/b', '/ab', '/b', '/é', '/\u{1f600}'];

async function busy(store: Parameters<StoreCase['run']>[0]['store'], rounds: number): Promise<Twin> {
  const twin = await Twin.of(store);
  for (let i = 0; i < rounds; i++) {
    const key = keys[i % keys.length] as string;
    if (i % 7 === 5 && twin.model.current(key) !== undefined) await twin.remove(key);
    else await twin.put(key, `v${i}`);
  }
  return twin;
}

/** Invariants 7, 8 and 10: what a watch delivers. */
export const watchCases: readonly StoreCase[] = [
  {
    id: 'watch.types-in-order',
    title: 'create, update, delete and create again arrive in order with their entries',
    async run({ store }) {
      const after = await store.currentRevision();
      const a = await put(store, '/a', 'x');
      const b = await put(store, '/a', 'y', a);
      const c = await remove(store, '/a', b);
      const d = await put(store, '/a', 'z');
      const changes = await changesBetween(store, after, d);
      assert.deepEqual(
        changes.map(({ type, revision, entry }) => [type, revision, entry?.value, entry?.createRevision]),
        [
          ['create', a, 'x', a],
          ['update', b, 'y', a],
          ['delete', c, undefined, undefined],
          ['create', d, 'z', d],
        ],
      );
    },
  },
  {
    id: 'watch.live',
    title: 'a watch that waits gets what is written later',
    async run({ store }) {
      const watcher = await Watcher.open(store, await store.currentRevision());
      for (let i = 0; i < 10; i++) {
        const pulled = watcher.pull();
        const revision = await put(store, `/a/${i}`, 'x');
        assert.equal(await pulled, true);
        await watcher.until(revision);
        assert.equal(watcher.changes.length, i + 1);
      }
      await watcher.close();
    },
  },
  {
    id: 'watch.only-after',
    title: 'nothing at or before the given revision is delivered',
    async run({ store }) {
      await put(store, '/a', 'x');
      const after = await put(store, '/b', 'x');
      const watcher = await Watcher.open(store, after);
      const revision = await put(store, '/c', 'x');
      await watcher.until(revision);
      assert.deepEqual(
        watcher.changes.map((change) => change.key),
        ['/c'],
      );
      await watcher.close();
    },
  },
  {
    id: 'watch.from-every-revision',
    title: 'a watch from every revision delivers exactly the changes after it',
    async run({ store }) {
      const start = await store.currentRevision();
      const { model } = await busy(store, 60);
      for (const after of [start, ...model.changes.map((change) => change.revision)]) {
        assert.deepEqual(await changesBetween(store, after, model.revision), model.changesAfter(after, everything));
      }
    },
  },
  {
    id: 'watch.range',
    title: 'changes outside the range are not delivered, siblings that begin alike included',
    async run({ store }) {
      const after = await store.currentRevision();
      const { model } = await busy(store, 60);
      for (const range of [
        { start: '/a', end: '/a/' },
        { start: '/a/', end: '/a0' },
        { start: '/a', startExclusive: true, end: '/b' },
        { start: '/ab', end: '/b' },
        { start: '/b', end: '/\uffff' },
        { start: '/\uffff', end: '/\u{10ffff}' },
        { start: '/nothing', end: '/nothing0' },
      ]) {
        assert.deepEqual(await changesBetween(store, after, model.revision, { range }), model.changesAfter(after, range));
      }
    },
  },
  {
    id: 'watch.future-revision',
    title: 'a watch from a revision not yet given delivers only what comes after it',
    async run({ store }) {
      const now = await put(store, '/a/now', 'x');
      for (const ahead of [1, 2, 5, 100]) {
        const watcher = await Watcher.open(store, now + ahead);
        const written: number[] = [];
        while ((written.at(-1) ?? 0) <= now + ahead) written.push(await put(store, `/a/${ahead}/${written.length}`, 'x'));
        await watcher.until(written.at(-1) as number);
        const seen = watcher.changes.map((change) => change.revision);
        assert.ok(seen.length > 0 && seen.every((revision) => revision > now + ahead), `${seen} after ${now + ahead}`);
        await watcher.close();
      }
    },
  },
  {
    id: 'watch.old-values',
    title: 'a change carries the value of its revision, however often the key changed since',
    async run({ store }) {
      const after = await store.currentRevision();
      let expect = 0;
      for (let i = 0; i < 30; i++) expect = await put(store, '/a', `v${i}`, expect);
      const changes = await changesBetween(store, after, expect);
      assert.deepEqual(
        changes.map((change) => change.entry?.value),
        Array.from({ length: 30 }, (_, i) => `v${i}`),
      );
    },
  },
  {
    id: 'watch.refused-writes-invisible',
    title: 'a refused write is not a change',
    async run({ store }) {
      const after = await put(store, '/a', 'x');
      const watcher = await Watcher.open(store, after);
      refused(await store.write({ op: 'put', key: '/a', value: bytes('y'), expect: 0 }));
      refused(await store.write({ op: 'delete', key: '/b', expect: after }));
      const revision = await put(store, '/c', 'x');
      await watcher.until(revision);
      assert.deepEqual(
        watcher.changes.map((change) => change.key),
        ['/c'],
      );
      await watcher.close();
    },
  },
  {
    id: 'watch.same-bytes',
    title: 'a put of the same bytes is delivered as an update',
    async run({ store }) {
      const created = await put(store, '/a', 'x');
      const updated = await put(store, '/a', 'x', created);
      const [change] = await changesBetween(store, created, updated);
      assert.equal(change?.type, 'update');
      assert.equal(change?.revision, updated);
    },
  },
  {
    id: 'watch.prev-when-asked',
    title: 'prev is there for updates and deletes when asked for, and not otherwise',
    async run({ store }) {
      const after = await store.currentRevision();
      const a = await put(store, '/a', 'x');
      const b = await put(store, '/a', 'y', a);
      const c = await remove(store, '/a', b);
      const x = { key: '/a', value: 'x', createRevision: a, modRevision: a };
      const y = { key: '/a', value: 'y', createRevision: a, modRevision: b };
      const withPrev = await changesBetween(store, after, c, { prevValue: true });
      assert.deepEqual(
        withPrev.map((change) => change.prev),
        [undefined, x, y],
      );
      const without = await changesBetween(store, after, c, { prevValue: false });
      assert.deepEqual(
        without.map((change) => change.prev),
        [undefined, undefined, undefined],
      );
    },
  },
  {
    id: 'watch.prev-live',
    title: 'a live change carries its prev as well as one from history',
    async run({ store }) {
      const a = await put(store, '/a', 'x');
      const watcher = await Watcher.open(store, a, { prevValue: true });
      const b = await put(store, '/a', 'y', a);
      const c = await remove(store, '/a', b);
      await watcher.until(c);
      assert.deepEqual(
        watcher.changes.map((change) => change.prev?.value),
        ['x', 'y'],
      );
      await watcher.close();
    },
  },
  {
    id: 'watch.prev-older-than-start',
    title: 'prev is there also when it was written long before the watch began',
    async run({ store }) {
      const created = await put(store, '/a', 'old');
      for (let i = 0; i < 50; i++) await put(store, `/b/${i}`, 'x');
      const after = await store.currentRevision();
      const deleted = await remove(store, '/a', created);
      const [change] = await changesBetween(store, after, deleted);
      assert.deepEqual(change?.prev, { key: '/a', value: 'old', createRevision: created, modRevision: created });
    },
  },
  {
    id: 'watch.prev-of-previous-life',
    title: 'a create has no prev, though the key existed before',
    async run({ store }) {
      const a = await put(store, '/a', 'x');
      const b = await remove(store, '/a', a);
      const c = await put(store, '/a', 'y');
      const changes = await changesBetween(store, a, c);
      assert.deepEqual(
        changes.map(({ type, prev, revision }) => [type, prev?.value, revision]),
        [
          ['delete', 'x', b],
          ['create', undefined, c],
        ],
      );
    },
  },
  {
    id: 'watch.prev-chain',
    title: 'every prev is the entry of the change before it',
    async run({ store }) {
      const start = await store.currentRevision();
      const { model } = await busy(store, 80);
      const last = new Map<string, unknown>();
      for (const change of await changesBetween(store, start, model.revision)) {
        assert.deepEqual(change.prev, change.type === 'create' ? undefined : last.get(change.key));
        last.set(change.key, change.entry);
      }
    },
  },
  {
    id: 'watch.one-revision-one-batch',
    title: 'no revision is spread over two batches',
    async run({ store }) {
      const after = await store.currentRevision();
      const watcher = await Watcher.open(store, after);
      const writes = Array.from({ length: 300 }, (_, i) => put(store, `/a/${i}`, 'x'));
      const revisions = await Promise.all(writes);
      await watcher.until(Math.max(...revisions));
      assert.equal(new Set(watcher.changes.map((change) => change.revision)).size, 300);
      await watcher.close();
    },
  },
  {
    id: 'watch.concurrent-writes',
    title: 'a watch beside concurrent writers delivers every change once, ascending',
    async run({ store }) {
      const after = await store.currentRevision();
      const watcher = await Watcher.open(store, after, { prevValue: true });
      const worker = async (name: string) => {
        let expect = 0;
        for (let i = 0; i < 40; i++) expect = await put(store, `/${name}`, `${i}`, expect);
        return expect;
      };
      const last = Math.max(...(await Promise.all([...'abcdefgh'].map(worker))));
      await watcher.until(last);
      assert.equal(watcher.changes.length, 320);
      assert.deepEqual(await changesBetween(store, after, last), watcher.changes);
      await watcher.close();
    },
  },
  {
    id: 'watch.backlog',
    title: 'a backlog of thousands arrives whole and in order',
    async run({ store }) {
      const after = await store.currentRevision();
      const revisions = await Promise.all(Array.from({ length: 3000 }, (_, i) => put(store, `/a/${i % 500}/${i}`, `${i}`)));
      const changes = await changesBetween(store, after, Math.max(...revisions));
      assert.deepEqual(
        changes.map((change) => change.revision),
        [...revisions].sort((a, b) => a - b),
      );
      for (const change of changes) assert.equal(revisions[Number(change.entry?.value)], change.revision);
    },
  },
  {
    id: 'watch.large-values',
    title: 'changes with large values arrive whole',
    async run({ store }) {
      const after = await store.currentRevision();
      let expect = 0;
      for (let i = 0; i < 20; i++) expect = await put(store, '/a', Buffer.alloc(300_000, `${i}`), expect);
      const changes = await changesBetween(store, after, expect);
      for (const [i, change] of changes.entries()) assert.equal(change.entry?.value, Buffer.alloc(300_000, `${i}`).toString());
      assert.equal(changes.length, 20);
    },
  },
  {
    id: 'watch.many-watchers-agree',
    title: 'many watchers of the same range see the same',
    async run({ store }) {
      const after = await store.currentRevision();
      const watchers = await Promise.all(Array.from({ length: 50 }, () => Watcher.open(store, after, { prevValue: true })));
      const { model } = await busy(store, 60);
      await Promise.all(watchers.map((watcher) => watcher.until(model.revision)));
      for (const watcher of watchers) {
        assert.deepEqual(watcher.changes, model.changes);
        await watcher.close();
      }
    },
  },
  {
    id: 'watch.slow-among-fast',
    title: 'a watcher that does not pull delays no other and misses nothing',
    async run({ store }) {
      const after = await store.currentRevision();
      const slow = await Watcher.open(store, after, { prevValue: true });
      const fast = await Promise.all(Array.from({ length: 20 }, () => Watcher.open(store, after)));
      const twin = await Twin.of(store);
      for (let i = 0; i < 300; i++) {
        const revision = await twin.put(keys[i % keys.length] as string, `v${i}`);
        if (i % 50 === 0) await Promise.all(fast.map((watcher) => watcher.until(revision)));
      }
      await Promise.all(fast.map((watcher) => watcher.until(twin.model.revision)));
      for (const watcher of fast) assert.equal(watcher.changes.length, 300);
      await slow.until(twin.model.revision);
      assert.deepEqual(slow.changes, twin.model.changes);
    },
  },
  {
    id: 'watch.different-ranges',
    title: 'watchers of different ranges each get exactly their own',
    async run({ store }) {
      const after = await store.currentRevision();
      const ranges = keys.map((key) => ({ start: key, end: `${key}0` }));
      const watchers = await Promise.all(ranges.map((range) => Watcher.open(store, after, { range, prevValue: true })));
      const { model } = await busy(store, 60);
      for (const [i, watcher] of watchers.entries()) {
        await watcher.until(model.revision);
        assert.deepEqual(watcher.changes, model.changesAfter(after, ranges[i] as (typeof ranges)[number]));
        await watcher.close();
      }
    },
  },
  {
    id: 'watch.starts-during-writes',
    title: 'watches that begin while writers run have neither gap nor overlap with what was before',
    async run({ store }) {
      const start = await store.currentRevision();
      let writing = true;
      const writer = async () => {
        let expect = 0;
        for (let i = 0; i < 200; i++) expect = await put(store, '/a', `${i}`, expect);
        writing = false;
        return expect;
      };
      const finished = writer();
      const opened: { after: number; watcher: Watcher }[] = [];
      while (writing && opened.length < 100) {
        const after = await store.currentRevision();
        opened.push({ after, watcher: await Watcher.open(store, after) });
        await new Promise((resolve) => setImmediate(resolve));
      }
      const last = await finished;
      const all = await changesBetween(store, start, last, { prevValue: false });
      for (const { after, watcher } of opened) {
        await watcher.until(last);
        assert.deepEqual(
          watcher.changes,
          all.filter((change) => change.revision > after),
        );
        await watcher.close();
      }
    },
  },
  {
    id: 'watch.list-then-watch',
    title: 'a list and a watch from its revision together are the state, whatever is written meanwhile',
    async run({ store }) {
      const twin = await Twin.of(store);
      for (let round = 0; round < 10; round++) {
        const state = new Map<string, string>();
        let revision = 0;
        for await (const chunk of store.list(everything)) {
          revision = chunk.revision;
          for (const entry of chunk.entries) state.set(entry.key, Buffer.from(entry.value).toString('latin1'));
          await twin.put(`/a/${round}`, `v${round}`);
          await twin.put('/b', `v${round}`);
        }
        if (round % 3 === 0) await twin.remove(`/a/${round}`);
        for (const change of await changesBetween(store, revision, twin.model.revision)) {
          if (change.entry === undefined) state.delete(change.key);
          else state.set(change.key, change.entry.value);
        }
        const expected = twin.model.list(everything, twin.model.revision).map((entry) => [entry.key, entry.value]);
        assert.deepEqual(new Map(expected as [string, string][]), state);
      }
    },
  },
];
