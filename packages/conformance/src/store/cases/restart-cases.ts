import assert from 'node:assert/strict';
import type { StoreCase } from '../harness.ts';
import { bytes, everything, failsWith, listAll, put, refused, remove, succeeded } from '../store-driver.ts';
import { Twin } from '../twin.ts';
import { changesBetween, Watcher } from '../watcher.ts';

/** Invariants 3 and 12: the state after a restart or a crash. */
export const restartCases: readonly StoreCase[] = [
  {
    id: 'close.finishes-writes',
    title: 'writes in flight are acknowledged and persisted, or fail with Closed',
    requires: ['reopen', 'durable'],
    async run({ store, reopen }) {
      const writes = Array.from({ length: 100 }, (_, i) =>
        store.write({ op: 'put', key: `/a/${String(i).padStart(3, '0')}`, value: bytes('x'), expect: 0 }).then(
          (result) => succeeded(result),
          (error: unknown) => failsWith('Closed', () => Promise.reject(error)).then(() => undefined),
        ),
      );
      const closing = store.close();
      const revisions = await Promise.all(writes);
      await closing;
      const again = await reopen();
      const { entries } = await listAll(again, everything);
      const kept = new Map(entries.map((entry) => [entry.key, entry.modRevision]));
      for (const [i, revision] of revisions.entries()) {
        assert.equal(kept.get(`/a/${String(i).padStart(3, '0')}`), revision);
      }
      assert.ok(
        revisions.some((revision) => revision !== undefined),
        'a write under way is finished',
      );
    },
  },
  {
    id: 'reopen.identity',
    title: 'identity and epoch are the same after a restart',
    requires: ['reopen', 'durable'],
    async run({ store, reopen }) {
      const identity = await store.identity();
      await put(store, '/a', 'x');
      assert.deepEqual(await (await reopen()).identity(), identity);
    },
  },
  {
    id: 'reopen.empty',
    title: 'an empty store is empty after a restart, at the same revision',
    requires: ['reopen', 'durable'],
    async run({ store, reopen }) {
      const revision = await store.currentRevision();
      const again = await reopen();
      assert.equal(await again.currentRevision(), revision);
      assert.deepEqual((await listAll(again, everything)).keys, []);
    },
  },
  {
    id: 'reopen.state',
    title: 'state, revisions and createRevisions are the same after a restart',
    requires: ['reopen', 'durable'],
    async run({ store, reopen }) {
      const twin = await Twin.of(store);
      for (let i = 0; i < 60; i++) await twin.put(`/a/${i % 9}`, `v${i}`);
      await twin.remove('/a/3');
      const again = await reopen();
      const listed = await listAll(again, everything);
      assert.deepEqual(listed.entries, twin.model.list(everything, twin.model.revision));
      assert.equal(listed.revision, twin.model.revision);
      refused(await again.write({ op: 'put', key: '/a/3', value: bytes('x'), expect: twin.model.revision - 1 }));
    },
  },
  {
    id: 'reopen.history',
    title: 'history persists across a restart: reads and watches of old revisions have the same results',
    requires: ['reopen', 'durable'],
    async run({ store, reopen }) {
      const twin = await Twin.of(store);
      const start = twin.model.revision;
      for (let i = 0; i < 40; i++) {
        if (i % 5 === 4) await twin.remove(`/a/${(i - 1) % 6}`);
        else await twin.put(`/a/${i % 6}`, `v${i}`);
      }
      const again = await reopen();
      assert.deepEqual(await changesBetween(again, start, twin.model.revision), twin.model.changes);
      for (const { revision } of twin.model.changes) {
        assert.deepEqual(
          (await listAll(again, everything, { revision })).entries,
          twin.model.list(everything, revision),
        );
      }
    },
  },
  {
    id: 'reopen.revisions-continue',
    title: 'no revision is assigned twice, over many restarts',
    requires: ['reopen', 'durable'],
    async run({ store, reopen }) {
      let current = store;
      let last = await store.currentRevision();
      for (let round = 0; round < 8; round++) {
        for (let i = 0; i < 3; i++) {
          const revision = await put(current, `/a/${round}/${i}`, 'x');
          assert.ok(revision > last);
          last = revision;
        }
        if (round % 2 === 1) last = await remove(current, `/a/${round}/2`, last);
        current = await reopen();
        assert.equal(await current.currentRevision(), last);
      }
      assert.equal((await listAll(current, everything)).entries.length, 20);
    },
  },
  {
    id: 'reopen.compaction',
    title: 'the compacted revision persists across a restart',
    requires: ['reopen', 'durable'],
    async run({ store, reopen }) {
      const twin = await Twin.of(store);
      for (let i = 0; i < 30; i++) await twin.put(`/a/${i % 4}`, `v${i}`);
      const bound = twin.model.changes[15]?.revision as number;
      await store.compact(bound);
      const again = await reopen();
      assert.equal(await again.compactedRevision(), bound);
      await failsWith('Compacted', () => again.watch(everything, { after: bound - 1 }));
      await failsWith('Compacted', () => again.get('/a/0', { revision: bound - 1 }));
      assert.deepEqual(
        await changesBetween(again, bound, twin.model.revision),
        twin.model.changesAfter(bound, everything),
      );
      assert.deepEqual(
        (await listAll(again, everything, { revision: bound })).entries,
        twin.model.list(everything, bound),
      );
    },
  },
  {
    id: 'reopen.resume-watch',
    title: 'a watch resumed at its frontier after a restart has no gap',
    requires: ['reopen', 'durable'],
    async run({ store, reopen }) {
      const twin = await Twin.of(store);
      const watcher = await Watcher.open(store, twin.model.revision, { prevValue: true });
      for (let i = 0; i < 20; i++) await twin.put(`/a/${i % 4}`, `v${i}`);
      await watcher.pull();
      const { frontier } = watcher.stream;
      const again = await reopen();
      const rest = await changesBetween(again, frontier, twin.model.revision);
      assert.deepEqual([...watcher.changes, ...rest], twin.model.changes);
    },
  },
  {
    id: 'kill.acknowledged-writes',
    title: 'acknowledged writes, their revisions and their history persist when the process is killed',
    requires: ['killAndReopen', 'durable'],
    async run({ store, killAndReopen }) {
      const twin = await Twin.of(store);
      const start = twin.model.revision;
      for (let i = 0; i < 50; i++) await twin.put(`/a/${i % 9}`, `v${i}`);
      const again = await killAndReopen();
      assert.deepEqual((await listAll(again, everything)).entries, twin.model.list(everything, twin.model.revision));
      assert.deepEqual(await changesBetween(again, start, twin.model.revision), twin.model.changes);
      assert.ok((await put(again, '/b', 'x')) > twin.model.revision);
    },
  },
];
