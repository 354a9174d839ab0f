import assert from 'node:assert/strict';
import type { ResourceWatch, WatchEvent } from '@keelson/core/internal';
import type { ResourceStorageCase } from '../harness.ts';
import { createPod, everything, podKey, podPrefix, putPod, textOf } from '../objects.ts';
import { endOf, eventsOf, eventsUntil, failsWith, turns, until, withTime } from '../waiting.ts';

/** Reading of a watch, its end, and its effect on other watches. */
export const watchReadingCases: readonly ResourceStorageCase[] = [
  {
    id: 'watch.slow-reader',
    title: 'a reader that reads one event at a time, with delay, receives all events',
    async run({ pods }) {
      const from = { start: 'changesAfter', revision: await pods.currentRevision() } as const;
      const slow = await pods.watch(podPrefix, { predicate: everything, from });
      const fast = await pods.watch(podPrefix, { predicate: everything, from });
      const seen: WatchEvent[] = [];
      for (let i = 0; i < 120; i++) {
        await putPod(pods, 'a', `x${i % 10}`, { text: String(i) });
        if (i % 3 === 0) seen.push(...slow.read(1));
        if (i % 30 === 0) await eventsUntil(fast, await pods.currentRevision());
      }
      const rest = await eventsUntil(slow, await pods.currentRevision(), 1);
      assert.deepEqual(
        [...seen, ...rest].map(({ object }) => textOf(object)),
        Array.from({ length: 120 }, (_, i) => String(i)),
      );
    },
  },
  {
    id: 'watch.readable',
    title: 'a readable callback is called once per registration, when there are events, and not before',
    async run({ pods }) {
      const watch = await pods.watch(podPrefix, {
        predicate: everything,
        from: { start: 'changesAfter', revision: await pods.currentRevision() },
      });
      let called = 0;
      await eventsUntil(watch, await pods.currentRevision());
      watch.onReadable(() => called++);
      await turns();
      assert.equal(called, 0, 'nothing to read yet');
      await createPod(pods, 'a', 'x');
      await createPod(pods, 'a', 'y');
      await until(() => called > 0, 'the reader is called');
      await turns();
      assert.equal(called, 1, 'once only');
      watch.onReadable(() => called++);
      await until(() => called === 2, 'the reader is called for what is there already');
      await eventsOf(watch, 2);
    },
  },
  {
    id: 'watch.callback-reader',
    title: 'a reader that reads and registers again at each call receives everything in order',
    async run({ pods }) {
      const watches: ResourceWatch[] = [];
      const seen: string[][] = [];
      for (let i = 0; i < 10; i++) {
        const watch = await pods.watch(podPrefix, {
          predicate: everything,
          from: { start: 'changesAfter', revision: await pods.currentRevision() },
        });
        const mine: string[] = [];
        const read = () => {
          for (const { object } of watch.read(3)) mine.push(String(textOf(object)));
          watch.onReadable(read);
        };
        watch.onReadable(read);
        watches.push(watch);
        seen.push(mine);
      }
      const writing = Array.from({ length: 100 }, (_, i) => createPod(pods, 'a', `x${i}`, { text: String(i) }));
      await Promise.all(writing);
      await until(() => seen.every((mine) => mine.length === 100), 'every reader has seen everything');
      for (const mine of seen) assert.deepEqual(mine, seen[0]);
      for (const watch of watches) watch.close();
    },
  },
  {
    id: 'watch.close',
    title: 'a closed watch has no events and no calls, and its iteration ends',
    async run({ pods }) {
      const watch = await pods.watch(podPrefix, {
        predicate: everything,
        from: { start: 'changesAfter', revision: await pods.currentRevision() },
      });
      let called = 0;
      watch.onReadable(() => called++);
      watch.close();
      watch.close();
      await createPod(pods, 'a', 'x');
      await turns();
      assert.equal(called, 0);
      assert.deepEqual(watch.read(10), []);
      for await (const event of watch) assert.fail(`a closed watch showed ${event.type}`);
    },
  },
  {
    id: 'watch.close-waiting-iteration',
    title: 'closing ends an iteration that waits',
    async run({ pods }) {
      const watch = await pods.watch(podPrefix, {
        predicate: everything,
        from: { start: 'changesAfter', revision: await pods.currentRevision() },
      });
      const seen: string[] = [];
      const reading = (async () => {
        for await (const { type } of watch) seen.push(type);
      })();
      await createPod(pods, 'a', 'x');
      await until(() => seen.length > 0, 'the event has come');
      await turns();
      watch.close();
      await reading;
      assert.deepEqual(seen, ['ADDED']);
    },
  },
  {
    id: 'watch.abort',
    title: 'an abort closes the watch',
    async run({ pods, store }) {
      const controller = new AbortController();
      const from = { start: 'changesAfter', revision: await pods.currentRevision() } as const;
      const streams = store.openStreams;
      const watch = await pods.watch(podPrefix, { predicate: everything, from, signal: controller.signal });
      controller.abort();
      await createPod(pods, 'a', 'x');
      await turns();
      assert.deepEqual(watch.read(10), []);
      await until(() => store.openStreams <= streams, 'its stream is closed');
      await failsWith('Timeout', () =>
        pods.watch(podPrefix, { predicate: everything, from, signal: controller.signal }),
      );
    },
  },
  {
    id: 'watch.iterate',
    title: 'iteration is in order, and leaving the loop closes the watch',
    async run({ pods, store }) {
      const streams = store.openStreams;
      const watch = await pods.watch(podPrefix, {
        predicate: everything,
        from: { start: 'changesAfter', revision: await pods.currentRevision() },
      });
      const writing = (async () => {
        for (let i = 0; i < 20; i++) await createPod(pods, 'a', `x${i}`, { text: String(i) });
      })();
      const seen: (string | undefined)[] = [];
      for await (const { object } of watch) {
        seen.push(textOf(object));
        if (seen.length === 20) break;
      }
      await writing;
      assert.deepEqual(
        seen,
        Array.from({ length: 20 }, (_, i) => String(i)),
      );
      await until(() => store.openStreams <= streams, 'its stream is closed');
      assert.deepEqual(watch.read(1), []);
    },
  },
  {
    id: 'watch.stop',
    title: 'stopping the storages ends watches with Closed, after their unread events',
    async run({ pods, storages }) {
      const from = { start: 'changesAfter', revision: await pods.currentRevision() } as const;
      const watches = await Promise.all([0, 1, 2].map(() => pods.watch(podPrefix, { predicate: everything, from })));
      const calls: number[] = [];
      watches[2]?.onReadable(() => calls.push(2));
      await storages.stop();
      for (const watch of watches) assert.equal((await endOf(watch)).code, 'Closed');
      assert.deepEqual(calls, [2]);
      assert.equal(storages.ready(), false);
    },
  },
  {
    id: 'watch.store-closed',
    title: 'a closed store ends watches with Closed',
    async run({ pods, store }) {
      const watch = await pods.watch(podPrefix, {
        predicate: everything,
        from: { start: 'changesAfter', revision: await pods.currentRevision() },
      });
      await store.inner.close();
      assert.equal((await endOf(watch)).code, 'Closed');
    },
  },
  {
    id: 'watch.corrupt',
    title: 'an event that cannot be decoded ends the watch with Corrupt, after all events before it',
    async run({ pods, store }) {
      const watch = await pods.watch(podPrefix, {
        predicate: everything,
        from: { start: 'changesAfter', revision: await pods.currentRevision() },
      });
      await createPod(pods, 'a', 'x');
      await store.inner.write({ op: 'put', key: podKey('a', 'bad'), value: Buffer.from('nonsense'), expect: 0 });
      assert.equal((await eventsOf(watch, 1)).length, 1);
      assert.equal((await endOf(watch)).code, 'Corrupt');
    },
  },
  {
    id: 'watch.frames',
    title: 'the frame of an event is encoded once per encoding and contains the type and object of the event',
    async run({ pods }) {
      const watch = await pods.watch(podPrefix, {
        predicate: everything,
        from: { start: 'changesAfter', revision: await pods.currentRevision() },
      });
      await createPod(pods, 'a', 'x', { text: '1' });
      const [event] = await eventsOf(watch, 1);
      assert.ok(event !== undefined);
      let made = 0;
      const form = (id: string) => ({
        id,
        encode: (type: string, object: WatchEvent['object']) => {
          made++;
          return Buffer.from(`${id} ${type} ${textOf(object)}`);
        },
      });
      for (let i = 0; i < 3; i++) {
        assert.equal(event.encoded(form('one')).toString(), 'one ADDED 1');
        assert.equal(event.encoded(form('two')).toString(), 'two ADDED 1');
      }
      assert.equal(made, 2);
    },
  },
  {
    id: 'watch.idle-neighbours',
    title: 'many idle watches do not delay an active one',
    async run({ pods, clock }) {
      const from = { start: 'changesAfter', revision: await pods.currentRevision() } as const;
      const idle = await Promise.all(
        Array.from({ length: 50 }, () => pods.watch(podPrefix, { predicate: everything, from })),
      );
      const active = await pods.watch(podPrefix, { predicate: everything, from });
      for (let i = 0; i < 30; i++) await createPod(pods, 'a', `x${i}`);
      const events = await withTime(
        clock,
        pods.currentRevision().then((end) => eventsUntil(active, end)),
      );
      assert.equal(events.length, 30);
      for (const watch of idle) watch.close();
    },
  },
];
