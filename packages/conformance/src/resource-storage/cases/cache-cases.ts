import assert from 'node:assert/strict';
import type { ResourceStorageCase } from '../harness.ts';
import {
  any,
  createPod,
  everything,
  exactly,
  labelled,
  latest,
  pagesOf,
  podKey,
  podPrefix,
  putPod,
  shown,
  textOf,
} from '../objects.ts';
import { describe, eventsOf, eventsUntil, failsWith, turns, untilTimeout, withTime } from '../waiting.ts';

const cache = ['cache'] as const;
const all = { at: latest, predicate: everything } as const;

/** Reads, writes and watches with a working feed of the cache. */
export const cacheCases: readonly ResourceStorageCase[] = [
  {
    id: 'cache.reads-from-memory',
    requires: cache,
    title: 'once loaded, reads and watches request only the revision of the store',
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
    title: 'concurrent consistent reads share requests for the revision',
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
    title: 'a consistent read does not use a request for the revision that was sent before it',
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
    title:
      'while the feed stalls, any state is served, and a consistent read fails with Timeout instead of a wrong result',
    async run({ pods, others, store, clock }) {
      await createPod(pods, 'a', 'x', { text: 'old' });
      await pods.list(podPrefix, all);
      store.holdStreams();
      await putPod(others, 'a', 'x', { text: 'new' });
      assert.equal(textOf(await pods.get(podKey('a', 'x'), any)), 'old');
      await failsWith('Timeout', () => untilTimeout(clock, pods.get(podKey('a', 'x'), latest)));
      await failsWith('Timeout', () => untilTimeout(clock, pods.list(podPrefix, all)));
      const reading = pods.get(podKey('a', 'x'), latest);
      await turns();
      store.releaseStreams();
      assert.equal(textOf(await withTime(clock, reading)), 'new');
    },
  },
  {
    id: 'cache.own-writes',
    requires: ['cache', 'denseRevisions'],
    title: 'own writes are in consistent reads and watches before the feed delivers them, and only once',
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
    title: 'watches with the same view of a change share one event, whose frame is encoded once',
    async run({ pods }) {
      const from = { start: 'changesAfter', revision: await pods.currentRevision() } as const;
      const web = labelled('app', 'web');
      const open = (prefix: string, predicate = everything) => pods.watch(prefix, { predicate, from });
      const watches = await Promise.all([
        open(podPrefix),
        open(podPrefix),
        open(`${podPrefix}a/`),
        open(podPrefix, web),
      ]);
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
];
