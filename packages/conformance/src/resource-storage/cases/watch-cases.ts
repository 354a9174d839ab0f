import assert from 'node:assert/strict';
import type { ResourceStorageCase } from '../harness.ts';
import {
  createPod,
  everything,
  labelled,
  named,
  nodeJson,
  nodeKey,
  nodePrefix,
  podJson,
  podKey,
  podPrefix,
  putPod,
  removePod,
  textOf,
} from '../objects.ts';
import { describe, eventsUntil, failsWith } from '../waiting.ts';

/** Events of a watch: their content, start and order. */
export const watchCases: readonly ResourceStorageCase[] = [
  {
    id: 'watch.types',
    title: 'creation, change and deletion are ADDED, MODIFIED and DELETED events with their revisions',
    async run({ pods }) {
      const start = await pods.currentRevision();
      const watch = await pods.watch(podPrefix, {
        predicate: everything,
        from: { start: 'changesAfter', revision: start },
      });
      const created = await createPod(pods, 'a', 'x', { text: '1' });
      const updated = await putPod(pods, 'a', 'x', { text: '2' });
      const deleted = await removePod(pods, 'a', 'x');
      const events = await eventsUntil(watch, deleted.revision);
      assert.deepEqual(describe(events), [
        `ADDED x 1@${created.revision}`,
        `MODIFIED x 2@${updated.revision}`,
        `DELETED x 2@${deleted.revision}`,
      ]);
      for (const { object } of events) assert.equal(object.value().metadata?.resourceVersion, String(object.revision));
      assert.equal(watch.revision, deleted.revision);
    },
  },
  {
    id: 'watch.from-the-past',
    title: 'a watch from any earlier revision delivers exactly the changes after it',
    async run({ pods }) {
      const start = await pods.currentRevision();
      await createPod(pods, 'a', 'x', { text: '1' });
      await createPod(pods, 'b', 'y', { text: '1' });
      await putPod(pods, 'a', 'x', { text: '2' });
      await removePod(pods, 'b', 'y');
      await createPod(pods, 'b', 'y', { text: '3' });
      const end = await pods.currentRevision();
      const whole = await eventsUntil(
        await pods.watch(podPrefix, { predicate: everything, from: { start: 'changesAfter', revision: start } }),
        end,
      );
      assert.equal(whole.length, 5);
      for (const [i, { object }] of whole.entries()) {
        const watch = await pods.watch(podPrefix, {
          predicate: everything,
          from: { start: 'changesAfter', revision: object.revision },
        });
        assert.deepEqual(describe(await eventsUntil(watch, end)), describe(whole.slice(i + 1)));
        watch.close();
      }
    },
  },
  {
    id: 'watch.namespace',
    title: 'a watch of a namespace delivers only its events',
    async run({ pods }) {
      const from = { start: 'changesAfter', revision: await pods.currentRevision() } as const;
      const watches = await Promise.all(
        ['a', 'ab', 'b'].map((ns) => pods.watch(`${podPrefix}${ns}/`, { predicate: everything, from })),
      );
      for (const namespace of ['b', 'a', 'ab', 'a', 'c'])
        await putPod(pods, namespace, 'x', { text: `${Math.random()}` });
      const end = await pods.currentRevision();
      const counts: number[] = [];
      for (const watch of watches) counts.push((await eventsUntil(watch, end)).length);
      assert.deepEqual(counts, [2, 1, 1]);
    },
  },
  {
    id: 'watch.name',
    title: 'a watch of one object delivers only its events, also when it is created again',
    async run({ pods }) {
      const from = { start: 'changesAfter', revision: await pods.currentRevision() } as const;
      const watch = await pods.watch(`${podPrefix}a/`, { predicate: named(podKey('a', 'x')), from });
      await createPod(pods, 'a', 'xx');
      await createPod(pods, 'a', 'x', { text: '1' });
      await createPod(pods, 'b', 'x');
      await removePod(pods, 'a', 'x');
      await removePod(pods, 'a', 'xx');
      await createPod(pods, 'a', 'x', { text: '2' });
      const types = (await eventsUntil(watch, await pods.currentRevision())).map(
        ({ type, object }) => `${type} ${textOf(object)}`,
      );
      assert.deepEqual(types, ['ADDED 1', 'DELETED 1', 'ADDED 2']);
    },
  },
  {
    id: 'watch.cluster-scoped',
    title: 'a cluster-scoped kind can be watched as a whole and by name',
    async run({ nodes, pods }) {
      const from = { start: 'changesAfter', revision: await nodes.currentRevision() } as const;
      const whole = await nodes.watch(nodePrefix, { predicate: everything, from });
      const one = await nodes.watch(nodePrefix, { predicate: named(nodeKey('n1')), from });
      for (const name of ['n0', 'n1', 'n2']) await nodes.create(nodeKey(name), nodeJson(name));
      await createPod(pods, 'a', 'n1');
      const end = await nodes.currentRevision();
      assert.equal((await eventsUntil(whole, end)).length, 3);
      assert.deepEqual(
        (await eventsUntil(one, end)).map(({ object }) => object.key),
        [nodeKey('n1')],
      );
    },
  },
  {
    id: 'watch.selector-transitions',
    title: 'an object that begins to match is ADDED, one that ceases to match is DELETED with its last matching state',
    async run({ pods }) {
      const from = { start: 'changesAfter', revision: await pods.currentRevision() } as const;
      const watch = await pods.watch(podPrefix, { predicate: labelled('app', 'web'), from });
      const web = { app: 'web' };
      await createPod(pods, 'a', 'x', { text: '1' });
      const enters = await putPod(pods, 'a', 'x', { text: '2', labels: web });
      const stays = await putPod(pods, 'a', 'x', { text: '3', labels: web });
      const leaves = await putPod(pods, 'a', 'x', { text: '4' });
      await putPod(pods, 'a', 'x', { text: '5' });
      await removePod(pods, 'a', 'x');
      const born = await createPod(pods, 'a', 'y', { text: '6', labels: web });
      const gone = await removePod(pods, 'a', 'y');
      const events = await eventsUntil(watch, gone.revision);
      assert.deepEqual(describe(events), [
        `ADDED x 2@${enters.revision}`,
        `MODIFIED x 3@${stays.revision}`,
        `DELETED x 3@${leaves.revision}`,
        `ADDED y 6@${born.revision}`,
        `DELETED y 6@${gone.revision}`,
      ]);
      for (const { object } of events) assert.equal(object.value().metadata?.resourceVersion, String(object.revision));
    },
  },
  {
    id: 'watch.many-selectors',
    title: 'watches with different selectors and scopes over the same changes each receive their own events',
    async run({ pods }) {
      const from = { start: 'changesAfter', revision: await pods.currentRevision() } as const;
      const open = (ns: string, app: string) =>
        pods.watch(`${podPrefix}${ns}`, { predicate: labelled('app', app), from });
      const watches = await Promise.all([
        open('', 'a'),
        open('', 'b'),
        open('n1/', 'a'),
        open('n1/', 'b'),
        open('n1/', 'a'),
      ]);
      for (let i = 0; i < 40; i++) {
        await putPod(pods, `n${i % 2}`, `x${i % 5}`, { labels: { app: i % 3 === 0 ? 'a' : 'b' }, text: String(i) });
      }
      const end = await pods.currentRevision();
      const seen = [];
      for (const watch of watches) seen.push(describe(await eventsUntil(watch, end)));
      const fresh = [];
      for (const [ns, app] of [
        ['', 'a'],
        ['', 'b'],
        ['n1/', 'a'],
        ['n1/', 'b'],
        ['n1/', 'a'],
      ] as const) {
        const watch = await open(ns, app);
        fresh.push(describe(await eventsUntil(watch, end)));
      }
      assert.deepEqual(seen, fresh, 'live and from history the same');
      assert.deepEqual(seen[2], seen[4]);
      assert.ok(seen.every((events) => events.length > 0));
    },
  },
  {
    id: 'watch.others-write',
    title: 'changes of other processes are delivered like own ones, in the order of their revisions',
    async run({ pods, others }) {
      const start = await pods.currentRevision();
      const watch = await pods.watch(podPrefix, {
        predicate: everything,
        from: { start: 'changesAfter', revision: start },
      });
      const writing = Array.from({ length: 60 }, (_, i) =>
        putPod(i % 2 ? pods : others, 'a', `x${i % 4}`, { text: String(i) }),
      );
      await Promise.all(writing);
      const end = await pods.currentRevision();
      const revisions = (await eventsUntil(watch, end)).map(({ object }) => object.revision);
      assert.equal(revisions.length, 60);
      assert.deepEqual(
        revisions,
        [...new Set(revisions)].sort((a, b) => a - b),
      );
    },
  },
  {
    id: 'watch.chain',
    title: 'the events of one object are consecutive states',
    async run({ pods }) {
      const from = { start: 'changesAfter', revision: await pods.currentRevision() } as const;
      const watch = await pods.watch(podPrefix, { predicate: everything, from });
      for (let i = 0; i < 50; i++) {
        await pods.update(podKey('a', 'x'), (current) => ({
          do: 'write',
          json: podJson('a', 'x', { text: String(Number(textOf(current) ?? -1) + 1) }),
        }));
      }
      const events = await eventsUntil(watch, await pods.currentRevision(), 7);
      assert.deepEqual(
        events.map(({ object }) => textOf(object)),
        Array.from({ length: 50 }, (_, i) => String(i)),
      );
    },
  },
  {
    id: 'watch.future-start',
    title: 'a watch from a future revision delivers only changes after it',
    async run({ pods }) {
      const now = await pods.currentRevision();
      const watch = await pods.watch(podPrefix, {
        predicate: everything,
        from: { start: 'changesAfter', revision: now + 2 },
      });
      for (let i = 1; i <= 4; i++) await createPod(pods, 'a', `x${i}`);
      const end = await pods.currentRevision();
      assert.equal(end, now + 4);
      assert.deepEqual(
        (await eventsUntil(watch, end)).map(({ object }) => object.revision),
        [now + 3, now + 4],
      );
    },
    requires: ['denseRevisions'],
  },
  {
    id: 'watch.compacted',
    title: 'a watch from before the history of the store is complete or fails with Compacted, never with a gap',
    async run({ pods, store, cached }) {
      const start = await pods.currentRevision();
      for (let i = 0; i < 5; i++) await createPod(pods, 'a', `x${i}`);
      const end = await pods.currentRevision();
      if (cached) await pods.list(podPrefix, { at: { at: 'any' }, predicate: everything });
      await store.inner.compact(end);
      const open = async () => {
        const watch = await pods.watch(podPrefix, {
          predicate: everything,
          from: { start: 'changesAfter', revision: start },
        });
        return eventsUntil(watch, end);
      };
      await failsWith('Compacted', open);
      const watch = await pods.watch(podPrefix, {
        predicate: everything,
        from: { start: 'changesAfter', revision: end },
      });
      const next = await createPod(pods, 'a', 'y');
      assert.equal((await eventsUntil(watch, next.revision)).length, 1);
    },
  },
];
