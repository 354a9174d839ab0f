import assert from 'node:assert/strict';
import { Random } from '../../suite/random.ts';
import type { StoreCase } from '../harness.ts';
import { failsWith, put } from '../store-driver.ts';
import { Twin } from '../twin.ts';
import { changesBetween, Watcher } from '../watcher.ts';

/** Invariants 8 and 9: frontiers, advanceTo and resumption. */
export const frontierCases: readonly StoreCase[] = [
  {
    id: 'frontier.starts-at-after',
    title: 'a new stream has the frontier from which it was requested',
    async run({ store }) {
      const first = await put(store, '/a', 'x');
      await put(store, '/a', 'y', first);
      const watcher = await Watcher.open(store, first);
      assert.equal(watcher.stream.frontier, first);
      await watcher.close();
    },
  },
  {
    id: 'frontier.never-ahead',
    title: 'all changes up to the frontier have been delivered',
    async run({ store }) {
      const after = await store.currentRevision();
      const watcher = await Watcher.open(store, after, { prevValue: true });
      const twin = await Twin.of(store);
      for (let i = 0; i < 60; i++) {
        await twin.put(`/a/${i % 5}`, `v${i}`);
        if (i % 6 === 0) {
          await watcher.pull();
          const { frontier } = watcher.stream;
          const due = twin.model.changes.filter((change) => change.revision <= frontier);
          assert.deepEqual(watcher.changes, due, `frontier ${frontier}`);
        }
      }
      await watcher.until(twin.model.revision);
      assert.deepEqual(watcher.changes, twin.model.changes);
      await watcher.close();
    },
  },
  {
    id: 'frontier.never-ahead-in-narrow-range',
    title: 'a frontier that advances for changes outside the range skips none inside',
    async run({ store }) {
      const after = await store.currentRevision();
      const range = { start: '/in/', end: '/in0' };
      const watcher = await Watcher.open(store, after, { range, prevValue: true });
      const twin = await Twin.of(store);
      for (let i = 0; i < 120; i++) {
        await twin.put(i % 10 === 3 ? `/in/${i}` : `/out/${i}`, 'x');
        if (i % 8 !== 0) continue;
        await watcher.until(twin.model.revision);
        assert.deepEqual(watcher.changes, twin.model.changesAfter(after, range));
      }
      await watcher.close();
    },
  },
  {
    id: 'frontier.not-decreasing',
    title: 'the frontier of a stream only rises',
    async run({ store }) {
      const watcher = await Watcher.open(store, await store.currentRevision());
      const writes = Array.from({ length: 500 }, (_, i) => put(store, `/a/${i}`, 'x'));
      await watcher.until(Math.max(...(await Promise.all(writes))));
      for (const [i, frontier] of watcher.frontiers.entries()) {
        if (i > 0) assert.ok(frontier >= (watcher.frontiers[i - 1] as number));
      }
      await watcher.close();
    },
  },
  {
    id: 'advance.idle',
    title: 'advanceTo the current revision resolves on an idle store, also with an empty range',
    async run({ store }) {
      const after = await store.currentRevision();
      const revision = await put(store, '/elsewhere', 'x');
      const watcher = await Watcher.open(store, after, { range: { start: '/a', end: '/b' } });
      await watcher.until(revision);
      assert.deepEqual(watcher.changes, []);
      assert.ok(watcher.stream.frontier >= revision);
      await watcher.close();
    },
  },
  {
    id: 'advance.reached',
    title: 'advanceTo a revision already reached resolves without pulling',
    async run({ store }) {
      const after = await put(store, '/a', 'x');
      const watcher = await Watcher.open(store, after);
      await watcher.stream.advanceTo(after);
      await watcher.stream.advanceTo(1);
      await watcher.close();
    },
  },
  {
    id: 'advance.after-write',
    title: 'after advanceTo the revision of an acknowledged write, its change was delivered',
    async run({ store }) {
      const watcher = await Watcher.open(store, await store.currentRevision());
      for (let i = 0; i < 30; i++) {
        const revision = await put(store, `/a/${i}`, 'x');
        await watcher.until(revision);
        assert.equal(watcher.changes.at(-1)?.revision, revision);
      }
      await watcher.close();
    },
  },
  {
    id: 'advance.not-before-write',
    title: 'advanceTo a future revision waits for it',
    async run({ store }) {
      const now = await store.currentRevision();
      const watcher = await Watcher.open(store, now);
      let resolved = false;
      const advancing = watcher.stream.advanceTo(now + 1).then(() => {
        resolved = true;
      });
      const pulling = watcher.pull();
      for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
      assert.equal(resolved, false);
      const revision = await put(store, '/a', 'x');
      await pulling;
      await watcher.until(revision);
      await advancing;
      await watcher.close();
    },
  },
  {
    id: 'advance.many-waiters',
    title: 'several advanceTo wait concurrently, each for its own revision',
    async run({ store }) {
      const now = await store.currentRevision();
      const watcher = await Watcher.open(store, now);
      const revisions: number[] = [];
      for (let i = 0; i < 5; i++) revisions.push(await put(store, `/a/${i}`, 'x'));
      const waiting = [...revisions].reverse().map(async (revision) => {
        await watcher.stream.advanceTo(revision);
        assert.ok(watcher.stream.frontier >= revision);
      });
      await watcher.until(revisions.at(-1) as number);
      await Promise.all(waiting);
      await watcher.close();
    },
  },
  {
    id: 'advance.aborted',
    title: 'advanceTo fails with Timeout when its signal is aborted, and the stream continues',
    async run({ store }) {
      const now = await store.currentRevision();
      const watcher = await Watcher.open(store, now);
      const controller = new AbortController();
      const advancing = failsWith('Timeout', () => watcher.stream.advanceTo(now + 10, { signal: controller.signal }));
      controller.abort();
      await advancing;
      await failsWith('Timeout', () => watcher.stream.advanceTo(now + 10, { signal: AbortSignal.abort() }));
      const revision = await put(store, '/a', 'x');
      await watcher.until(revision);
      assert.equal(watcher.changes.length, 1);
      await watcher.close();
    },
  },
  {
    id: 'advance.closed',
    title: 'advanceTo fails with Closed when the stream is closed, before or meanwhile',
    async run({ store }) {
      const now = await store.currentRevision();
      const watcher = await Watcher.open(store, now);
      const waiting = failsWith('Closed', () => watcher.stream.advanceTo(now + 10));
      await watcher.close();
      await waiting;
      await failsWith('Closed', () => watcher.stream.advanceTo(now + 10));
    },
  },
  {
    id: 'watch.resume-without-gap',
    title: 'streams interrupted at any batch and resumed at their frontier together deliver everything once',
    async run({ store, seed }) {
      const random = new Random(seed);
      const start = await store.currentRevision();
      const twin = await Twin.of(store);
      const seen: unknown[] = [];
      let after = start;
      for (let i = 0; i < 200; i++) {
        const key = `/a/${random.below(8)}`;
        if (random.chance(0.3) && twin.model.current(key) !== undefined) await twin.remove(key);
        else await twin.put(key, `v${i}`);
        if (!random.chance(0.3)) continue;
        const watcher = await Watcher.open(store, after, { prevValue: true });
        if (random.chance(0.5)) await watcher.until(twin.model.revision);
        else await watcher.pull();
        seen.push(...watcher.changes);
        after = watcher.stream.frontier;
        await watcher.close();
      }
      seen.push(...(await changesBetween(store, after, twin.model.revision)));
      assert.deepEqual(seen, twin.model.changes);
    },
  },
  {
    id: 'watch.resume-at-every-revision',
    title: 'the changes before and after any revision together are the whole history',
    async run({ store }) {
      const start = await store.currentRevision();
      const twin = await Twin.of(store);
      for (let i = 0; i < 25; i++) await twin.put(`/a/${i % 3}`, `v${i}`);
      for (const cut of twin.model.changes) {
        const head = await changesBetween(store, start, cut.revision);
        const tail = await changesBetween(store, cut.revision, twin.model.revision);
        assert.deepEqual([...head, ...tail], twin.model.changes);
      }
    },
  },
  {
    id: 'watch.resume-outside-range',
    title: 'a watch can be resumed at a frontier that advanced through changes outside its range',
    async run({ store }) {
      const range = { start: '/in/', end: '/in0' };
      const after = await store.currentRevision();
      const watcher = await Watcher.open(store, after, { range });
      let revision = 0;
      for (let i = 0; i < 20; i++) revision = await put(store, `/out/${i}`, 'x');
      await watcher.until(revision);
      const { frontier } = watcher.stream;
      await watcher.close();
      const inside = await put(store, '/in/a', 'x');
      const changes = await changesBetween(store, frontier, inside, { range });
      assert.deepEqual(
        changes.map((change) => change.revision),
        [inside],
      );
    },
  },
];
