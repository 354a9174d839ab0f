import assert from 'node:assert/strict';
import type { ResourceStorageCase } from '../harness.ts';
import {
  any,
  bodyOf,
  createPod,
  everything,
  exactly,
  labelled,
  latest,
  nodeJson,
  nodeKey,
  notOlderThan,
  podPrefix,
  putPod,
  removePod,
  shown,
  stored,
} from '../objects.ts';
import { failsWith, turns, untilTimeout, withTime } from '../waiting.ts';

const all = { at: latest, predicate: everything } as const;

/** The state that a list returns: the current one, any, one not older than a revision, or one at an exact revision. */
export const readPointCases: readonly ResourceStorageCase[] = [
  {
    id: 'list.global-revision',
    title: 'the revision of a list is that of the whole store, not of the kind',
    async run({ pods, nodes }) {
      await createPod(pods, 'a', 'x');
      const node = await nodes.create(nodeKey('n'), nodeJson('n'));
      assert.equal((await pods.list(podPrefix, all)).revision, node.revision);
    },
  },
  {
    id: 'list.others-write',
    title: 'a consistent list includes writes of other processes that were acknowledged before it',
    async run({ pods, others, store }) {
      await pods.list(podPrefix, { at: any, predicate: everything });
      for (let i = 0; i < 20; i++) {
        store.holdStreams();
        const { revision } = await createPod(others, 'a', `x${i}`);
        const reading = pods.list(podPrefix, all);
        await turns(3);
        store.releaseStreams();
        const list = await reading;
        assert.equal(list.count, i + 1);
        assert.ok(list.revision >= revision);
      }
    },
  },
  {
    id: 'list.any-grows',
    title: 'a list of any state is a state that existed, and once loaded never an older one than before',
    async run({ pods, others }) {
      let revision = 0;
      for (let i = 0; i < 20; i++) {
        await createPod(others, 'a', `x${String(i).padStart(2, '0')}`);
        const list = await pods.list(podPrefix, { at: any, predicate: everything });
        assert.ok(list.revision >= revision);
        revision = list.revision;
        assert.equal(
          list.count,
          revision === 0 ? 0 : [...list.objects()].filter((object) => object.revision <= revision).length,
        );
      }
    },
  },
  {
    id: 'list.not-older-than',
    title: 'a list not older than a revision contains everything up to it, and waits for it',
    async run({ pods, others, clock }) {
      const first = await createPod(others, 'a', 'x');
      assert.equal((await pods.list(podPrefix, { at: notOlderThan(first.revision), predicate: everything })).count, 1);
      const waiting = pods.list(podPrefix, { at: notOlderThan(first.revision + 1), predicate: everything });
      await turns();
      await createPod(others, 'a', 'y');
      assert.equal((await withTime(clock, waiting)).count, 2);
      await failsWith('FutureRevision', () =>
        untilTimeout(clock, pods.list(podPrefix, { at: notOlderThan(first.revision + 99), predicate: everything })),
      );
    },
  },
  {
    id: 'list.exact',
    title: 'an exact list is the state of that revision, object by object',
    async run({ pods }) {
      const states = new Map<number, string[]>();
      const remember = async () => {
        const list = await pods.list(podPrefix, all);
        states.set(list.revision, shown(list));
      };
      await remember();
      for (let i = 0; i < 12; i++) {
        await createPod(pods, `n${i % 3}`, `x${i}`, { text: 'new' });
        await remember();
      }
      for (let i = 0; i < 12; i += 2) {
        await putPod(pods, `n${i % 3}`, `x${i}`, { text: 'changed' });
        await remember();
      }
      for (let i = 0; i < 12; i += 3) {
        await removePod(pods, `n${i % 3}`, `x${i}`);
        await remember();
      }
      await createPod(pods, 'n0', 'x0', { text: 'again' });
      await remember();
      assert.equal(states.size, 24);
      for (const [revision, expected] of states) {
        const list = await pods.list(podPrefix, { at: exactly(revision), predicate: everything });
        assert.equal(list.revision, revision);
        assert.deepEqual(shown(list), expected);
      }
    },
  },
  {
    id: 'list.exact-between',
    title: 'an exact list at a revision of another kind has the state of this kind at that revision',
    async run({ pods, nodes }) {
      await createPod(pods, 'a', 'x', { text: '1' });
      const between = await nodes.create(nodeKey('n'), nodeJson('n'));
      await putPod(pods, 'a', 'x', { text: '2' });
      const list = await pods.list(podPrefix, { at: exactly(between.revision), predicate: everything });
      assert.equal(list.revision, between.revision);
      assert.match(shown(list)[0] ?? '', / 1@/);
    },
  },
  {
    id: 'list.exact-selector',
    title: 'an exact list with a selector uses the labels at that revision',
    async run({ pods }) {
      const then = await createPod(pods, 'a', 'x', { labels: { app: 'old' } });
      await putPod(pods, 'a', 'x', { labels: { app: 'new' } });
      const count = async (value: string) =>
        (await pods.list(podPrefix, { at: exactly(then.revision), predicate: labelled('app', value) })).count;
      assert.equal(await count('old'), 1);
      assert.equal(await count('new'), 0);
    },
  },
  {
    id: 'list.stays-a-snapshot',
    title: 'a list that is being read is not affected by changes of its objects',
    async run({ pods }) {
      // More bytes than one chunk has.
      await Promise.all(
        Array.from({ length: 150 }, (_, i) => createPod(pods, 'a', `x${1000 + i}`, { text: 'before'.padEnd(600) })),
      );
      const list = await pods.list(podPrefix, all);
      const expected = bodyOf(await pods.list(podPrefix, all));
      const objects = list.objects()[Symbol.iterator]();
      const chunks = list.chunks(stored, ',')[Symbol.iterator]();
      const read: string[] = [];
      const pieces: Buffer[] = [];
      for (let i = 0; i < 150; i++) {
        const next = objects.next();
        if (next.done !== true) read.push(next.value.json.toString());
        if (i % 15 === 0) {
          const piece = chunks.next();
          if (piece.done !== true) pieces.push(piece.value);
        }
        await putPod(pods, 'a', `x${1149 - i}`, { text: 'after' });
        if (i % 3 === 0) await removePod(pods, 'a', `x${1000 + ((i * 7) % 150)}`).catch(() => {});
      }
      for (let piece = chunks.next(); piece.done !== true; piece = chunks.next()) pieces.push(piece.value);
      assert.equal(read.join(','), expected);
      assert.equal(Buffer.concat(pieces).toString(), expected);
    },
  },
];
