import assert from 'node:assert/strict';
import { StorageError, StorageErrorCode } from '@keelson/core';
import type { ResourceStorageCase } from '../harness.ts';
import { any, createPod, everything, latest, podKey, podKind, podPrefix, putPod, textOf } from '../objects.ts';
import { endOf, eventsUntil, turns, until, withTime } from '../waiting.ts';

const cache = ['cache'] as const;
const all = { at: latest, predicate: everything } as const;

/** Reads and watches when the feed breaks, or when the history of the store is compacted or replaced. */
export const cacheFeedCases: readonly ResourceStorageCase[] = [
  {
    id: 'cache.broken-stream',
    requires: cache,
    title: 'when the stream breaks the feed resumes it, and watches miss nothing',
    async run({ pods, others, store, storages, clock }) {
      const watch = await pods.watch(podPrefix, {
        predicate: everything,
        from: { start: 'changesAfter', revision: await pods.currentRevision() },
      });
      for (let round = 0; round < 5; round++) {
        store.holdStreams();
        for (let i = 0; i < 5; i++) await createPod(others, 'a', `x${round}${i}`);
        await turns(3);
        store.breakStreams(new StorageError(StorageErrorCode.Unavailable, 'cut'));
        store.releaseStreams();
        await turns(3);
        await createPod(others, 'a', `y${round}`);
      }
      const end = await others.currentRevision();
      const events = await withTime(clock, eventsUntil(watch, end));
      assert.equal(events.length, 30);
      assert.equal(new Set(events.map(({ object }) => object.key)).size, 30);
      await until(() => storages.ready(), 'the storages are ready');
    },
  },
  {
    id: 'cache.unreachable-store',
    requires: cache,
    title: 'while the store cannot be watched the storages are not ready, and become ready again',
    async run({ pods, others, store, storages, clock }) {
      await createPod(pods, 'a', 'x', { text: 'old' });
      await pods.list(podPrefix, all);
      store.beforeWatch = () => {
        throw new StorageError(StorageErrorCode.Unavailable, 'down');
      };
      store.breakStreams(new StorageError(StorageErrorCode.Unavailable, 'cut'));
      await until(() => !storages.ready(), 'the storages are not ready');
      assert.equal(textOf(await pods.get(podKey('a', 'x'), any)), 'old');
      await putPod(others, 'a', 'x', { text: 'new' });
      store.beforeWatch = undefined;
      await until(() => {
        clock.advance(1_000);
        return storages.ready();
      }, 'the storages are ready');
      assert.equal(textOf(await pods.get(podKey('a', 'x'), latest)), 'new');
    },
  },
  {
    id: 'cache.compacted-feed',
    requires: cache,
    title: 'when the feed cannot be resumed, watches end with Compacted and later reads are correct',
    async run({ pods, others, store, clock }) {
      await createPod(pods, 'a', 'x', { text: 'old' });
      const watch = await pods.watch(podPrefix, {
        predicate: everything,
        from: { start: 'changesAfter', revision: await pods.currentRevision() },
      });
      store.holdStreams();
      for (let i = 0; i < 5; i++) await putPod(others, 'a', 'x', { text: String(i) });
      await store.inner.compact(await store.inner.currentRevision());
      await turns(3);
      store.breakStreams(new StorageError(StorageErrorCode.Unavailable, 'cut'));
      store.releaseStreams();
      await withTime(
        clock,
        until(() => watch.revision === 0 || isOver(watch), 'the watch has ended'),
      );
      assert.equal(textOf(await withTime(clock, pods.get(podKey('a', 'x'), latest))), '4');
      const again = await pods.watch(podPrefix, { predicate: everything, from: { start: 'state', fresh: true } });
      const next = await putPod(others, 'a', 'x', { text: '5' });
      assert.equal((await eventsUntil(again, next.revision)).length, 2);
    },
  },
  {
    id: 'cache.compacted-feed-behind-own-writes',
    requires: ['cache', 'denseRevisions'],
    title: 'a feed that is compacted while the cache is ahead by own writes is reopened without effect on watches',
    async run({ pods, others, store, clock }) {
      await createPod(pods, 'a', 'x', { text: 'old' });
      const from = { start: 'changesAfter', revision: await pods.currentRevision() } as const;
      const watch = await pods.watch(podPrefix, { predicate: everything, from });
      store.holdStreams();
      for (let i = 0; i < 5; i++) await createPod(pods, 'a', `own${i}`);
      const bound = await store.inner.currentRevision();
      assert.equal((await eventsUntil(watch, bound)).length, 5);
      await store.inner.compact(bound);
      const { list } = store.calls;
      store.breakStreams(new StorageError(StorageErrorCode.Compacted, 'overtaken', { revision: bound }));
      store.releaseStreams();
      await turns(3);
      const next = await putPod(others, 'a', 'x', { text: 'new' });
      assert.equal((await withTime(clock, eventsUntil(watch, next.revision))).length, 1);
      assert.equal(store.calls.list, list, 'nothing was read anew');
    },
  },
  {
    id: 'cache.compacted-feed-spares-the-unharmed',
    requires: cache,
    title: 'when the feed cannot be resumed, a watch that starts at or after the compacted revision continues',
    async run({ pods, others, store, clock }) {
      await createPod(pods, 'a', 'x', { text: 'old' });
      const revision = await pods.currentRevision();
      const harmed = await pods.watch(podPrefix, { predicate: everything, from: { start: 'changesAfter', revision } });
      store.holdStreams();
      for (let i = 0; i < 5; i++) await putPod(others, 'a', 'x', { text: String(i) });
      const bound = await store.inner.currentRevision();
      const start = { start: 'changesAfter', revision: bound } as const;
      const unharmed = await pods.watch(podPrefix, { predicate: everything, from: start });
      await store.inner.compact(bound);
      store.breakStreams(new StorageError(StorageErrorCode.Compacted, 'overtaken', { revision: bound }));
      assert.equal((await withTime(clock, endOf(harmed))).code, 'Compacted');
      assert.equal((await withTime(clock, endOf(unharmed))).code, 'Closed');
      store.releaseStreams();
      const next = await putPod(others, 'a', 'x', { text: '5' });
      const again = await withTime(clock, pods.watch(podPrefix, { predicate: everything, from: start }));
      assert.equal((await withTime(clock, eventsUntil(again, next.revision))).length, 1);
    },
  },
  {
    id: 'cache.start-overtaken',
    requires: cache,
    title: 'storages start also when the revision of their first reads is compacted',
    async run({ narrow, others, store }) {
      await createPod(others, 'a', 'x', { text: 'there' });
      let overtakes = 3;
      store.beforeWatch = () => {
        overtakes -= 1;
        if (overtakes >= 0) throw new StorageError(StorageErrorCode.Compacted, 'overtaken', { revision: 1 });
      };
      const pods = (await narrow(5)).forKind(podKind);
      assert.ok(overtakes < 0);
      assert.equal(textOf(await pods.get(podKey('a', 'x'), latest)), 'there');
    },
  },
  {
    id: 'cache.load-overtaken',
    requires: cache,
    title: 'when a compaction interrupts the loading of a kind, it is loaded again without an error for readers',
    async run({ narrow, others, store }) {
      await createPod(others, 'a', 'x', { text: 'there' });
      const pods = (await narrow(5)).forKind(podKind);
      let overtakes = 3;
      store.beforeList = () => {
        overtakes -= 1;
        if (overtakes >= 0) throw new StorageError(StorageErrorCode.Compacted, 'overtaken', { revision: 1 });
      };
      assert.equal((await pods.list(podPrefix, all)).count, 1);
      assert.ok(overtakes < 0);
    },
  },
  {
    id: 'cache.epoch',
    requires: cache,
    title: 'after a restore of the store, watches end with EpochChanged and everything is read again',
    async run({ pods, store, clock }) {
      await createPod(pods, 'a', 'x', { text: 'old' });
      const watch = await pods.watch(podPrefix, {
        predicate: everything,
        from: { start: 'changesAfter', revision: await pods.currentRevision() },
      });
      const lists = store.calls.list;
      const identity = await store.inner.identity();
      store.identityNow = { ...identity, epoch: identity.epoch + 1 };
      store.breakStreams(new StorageError(StorageErrorCode.Unavailable, 'cut'));
      assert.equal((await withTime(clock, endOf(watch))).code, 'EpochChanged');
      assert.equal(textOf(await withTime(clock, pods.get(podKey('a', 'x'), latest))), 'old');
      assert.ok(store.calls.list > lists);
    },
  },
];

function isOver(watch: { read(max: number): unknown }): boolean {
  try {
    watch.read(100);
    return false;
  } catch (error) {
    assert.ok(error instanceof StorageError);
    assert.equal(error.code, 'Compacted');
    return true;
  }
}
