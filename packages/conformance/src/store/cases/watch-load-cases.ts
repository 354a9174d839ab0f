import assert from 'node:assert/strict';
import type { StoreCase } from '../harness.ts';
import { everything, put, putAll } from '../store-driver.ts';
import { busy, trafficKeys as keys } from '../traffic.ts';
import { Twin } from '../twin.ts';
import { changesBetween, Watcher } from '../watcher.ts';

/** Invariants 7 and 8 with many writers, many watchers and much data. */
export const watchLoadCases: readonly StoreCase[] = [
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
    title: 'a watch concurrent with writers delivers every change once, in ascending order',
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
    title: 'a backlog of thousands of changes is delivered completely and in order',
    async run({ store }) {
      const after = await store.currentRevision();
      const keys = Array.from({ length: 3000 }, (_, i) => `/a/${i % 500}/${i}`);
      const revisions = await putAll(store, keys, String);
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
    title: 'changes with large values are delivered completely',
    async run({ store }) {
      const after = await store.currentRevision();
      let expect = 0;
      for (let i = 0; i < 20; i++) expect = await put(store, '/a', Buffer.alloc(300_000, `${i}`), expect);
      const changes = await changesBetween(store, after, expect);
      for (const [i, change] of changes.entries())
        assert.equal(change.entry?.value, Buffer.alloc(300_000, `${i}`).toString());
      assert.equal(changes.length, 20);
    },
  },
  {
    id: 'watch.many-watchers-agree',
    title: 'many watchers of the same range receive the same changes',
    async run({ store }) {
      const after = await store.currentRevision();
      const watchers = await Promise.all(
        Array.from({ length: 50 }, () => Watcher.open(store, after, { prevValue: true })),
      );
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
    title: 'a watcher that does not pull delays no other watcher and misses nothing',
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
    title: 'watchers of different ranges receive exactly the changes of their range',
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
    title: 'watches that start during writes have neither a gap nor an overlap with earlier changes',
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
    title: 'a list and a watch from its revision together result in the state, whatever is written meanwhile',
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
