import assert from 'node:assert/strict';
import { StorageError, StorageErrorCode } from '@keelson/core';
import type { ResourceStorageCase } from '../harness.ts';
import {
  any,
  bodyOf,
  createPod,
  everything,
  exactly,
  labelled,
  latest,
  pagesOf,
  podJson,
  podKey,
  podKind,
  podPrefix,
  putPod,
  shown,
  textOf,
} from '../objects.ts';
import { describe, endOf, eventsOf, eventsUntil, failsWith, turns, until, withTime } from '../waiting.ts';

const cache = ['cache'] as const;
const all = { at: latest, predicate: everything } as const;

export const cacheCases: readonly ResourceStorageCase[] = [
  {
    id: 'cache.reads-from-memory',
    requires: cache,
    title: 'once loaded, reads and watches ask the store for nothing but its revision',
    async run({ pods, store }) {
      await pods.list(podPrefix, all);
      for (let i = 0; i < 10; i++) await createPod(pods, 'a', `x${i}`);
      const { get, list, watch } = store.calls;
      await pods.get(podKey('a', 'x1'), latest);
      await pagesOf(pods, podPrefix, 3);
      await pods.list(podPrefix, { at: exactly((await pods.currentRevision()) - 1), predicate: everything });
      (await pods.watch(podPrefix, { predicate: everything, from: { start: 'state', fresh: true } })).close();
      assert.deepEqual([store.calls.get, store.calls.list, store.calls.watch], [get, list, watch]);
    },
  },
  {
    id: 'cache.coalesced-probes',
    requires: cache,
    title: 'any number of concurrent consistent reads share their questions for the revision',
    async run({ pods, store }) {
      await pods.list(podPrefix, all);
      const before = store.calls.currentRevision;
      await Promise.all(Array.from({ length: 200 }, () => pods.get(podKey('a', 'x'), latest)));
      assert.ok(store.calls.currentRevision - before <= 2, `${store.calls.currentRevision - before} questions`);
    },
  },
  {
    id: 'cache.probe-after-request',
    requires: cache,
    title: 'a consistent read is not answered from a question that was put before it',
    async run({ pods, others, store }) {
      await pods.list(podPrefix, all);
      let letGo = () => {};
      const held = new Promise<void>((resolve) => {
        letGo = resolve;
      });
      let first = true;
      store.afterProbe = () => {
        if (!first) return undefined;
        first = false;
        return held;
      };
      const early = pods.get(podKey('a', 'x'), latest);
      await turns();
      await createPod(others, 'a', 'x', { text: 'new' });
      const late = pods.get(podKey('a', 'x'), latest);
      await turns();
      letGo();
      await early;
      assert.equal(textOf(await late), 'new');
    },
  },
  {
    id: 'cache.lagging-feed',
    requires: cache,
    title: 'while the feed stands still, any state is served, and a consistent read fails with Timeout instead of lying',
    async run({ pods, others, store, clock }) {
      await createPod(pods, 'a', 'x', { text: 'old' });
      await pods.list(podPrefix, all);
      store.holdStreams();
      await putPod(others, 'a', 'x', { text: 'new' });
      assert.equal(textOf(await pods.get(podKey('a', 'x'), any)), 'old');
      await failsWith('Timeout', () => withTime(clock, pods.get(podKey('a', 'x'), latest)));
      await failsWith('Timeout', () => withTime(clock, pods.list(podPrefix, all)));
      const reading = pods.get(podKey('a', 'x'), latest);
      await turns();
      store.releaseStreams();
      assert.equal(textOf(await withTime(clock, reading)), 'new');
    },
  },
  {
    id: 'cache.own-writes',
    requires: ['cache', 'denseRevisions'],
    title: 'own writes are in consistent reads and on watches even before the feed brings them, and not twice',
    async run({ pods, store }) {
      await pods.list(podPrefix, all);
      const from = { start: 'changesAfter', revision: await pods.currentRevision() } as const;
      const watch = await pods.watch(podPrefix, { predicate: everything, from });
      store.holdStreams();
      const created = await createPod(pods, 'a', 'x', { text: '1' });
      const updated = await putPod(pods, 'a', 'x', { text: '2' });
      assert.equal(textOf(await pods.get(podKey('a', 'x'), latest)), '2');
      assert.equal((await eventsOf(watch, 2)).length, 2);
      store.releaseStreams();
      await turns();
      const last = await putPod(pods, 'a', 'x', { text: '3' });
      assert.deepEqual(describe(await eventsUntil(watch, last.revision)), [`MODIFIED x 3@${last.revision}`]);
      assert.ok(created.revision < updated.revision);
    },
  },
  {
    id: 'cache.shared-object',
    requires: cache,
    title: 'watches that see a change the same way get the very same event, whose frame is made once',
    async run({ pods }) {
      const from = { start: 'changesAfter', revision: await pods.currentRevision() } as const;
      const web = labelled('app', 'web');
      const open = (prefix: string, predicate = everything) => pods.watch(prefix, { predicate, from });
      const watches = await Promise.all([open(podPrefix), open(podPrefix), open(`${podPrefix}a/`), open(podPrefix, web)]);
      await createPod(pods, 'a', 'x', { labels: { app: 'web' } });
      let made = 0;
      const frame = {
        id: 'frame',
        encode: () => {
          made++;
          return Buffer.from('frame');
        },
      };
      const events = [];
      for (const watch of watches) events.push(...(await eventsOf(watch, 1)));
      for (const event of events) assert.equal(event.encoded(frame), events[0]?.encoded(frame));
      assert.equal(made, 1);
    },
  },
  {
    id: 'cache.load-under-writes',
    requires: cache,
    title: 'a cache that is filled while objects change misses no change',
    async run({ pods, others, store, storages }) {
      for (let i = 0; i < 50; i++) await createPod(others, 'a', `x${i}`, { text: 'old' });
      store.beforeList = async () => {
        for (let i = 0; i < 25; i++) await putPod(others, 'a', `x${i}`, { text: 'during' });
        await turns();
      };
      const writing = (async () => {
        for (let i = 25; i < 50; i++) await putPod(others, 'a', `x${i}`, { text: 'beside' });
      })();
      assert.ok(storages.ready());
      await pods.list(podPrefix, { at: any, predicate: everything });
      await writing;
      const list = await pods.list(podPrefix, all);
      const direct = await others.list(podPrefix, all);
      assert.deepEqual(shown(list), shown(direct));
      assert.ok(![...list.objects()].some((object) => textOf(object) === 'old'));
    },
  },
  {
    id: 'cache.broken-stream',
    requires: cache,
    title: 'when the stream breaks the feed resumes it: watchers notice nothing, and nothing is missed',
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
    title: 'while the store cannot be watched the storages are not ready, and they come back',
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
    title: 'when the feed cannot be resumed, watches end with Compacted and reads are right again afterwards',
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
    title:
      'a stream that compaction overtakes where the cache is ahead of it by own writes is opened anew, and watches notice nothing',
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
    title: 'when the feed cannot be resumed, a watch that begins at or after what is kept can go on where it was',
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
    title: 'storages start also when compaction overtakes their first looks at the store',
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
    title: 'a kind is read into memory again when compaction overtakes the reading, and no reader hears of it',
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
    title: 'when the store was restored, watches end with EpochChanged and everything is read anew',
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
  {
    id: 'window.history-start',
    requires: cache,
    title: 'a watch from before the window begins in the history of the store and goes on live',
    async run({ narrow, others }) {
      const pods = (await narrow(5)).forKind(podKind);
      await pods.list(podPrefix, all);
      const start = await pods.currentRevision();
      for (let i = 0; i < 50; i++) await putPod(pods, 'a', `x${i % 7}`, { text: String(i), labels: { odd: String(i % 2) } });
      const from = { start: 'changesAfter', revision: start } as const;
      const whole = await pods.watch(podPrefix, { predicate: everything, from });
      const odd = await pods.watch(`${podPrefix}a/`, { predicate: labelled('odd', '1'), from });
      for (let i = 50; i < 60; i++) await putPod(others, 'a', `x${i % 7}`, { text: String(i), labels: { odd: String(i % 2) } });
      const end = await pods.currentRevision();
      assert.deepEqual(
        (await eventsUntil(whole, end, 3)).map(({ object }) => textOf(object)),
        Array.from({ length: 60 }, (_, i) => String(i)),
      );
      const direct = await others.watch(`${podPrefix}a/`, { predicate: labelled('odd', '1'), from });
      assert.deepEqual(describe(await eventsUntil(odd, end)), describe(await eventsUntil(direct, end)));
      const next = await putPod(pods, 'a', 'live', { text: 'live' });
      assert.deepEqual(describe(await eventsUntil(whole, next.revision)), [`ADDED live live@${next.revision}`]);
    },
  },
  {
    id: 'window.restart',
    requires: cache,
    title: 'after a restart any number of watches resume from old revisions by one look into the history of the store',
    async run({ narrow, pods, others, store }) {
      const start = await pods.currentRevision();
      for (let i = 0; i < 60; i++) {
        const name = `x${i % 9}`;
        await pods.update(podKey('a', name), (current) =>
          current !== undefined && i % 4 === 0
            ? { do: 'delete' }
            : { do: 'write', json: podJson('a', name, { text: String(i) }) },
        );
      }
      const restarted = (await narrow(1000)).forKind(podKind);
      await restarted.list(podPrefix, all);
      const { watch: before } = store.calls;
      const end = await pods.currentRevision();
      const open = (after: number) =>
        restarted.watch(podPrefix, { predicate: everything, from: { start: 'changesAfter', revision: after } });
      const watches = await Promise.all(Array.from({ length: 100 }, (_, i) => open(start + (i % 10 === 0 ? 0 : 5))));
      assert.ok(store.calls.watch - before <= 2, `${store.calls.watch - before} looks`);
      for (const [i, watch] of watches.entries()) {
        const after = start + (i % 10 === 0 ? 0 : 5);
        const direct = await others.watch(podPrefix, { predicate: everything, from: { start: 'changesAfter', revision: after } });
        assert.deepEqual(describe(await eventsUntil(watch, end)), describe(await eventsUntil(direct, end)));
        direct.close();
      }
      for (let revision = start; revision <= end; revision++) {
        const options = { at: exactly(revision), predicate: everything };
        assert.deepEqual(shown(await restarted.list(podPrefix, options)), shown(await others.list(podPrefix, options)));
      }
      const next = await putPod(others, 'a', 'live', { text: 'live' });
      for (const watch of watches) assert.equal((await eventsUntil(watch, next.revision)).length, 1);
    },
  },
  {
    id: 'window.slow-watcher',
    requires: cache,
    title: 'a watcher whose place has left the window goes on in the history of the store, more than once',
    async run({ narrow }) {
      const pods = (await narrow(4)).forKind(podKind);
      const from = { start: 'changesAfter', revision: await pods.currentRevision() } as const;
      const slow = await pods.watch(podPrefix, { predicate: everything, from });
      const fast = await pods.watch(podPrefix, { predicate: everything, from });
      const seen: (string | undefined)[] = [];
      for (let i = 0; i < 900; i++) {
        await createPod(pods, 'a', `x${i}`, { text: String(i) });
        if (i % 10 === 0) await eventsUntil(fast, await pods.currentRevision());
        if (i % 290 === 200) for (const { object } of await eventsOf(slow, 20)) seen.push(textOf(object));
      }
      for (const { object } of await eventsUntil(slow, await pods.currentRevision(), 50)) seen.push(textOf(object));
      assert.deepEqual(
        seen,
        Array.from({ length: 900 }, (_, i) => String(i)),
      );
    },
  },
  {
    id: 'window.slow-watcher-compacted',
    requires: cache,
    title: 'a watcher whose place has left both window and history gets Compacted; the others notice nothing',
    async run({ narrow, store }) {
      const pods = (await narrow(4)).forKind(podKind);
      const from = { start: 'changesAfter', revision: await pods.currentRevision() } as const;
      const slow = await pods.watch(podPrefix, { predicate: everything, from });
      const fast = await pods.watch(podPrefix, { predicate: everything, from });
      let read = 0;
      for (let i = 0; i < 600; i++) {
        await createPod(pods, 'a', `x${i}`);
        read += (await eventsOf(fast, 1)).length;
      }
      await store.inner.compact(await store.inner.currentRevision());
      assert.equal((await endOf(slow)).code, 'Compacted');
      await createPod(pods, 'a', 'y');
      read += (await eventsOf(fast, 1)).length;
      assert.equal(read, 601);
    },
  },
  {
    id: 'window.exact-outside',
    requires: cache,
    title: 'an exact state older than the window comes from the store, and is Compacted when the store has lost it',
    async run({ narrow, store }) {
      const pods = (await narrow(3)).forKind(podKind);
      await pods.list(podPrefix, all);
      const revisions: number[] = [];
      for (let i = 0; i < 20; i++) revisions.push((await createPod(pods, 'a', `x${10 + i}`)).revision);
      for (const [i, revision] of revisions.entries()) {
        const list = await pods.list(podPrefix, { at: exactly(revision), predicate: everything });
        assert.equal(list.count, i + 1);
        assert.equal(list.revision, revision);
        assert.equal(JSON.parse(`[${bodyOf(list)}]`).length, i + 1);
      }
      await store.inner.compact(revisions[15] ?? 0);
      await failsWith('Compacted', () => pods.list(podPrefix, { at: exactly(revisions[3] ?? 0), predicate: labelled('a', 'b') }));
      assert.equal((await pods.list(podPrefix, { at: exactly(revisions[19] ?? 0), predicate: everything })).count, 20);
    },
  },
  {
    id: 'window.outlives-compaction',
    requires: cache,
    title: 'what the window holds is served although the store has compacted it',
    async run({ pods, store }) {
      await pods.list(podPrefix, all);
      const start = await pods.currentRevision();
      const created = await createPod(pods, 'a', 'x', { text: '1' });
      await putPod(pods, 'a', 'x', { text: '2' });
      const end = await pods.currentRevision();
      await store.inner.compact(end);
      assert.equal(textOf(await pods.get(podKey('a', 'x'), exactly(created.revision))), '1');
      const watch = await pods.watch(podPrefix, { predicate: everything, from: { start: 'changesAfter', revision: start } });
      assert.equal((await eventsUntil(watch, end)).length, 2);
    },
  },
  {
    id: 'window.many-states',
    requires: cache,
    title: 'any of thousands of past states can be shown, in any order',
    async run({ pods, log }) {
      await pods.list(podPrefix, all);
      const states: { revision: number; keys: string }[] = [];
      const present = new Map<string, string>();
      for (let i = 0; i < 2_600; i++) {
        const name = `x${(i * 37) % 101}`;
        const text = String(i);
        const { object } = await pods.update(podKey('a', name), (current) =>
          current !== undefined && i % 5 === 0 ? { do: 'delete' } : { do: 'write', json: podJson('a', name, { text }) },
        );
        if (object.value<{ kind: string; apiVersion: string; metadata: object; spec: { text: string } }>().spec.text === text) {
          present.set(name, text);
        } else present.delete(name);
        if (i % 13 === 0) states.push({ revision: object.revision, keys: digest(present) });
      }
      log(`${states.length} states`);
      for (let i = 0; i < states.length; i++) {
        const state = states[(i * 31) % states.length];
        assert.ok(state !== undefined);
        const list = await pods.list(podPrefix, { at: exactly(state.revision), predicate: everything });
        const shownNow = new Map(
          [...list.objects()].map((object) => [object.key.slice(podPrefix.length + 2), textOf(object) ?? '']),
        );
        assert.equal(digest(shownNow), state.keys, `at revision ${state.revision}`);
      }
    },
  },
];

function digest(present: ReadonlyMap<string, string>): string {
  return [...present]
    .map(([name, text]) => `${name}=${text}`)
    .sort()
    .join(' ');
}

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
