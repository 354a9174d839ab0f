import { deepEqual, equal, ok } from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { shown, started, take } from '../expectations.ts';
import type { ClientCase } from '../harness.ts';

export const watchStreamCases: readonly ClientCase[] = [
  {
    id: 'watch.time-out',
    title: 'a watch with timeoutSeconds ends by itself, without an error',
    async run({ parts, part }) {
      await parts.create(part('a'));
      const seen: string[] = [];
      for await (const event of parts.watch({ timeoutSeconds: 1 })) seen.push(shown(event));
      deepEqual(seen, ['ADDED a']);
    },
  },
  {
    id: 'watch.abort',
    title: 'an aborted watch ends without an error, before its start, while it waits and between events',
    async run({ parts, part }) {
      await parts.create(part('a'));
      equal((await parts.watch({ signal: AbortSignal.abort() })[Symbol.asyncIterator]().next()).done, true);
      const waiting = new AbortController();
      const seen: string[] = [];
      for await (const event of parts.watch({ signal: waiting.signal })) {
        seen.push(shown(event));
        // Aborts after the loop has requested the next event, while it waits for it.
        setImmediate(() => waiting.abort());
      }
      deepEqual(seen, ['ADDED a']);
      const between = new AbortController();
      await parts.create(part('b'));
      for await (const _event of parts.watch({ signal: between.signal })) between.abort();
    },
  },
  {
    id: 'watch.leaving-while-waiting',
    title: 'a watch that is returned while it waits for an event ends',
    async run({ parts }) {
      const { metadata } = await parts.list();
      const watch = parts.watch({ resourceVersion: metadata.resourceVersion ?? '' })[Symbol.asyncIterator]();
      const waiting = started(watch.next());
      await sleep(20);
      await watch.return?.();
      equal((await waiting).done, true);
      equal((await watch.next()).done, true);
    },
  },
  {
    id: 'watch.twice',
    title: 'each iteration of a watch object is a separate watch',
    async run({ parts, part }) {
      await parts.create(part('a'));
      const watch = parts.watch();
      deepEqual((await take(watch, 1)).map(shown), ['ADDED a']);
      await parts.create(part('b'));
      deepEqual((await take(watch, 2)).map(shown).sort(), ['ADDED a', 'ADDED b']);
    },
  },
  {
    id: 'watch.slow-consumer',
    title: 'a slow consumer receives every event, and does not delay other clients',
    async run({ parts, part }) {
      const { metadata } = await parts.list();
      const watch = parts.watch({ resourceVersion: metadata.resourceVersion ?? '' })[Symbol.asyncIterator]();
      const first = started(watch.next());
      const text = 'x'.repeat(20_000);
      for (let at = 0; at < 200; at += 1)
        await parts.create(part(`p${String(at).padStart(3, '0')}`, { settings: { text } }));
      ok(!(await first).done);
      for (let at = 1; at < 200; at += 1) {
        const { value, done } = await watch.next();
        ok(!done, `ended after ${at} events`);
        equal(shown(value), `ADDED p${String(at).padStart(3, '0')}`);
      }
      await watch.return?.();
    },
  },
  {
    id: 'watch.large-events-and-scripts',
    title: 'events of half a megabyte with multi-byte characters are delivered completely',
    async run({ parts, part }) {
      const { metadata } = await parts.list();
      const text = '漢字😀'.repeat(60_000);
      const events = started(take(parts.watch({ resourceVersion: metadata.resourceVersion ?? '' }), 3));
      for (const name of ['a', 'b', 'c']) await parts.create(part(name, { settings: { text } }));
      for (const { object } of await events)
        ok((object as { spec?: { settings?: { text?: string } } }).spec?.settings?.text === text);
    },
  },
  {
    id: 'watch.many-at-once',
    title: 'a hundred concurrent watches do not affect other calls',
    async run({ parts, part }) {
      const { metadata } = await parts.list();
      const resourceVersion = metadata.resourceVersion ?? '';
      const watches = started(
        Promise.all(Array.from({ length: 100 }, () => take(parts.watch({ resourceVersion }), 1))),
      );
      await parts.create(part('a'));
      for (const events of await watches) deepEqual(events.map(shown), ['ADDED a']);
    },
  },
];
