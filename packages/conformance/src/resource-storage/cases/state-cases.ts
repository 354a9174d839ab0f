import assert from 'node:assert/strict';
import type { ResourceStorageCase } from '../harness.ts';
import {
  createPod,
  everything,
  labelled,
  named,
  nodeJson,
  nodeKey,
  podKey,
  podPrefix,
  putPod,
  removePod,
  textOf,
} from '../objects.ts';
import { describe, eventsOf, eventsUntil, failsWith, turns, until, untilTimeout, withTime } from '../waiting.ts';

const fresh = { start: 'state', fresh: true } as const;

export const stateCases: readonly ResourceStorageCase[] = [
  {
    id: 'state.then-live',
    title: 'every object is an ADDED event in key order, then changes follow without gap or repetition',
    async run({ pods }) {
      for (const name of ['c', 'a', 'b']) await createPod(pods, 'n', name, { text: '1' });
      const watch = await pods.watch(podPrefix, { predicate: everything, from: fresh });
      await putPod(pods, 'n', 'b', { text: '2' });
      await removePod(pods, 'n', 'a');
      const end = await createPod(pods, 'n', 'd', { text: '1' });
      const events = (await eventsUntil(watch, end.revision)).map(
        ({ type, object }) => `${type} ${object.key.at(-1)} ${textOf(object)}`,
      );
      assert.deepEqual(events, ['ADDED a 1', 'ADDED b 1', 'ADDED c 1', 'MODIFIED b 2', 'DELETED a 1', 'ADDED d 1']);
    },
  },
  {
    id: 'state.revisions',
    title: 'objects of the initial state have their own revisions',
    async run({ pods }) {
      const x = await createPod(pods, 'a', 'x');
      const y = await createPod(pods, 'a', 'y');
      const watch = await pods.watch(podPrefix, { predicate: everything, from: fresh });
      assert.deepEqual(
        (await eventsOf(watch, 2)).map(({ object }) => object.revision),
        [x.revision, y.revision],
      );
    },
  },
  {
    id: 'state.end-bookmark',
    title: 'the end of the initial state is marked by a bookmark with its revision, also when it is empty',
    async run({ pods, nodes }) {
      const empty = await pods.watch(podPrefix, { predicate: everything, from: { ...fresh, endBookmark: true } });
      const now = await pods.currentRevision();
      assert.deepEqual(describe(await eventsOf(empty, 1)), [`BOOKMARK end @${now}`]);
      await createPod(pods, 'a', 'x', { text: '1' });
      const node = await nodes.create(nodeKey('n'), nodeJson('n'));
      const watch = await pods.watch(podPrefix, { predicate: everything, from: { ...fresh, endBookmark: true } });
      const next = await createPod(pods, 'a', 'y', { text: '2' });
      const events = await eventsUntil(watch, next.revision);
      assert.deepEqual(describe(events).slice(1), [`BOOKMARK end @${node.revision}`, `ADDED y 2@${next.revision}`]);
    },
  },
  {
    id: 'state.bookmark-form',
    title: 'a bookmark has the kind, a resourceVersion and, at the end of the initial state, the annotation',
    async run({ pods }) {
      const watch = await pods.watch(podPrefix, { predicate: everything, from: { ...fresh, endBookmark: true } });
      const [end] = await eventsOf(watch, 1);
      assert.deepEqual(end?.object.value(), {
        kind: 'Pod',
        apiVersion: 'v1',
        metadata: {
          resourceVersion: String(end?.object.revision),
          annotations: { 'k8s.io/initial-events-end': 'true' },
        },
      });
      watch.requestBookmark();
      const [plain] = await eventsOf(watch, 1);
      assert.equal(plain?.type, 'BOOKMARK');
      assert.equal(plain.initialEventsEnd ?? false, false);
      assert.deepEqual(plain.object.value(), {
        kind: 'Pod',
        apiVersion: 'v1',
        metadata: { resourceVersion: String(plain.object.revision) },
      });
    },
  },
  {
    id: 'state.fresh',
    title: 'a fresh initial state includes earlier writes of other processes',
    async run({ pods, others }) {
      await pods.list(podPrefix, { at: { at: 'any' }, predicate: everything });
      for (let i = 0; i < 10; i++) {
        await createPod(others, 'a', `x${i}`);
        const watch = await pods.watch(podPrefix, { predicate: everything, from: fresh });
        await eventsOf(watch, i + 1);
        watch.close();
      }
    },
  },
  {
    id: 'state.any',
    title: 'an initial state of any age and the changes after it result in the current state',
    async run({ pods, others }) {
      for (let i = 0; i < 5; i++) await createPod(others, 'a', `x${i}`);
      const watch = await pods.watch(podPrefix, { predicate: everything, from: { start: 'state', fresh: false } });
      const end = await createPod(others, 'a', 'y');
      const present = new Set<string>();
      for (const { object } of await eventsUntil(watch, end.revision)) present.add(object.key);
      assert.equal(present.size, 6);
    },
  },
  {
    id: 'state.not-older-than',
    title:
      'an initial state not older than a revision waits for it, and fails with FutureRevision if it is not reached',
    async run({ pods, others, clock }) {
      const now = await pods.currentRevision();
      const opening = pods.watch(podPrefix, {
        predicate: everything,
        from: { start: 'state', fresh: false, notOlderThan: now + 1 },
      });
      await turns();
      await createPod(others, 'a', 'x');
      const watch = await withTime(clock, opening);
      await eventsOf(watch, 1);
      const future = { start: 'state', fresh: false, notOlderThan: now + 500 } as const;
      await failsWith('FutureRevision', () =>
        untilTimeout(clock, pods.watch(podPrefix, { predicate: everything, from: future })),
      );
    },
  },
  {
    id: 'state.selector',
    title: 'the selector applies to the initial state as to the changes after it',
    async run({ pods }) {
      const web = { app: 'web' };
      await createPod(pods, 'a', 'x', { labels: web });
      await createPod(pods, 'a', 'y');
      const watch = await pods.watch(podPrefix, {
        predicate: labelled('app', 'web'),
        from: { ...fresh, endBookmark: true },
      });
      await putPod(pods, 'a', 'y', { labels: web });
      const end = await putPod(pods, 'a', 'x', {});
      const events = (await eventsUntil(watch, end.revision)).map(
        ({ type, object }) => `${type} ${object.key.at(-1) ?? ''}`,
      );
      assert.deepEqual(events, ['ADDED x', 'BOOKMARK ', 'ADDED y', 'DELETED x']);
    },
  },
  {
    id: 'state.name',
    title: 'the initial state of one name is that object or empty',
    async run({ pods }) {
      for (const name of ['x', 'xx', 'w']) await createPod(pods, 'a', name, { text: name });
      const watch = await pods.watch(`${podPrefix}a/`, {
        predicate: named(podKey('a', 'x')),
        from: { ...fresh, endBookmark: true },
      });
      assert.deepEqual(
        (await eventsOf(watch, 2)).map(({ type }) => type),
        ['ADDED', 'BOOKMARK'],
      );
      const none = await pods.watch(`${podPrefix}b/`, {
        predicate: named(podKey('b', 'x')),
        from: { ...fresh, endBookmark: true },
      });
      assert.equal((await eventsOf(none, 1))[0]?.type, 'BOOKMARK');
    },
  },
  {
    id: 'state.namespace',
    title: 'the initial state of a namespace excludes other namespaces',
    async run({ pods }) {
      for (const namespace of ['a', 'ab', 'b']) await createPod(pods, namespace, 'x');
      const watch = await pods.watch(`${podPrefix}a/`, {
        predicate: everything,
        from: { ...fresh, endBookmark: true },
      });
      const events = await eventsOf(watch, 2);
      assert.deepEqual(
        events.map(({ type, object }) => `${type} ${object.key}`),
        [`ADDED ${podKey('a', 'x')}`, 'BOOKMARK '],
      );
    },
  },
  {
    id: 'state.slow',
    title: 'an initial state that is read slowly has one revision, and the changes after it follow',
    async run({ pods }) {
      for (let i = 0; i < 80; i++) await createPod(pods, 'a', `x${1000 + i}`, { text: 'old' });
      const watch = await pods.watch(podPrefix, { predicate: everything, from: { ...fresh, endBookmark: true } });
      const events = [];
      for (let i = 0; i < 80; i++) {
        events.push(...watch.read(1));
        await putPod(pods, 'a', `x${1079 - i}`, { text: 'new' });
      }
      events.push(...(await eventsUntil(watch, await pods.currentRevision(), 9)));
      assert.deepEqual(
        events.slice(0, 80).map(({ type, object }) => `${type} ${textOf(object)}`),
        Array.from({ length: 80 }, () => 'ADDED old'),
      );
      assert.equal(events[80]?.initialEventsEnd, true);
      assert.deepEqual(
        events.slice(81).map(({ type, object }) => `${type} ${object.key.slice(-4)}`),
        Array.from({ length: 80 }, (_, i) => `MODIFIED ${1079 - i}`),
      );
    },
  },
  {
    id: 'state.position',
    title: 'a watch does not report a revision before its initial state has been read',
    async run({ pods }) {
      for (let i = 0; i < 10; i++) await createPod(pods, 'a', `x${i}`);
      const now = await pods.currentRevision();
      const watch = await pods.watch(podPrefix, { predicate: everything, from: fresh });
      await eventsOf(watch, 9);
      assert.ok(watch.revision < now);
      await eventsOf(watch, 1);
      assert.equal(watch.revision, now);
    },
  },
  {
    id: 'bookmark.quiet-kind',
    title: 'the bookmark of an unchanged kind advances with the store',
    async run({ pods, nodes }) {
      const watch = await pods.watch(podPrefix, {
        predicate: everything,
        from: { start: 'changesAfter', revision: await pods.currentRevision() },
      });
      let last = 0;
      for (let i = 0; i < 5; i++) {
        const node = await nodes.create(nodeKey(`n${i}`), nodeJson(`n${i}`));
        await until(() => watch.revision >= node.revision, 'the watch has moved');
        watch.requestBookmark();
        const [bookmark] = await eventsOf(watch, 1);
        assert.equal(bookmark?.type, 'BOOKMARK');
        assert.ok(bookmark.object.revision >= node.revision && bookmark.object.revision > last);
        last = bookmark.object.revision;
      }
    },
  },
  {
    id: 'bookmark.order',
    title: 'the revision of a bookmark is neither below earlier events nor above later ones',
    async run({ pods }) {
      const watch = await pods.watch(podPrefix, {
        predicate: everything,
        from: { start: 'changesAfter', revision: await pods.currentRevision() },
      });
      const events = [];
      for (let i = 0; i < 100; i++) {
        await putPod(pods, 'a', `x${i % 3}`, { text: String(i) });
        watch.requestBookmark();
        if (i % 4 === 0) events.push(...watch.read(2));
      }
      events.push(...(await eventsUntil(watch, await pods.currentRevision(), 5)));
      assert.equal(events.filter(({ type }) => type !== 'BOOKMARK').length, 100);
      let last = 0;
      for (const { type, object } of events) {
        assert.ok(
          type === 'BOOKMARK' ? object.revision >= last : object.revision > last,
          `${type} @${object.revision} after ${last}`,
        );
        last = object.revision;
      }
    },
  },
  {
    id: 'bookmark.wakes',
    title: 'a requested bookmark notifies a reader that has read everything, and is delivered once',
    async run({ pods }) {
      const watch = await pods.watch(podPrefix, {
        predicate: everything,
        from: { start: 'changesAfter', revision: await pods.currentRevision() },
      });
      await eventsUntil(watch, await pods.currentRevision());
      let called = 0;
      watch.onReadable(() => called++);
      watch.requestBookmark();
      watch.requestBookmark();
      await until(() => called === 1, 'the reader is called');
      assert.equal((await eventsOf(watch, 1))[0]?.type, 'BOOKMARK');
      assert.deepEqual(watch.read(5), []);
    },
  },
  {
    id: 'bookmark.resume',
    title: 'a watch from the revision of a bookmark neither misses nor repeats a change',
    async run({ pods }) {
      const all: string[] = [];
      let revision = await pods.currentRevision();
      for (let round = 0; round < 5; round++) {
        const watch = await pods.watch(podPrefix, { predicate: everything, from: { start: 'changesAfter', revision } });
        for (let i = 0; i < 4; i++) await createPod(pods, 'a', `x${round}${i}`);
        watch.requestBookmark();
        for (const { type, object } of await eventsUntil(watch, await pods.currentRevision())) {
          if (type !== 'BOOKMARK') all.push(object.key.slice(-2));
          revision = object.revision;
        }
        watch.close();
      }
      assert.deepEqual(
        all,
        Array.from({ length: 20 }, (_, i) => `${Math.floor(i / 4)}${i % 4}`),
      );
    },
  },
];
