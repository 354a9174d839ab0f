import assert from 'node:assert/strict';
import type { StoreCase } from '../harness.ts';
import { bytes, everything, put, refused, remove } from '../store-driver.ts';
import { busy } from '../traffic.ts';
import { changesBetween, Watcher } from '../watcher.ts';

/** Invariants 7, 8 and 10: what a watch delivers. */
export const watchCases: readonly StoreCase[] = [
  {
    id: 'watch.types-in-order',
    title: 'create, update, delete and another create are delivered in order with their entries',
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
    title: 'a waiting watch receives later writes',
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
    title: 'no change at or before the given revision is delivered',
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
    title: 'changes outside the range are not delivered, including siblings with a common prefix',
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
        assert.deepEqual(
          await changesBetween(store, after, model.revision, { range }),
          model.changesAfter(after, range),
        );
      }
    },
  },
  {
    id: 'watch.future-revision',
    title: 'a watch from a future revision delivers only changes after it',
    async run({ store }) {
      const now = await put(store, '/a/now', 'x');
      for (const ahead of [1, 2, 5, 100]) {
        const watcher = await Watcher.open(store, now + ahead);
        const written: number[] = [];
        while ((written.at(-1) ?? 0) <= now + ahead)
          written.push(await put(store, `/a/${ahead}/${written.length}`, 'x'));
        await watcher.until(written.at(-1) as number);
        const seen = watcher.changes.map((change) => change.revision);
        assert.ok(seen.length > 0 && seen.every((revision) => revision > now + ahead), `${seen} after ${now + ahead}`);
        await watcher.close();
      }
    },
  },
  {
    id: 'watch.old-values',
    title: 'a change contains the value of its revision, however often the key changed since',
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
    title: 'a rejected write is not a change',
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
    title: 'updates and deletes have a prev when it is requested, and not otherwise',
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
    title: 'a live change has the same prev as one from history',
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
    title: 'prev is present also when it was written long before the watch started',
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
    title: 'a create has no prev, also when the key existed before',
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
];
