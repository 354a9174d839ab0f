import assert from 'node:assert/strict';
import { StorageError, StorageErrorCode } from '@keelson/core';
import type { WatchEvent } from '@keelson/core/internal';
import type { ResourceStorageCase } from '../harness.ts';
import {
  bodyOf,
  createPod,
  everything,
  exactly,
  labelled,
  latest,
  notOlderThan,
  podJson,
  podKey,
  podKind,
  podPrefix,
  putPod,
  shown,
  textOf,
} from '../objects.ts';
import { describe, endOf, eventsOf, eventsUntil, failsWith } from '../waiting.ts';

const cache = ['cache'] as const;
const all = { at: latest, predicate: everything } as const;

/** Window of a cache: which old revisions it can serve. */
export const windowCases: readonly ResourceStorageCase[] = [
  {
    id: 'window.history-start',
    requires: cache,
    title: 'a watch from before the window starts in the history of the store and continues live',
    async run({ narrow, others }) {
      const pods = (await narrow(5)).forKind(podKind);
      await pods.list(podPrefix, all);
      const start = await pods.currentRevision();
      for (let i = 0; i < 50; i++)
        await putPod(pods, 'a', `x${i % 7}`, { text: String(i), labels: { odd: String(i % 2) } });
      const from = { start: 'changesAfter', revision: start } as const;
      const whole = await pods.watch(podPrefix, { predicate: everything, from });
      const odd = await pods.watch(`${podPrefix}a/`, { predicate: labelled('odd', '1'), from });
      for (let i = 50; i < 60; i++)
        await putPod(others, 'a', `x${i % 7}`, { text: String(i), labels: { odd: String(i % 2) } });
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
    id: 'window.history-fails',
    requires: cache,
    title: 'a watch whose history fails ends there, without the live changes after the gap',
    async run({ narrow, store }) {
      const pods = (await narrow(5)).forKind(podKind);
      await pods.list(podPrefix, all);
      const start = await pods.currentRevision();
      const from = { start: 'changesAfter', revision: start } as const;
      for (let i = 0; i < 20; i++) await putPod(pods, 'a', 'x', { text: String(i) });
      // The window contains the last five events, so that this watch needs the history of the store.
      (await pods.watch(podPrefix, { predicate: everything, from })).close();
      store.holdStreams('later');
      const watch = await pods.watch(podPrefix, { predicate: everything, from });
      const live = await putPod(pods, 'a', 'live', { text: 'live' });
      await pods.list(podPrefix, { at: notOlderThan(live.revision), predicate: everything });
      store.breakStreams(
        new StorageError(StorageErrorCode.Compacted, 'history is gone', { revision: live.revision }),
        'held',
      );
      store.releaseStreams();
      const seen: WatchEvent[] = [];
      const failure = await endOf(watch, seen);
      assert.equal(failure.code, 'Compacted');
      assert.deepEqual(describe(seen), []);
    },
  },
  {
    id: 'window.history-ahead',
    requires: cache,
    title: 'changes that the history delivered before the cache received them are not delivered again',
    async run({ narrow, others, store }) {
      const pods = (await narrow(5)).forKind(podKind);
      await pods.list(podPrefix, all);
      const start = await pods.currentRevision();
      const texts = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => String(from + i));
      const put = async (text: string) => putPod(others, 'a', 'x', { text, labels: { odd: String(Number(text) % 2) } });
      for (const text of texts(0, 20)) await put(text);
      await eventsUntil(
        await pods.watch(podPrefix, { predicate: everything, from: { start: 'state', fresh: true } }),
        await pods.currentRevision(),
      );
      store.holdStreams('open');
      for (const text of texts(20, 30)) await put(text);
      const from = { start: 'changesAfter', revision: start } as const;
      const whole = await pods.watch(podPrefix, { predicate: everything, from });
      const odd = await pods.watch(`${podPrefix}a/`, { predicate: labelled('odd', '1'), from });
      const ahead = await pods.currentRevision();
      const seen = await eventsUntil(whole, ahead, 3);
      const seenOdd = await eventsUntil(odd, ahead, 3);
      store.releaseStreams();
      for (const text of texts(30, 40)) await put(text);
      const end = await pods.currentRevision();
      seen.push(...(await eventsUntil(whole, end, 3)));
      seenOdd.push(...(await eventsUntil(odd, end, 3)));
      assert.deepEqual(
        seen.map(({ object }) => textOf(object)),
        texts(0, 40),
      );
      const direct = await others.watch(`${podPrefix}a/`, { predicate: labelled('odd', '1'), from });
      assert.deepEqual(describe(seenOdd), describe(await eventsUntil(direct, end)));
    },
  },
  {
    id: 'window.restart',
    requires: cache,
    title: 'after a restart many watches resume from old revisions with one read of the history of the store',
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
        const direct = await others.watch(podPrefix, {
          predicate: everything,
          from: { start: 'changesAfter', revision: after },
        });
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
    title: 'a watch whose position has left the window continues in the history of the store, repeatedly',
    async run({ narrow }) {
      const pods = (await narrow(4)).forKind(podKind);
      const from = { start: 'changesAfter', revision: await pods.currentRevision() } as const;
      const slow = await pods.watch(podPrefix, { predicate: everything, from });
      const fast = await pods.watch(podPrefix, { predicate: everything, from });
      const seen: (string | undefined)[] = [];
      for (let i = 0; i < 400; i++) {
        await createPod(pods, 'a', `x${i}`, { text: String(i) });
        if (i % 10 === 0) await eventsUntil(fast, await pods.currentRevision());
        if (i % 130 === 90) for (const { object } of await eventsOf(slow, 20)) seen.push(textOf(object));
      }
      for (const { object } of await eventsUntil(slow, await pods.currentRevision(), 50)) seen.push(textOf(object));
      assert.deepEqual(
        seen,
        Array.from({ length: 400 }, (_, i) => String(i)),
      );
    },
  },
  {
    id: 'window.slow-watcher-compacted',
    requires: cache,
    title: 'a watch whose position has left window and history fails with Compacted, without effect on others',
    async run({ narrow, store }) {
      const pods = (await narrow(4)).forKind(podKind);
      const from = { start: 'changesAfter', revision: await pods.currentRevision() } as const;
      const slow = await pods.watch(podPrefix, { predicate: everything, from });
      const fast = await pods.watch(podPrefix, { predicate: everything, from });
      let read = 0;
      for (let i = 0; i < 300; i++) {
        await createPod(pods, 'a', `x${i}`);
        read += (await eventsOf(fast, 1)).length;
      }
      await store.inner.compact(await store.inner.currentRevision());
      assert.equal((await endOf(slow)).code, 'Compacted');
      await createPod(pods, 'a', 'y');
      read += (await eventsOf(fast, 1)).length;
      assert.equal(read, 301);
    },
  },
  {
    id: 'window.exact-outside',
    requires: cache,
    title:
      'an exact state older than the window is read from the store, and fails with Compacted when it is not retained',
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
      await failsWith('Compacted', () =>
        pods.list(podPrefix, { at: exactly(revisions[3] ?? 0), predicate: labelled('a', 'b') }),
      );
      assert.equal((await pods.list(podPrefix, { at: exactly(revisions[19] ?? 0), predicate: everything })).count, 20);
    },
  },
  {
    id: 'window.outlives-compaction',
    requires: cache,
    title: 'revisions in the window are served although the store has compacted them',
    async run({ pods, store }) {
      await pods.list(podPrefix, all);
      const start = await pods.currentRevision();
      const created = await createPod(pods, 'a', 'x', { text: '1' });
      await putPod(pods, 'a', 'x', { text: '2' });
      const end = await pods.currentRevision();
      await store.inner.compact(end);
      assert.equal(textOf(await pods.get(podKey('a', 'x'), exactly(created.revision))), '1');
      const watch = await pods.watch(podPrefix, {
        predicate: everything,
        from: { start: 'changesAfter', revision: start },
      });
      assert.equal((await eventsUntil(watch, end)).length, 2);
    },
  },
  {
    id: 'window.many-states',
    requires: cache,
    title: 'any of thousands of past states can be read, in any order',
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
        if (
          object.value<{ kind: string; apiVersion: string; metadata: object; spec: { text: string } }>().spec.text ===
          text
        ) {
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
