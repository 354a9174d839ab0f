import assert from 'node:assert/strict';
import type { ResourceStorageCase } from '../harness.ts';
import {
  any,
  createPod,
  everything,
  exactly,
  latest,
  nodeJson,
  nodeKey,
  notOlderThan,
  podKey,
  podPrefix,
  putPod,
  removePod,
  textOf,
} from '../objects.ts';
import { failsWith, turns, until, untilTimeout, withTime } from '../waiting.ts';

export const getCases: readonly ResourceStorageCase[] = [
  {
    id: 'get.missing',
    title: 'a key that does not exist is undefined for every read point',
    async run({ pods }) {
      const now = await pods.currentRevision();
      for (const at of [latest, any, notOlderThan(now), exactly(now)])
        assert.equal(await pods.get(podKey('a', 'x'), at), undefined);
    },
  },
  {
    id: 'get.others-write',
    title: 'a consistent read includes writes of other processes that were acknowledged before it',
    async run({ pods, others, store }) {
      await pods.get(podKey('a', 'x'), any);
      for (let i = 0; i < 20; i++) {
        store.holdStreams();
        await putPod(others, 'a', 'x', { text: String(i) });
        const reading = pods.get(podKey('a', 'x'), latest);
        await turns(3);
        store.releaseStreams();
        assert.equal(textOf(await reading), String(i));
      }
    },
  },
  {
    id: 'get.not-older-than',
    title: 'a read not older than a revision is at least that new',
    async run({ pods, others }) {
      const { revision } = await putPod(others, 'a', 'x', { text: 'new' });
      assert.equal(textOf(await pods.get(podKey('a', 'x'), notOlderThan(revision))), 'new');
      assert.equal(textOf(await pods.get(podKey('a', 'x'), notOlderThan(1))), 'new');
    },
  },
  {
    id: 'get.waits',
    title: 'a read not older than a future revision waits for it',
    async run({ pods, others, clock }) {
      const now = await pods.currentRevision();
      const reading = pods.get(podKey('a', 'x'), notOlderThan(now + 1));
      await turns();
      await putPod(others, 'a', 'x', { text: 'new' });
      // A store behind a network delivers a change in real time, while the clock of the case may run faster.
      await until(async () => (await pods.get(podKey('a', 'x'), any)) !== undefined, 'the change has come');
      assert.equal(textOf(await withTime(clock, reading)), 'new');
    },
  },
  {
    id: 'get.future',
    title: 'a revision that is not reached is FutureRevision after three seconds, with the current revision',
    async run({ pods, clock }) {
      const { revision } = await createPod(pods, 'a', 'x');
      const start = clock.monotonic();
      for (const at of [notOlderThan(revision + 1000), exactly(revision + 1000)]) {
        const error = await failsWith('FutureRevision', () => untilTimeout(clock, pods.get(podKey('a', 'x'), at)));
        assert.equal(error.revision, revision);
      }
      assert.ok(clock.monotonic() - start >= 6_000, 'each waited three seconds');
    },
  },
  {
    id: 'get.exact',
    title: 'an exact read returns the state of that revision, before, between and after changes',
    async run({ pods }) {
      const before = await pods.currentRevision();
      const created = await createPod(pods, 'a', 'x', { text: '1' });
      const updated = await putPod(pods, 'a', 'x', { text: '2' });
      const deleted = await removePod(pods, 'a', 'x');
      const again = await createPod(pods, 'a', 'x', { text: '3' });
      const key = podKey('a', 'x');
      assert.equal(await pods.get(key, exactly(before)), undefined);
      assert.equal(textOf(await pods.get(key, exactly(created.revision))), '1');
      assert.equal(textOf(await pods.get(key, exactly(updated.revision))), '2');
      assert.equal((await pods.get(key, exactly(updated.revision)))?.revision, updated.revision);
      assert.equal(await pods.get(key, exactly(deleted.revision)), undefined);
      assert.equal(textOf(await pods.get(key, exactly(again.revision))), '3');
    },
  },
  {
    id: 'get.create-revision',
    title: 'updates keep the creation revision, a new creation has a new one',
    async run({ pods }) {
      const created = await createPod(pods, 'a', 'x', { text: '1' });
      const updated = await putPod(pods, 'a', 'x', { text: '2' });
      assert.equal(updated.createRevision, created.revision);
      assert.equal((await pods.get(created.key, latest))?.createRevision, created.revision);
      await removePod(pods, 'a', 'x');
      const again = await createPod(pods, 'a', 'x');
      assert.equal((await pods.get(created.key, latest))?.createRevision, again.revision);
    },
  },
  {
    id: 'get.kinds-apart',
    title: 'kinds are isolated from each other',
    async run({ pods, nodes }) {
      await nodes.create(nodeKey('x'), nodeJson('x', 'node'));
      await createPod(pods, 'a', 'x', { text: 'pod' });
      assert.equal(textOf(await nodes.get(nodeKey('x'), latest)), 'node');
      const list = await pods.list(podPrefix, { at: latest, predicate: everything });
      assert.equal(list.count, 1);
    },
  },
  {
    id: 'get.own-copy',
    title: 'changing a parsed object does not affect the stored one',
    async run({ pods }) {
      await createPod(pods, 'a', 'x', { text: 'mine' });
      const object = await pods.get(podKey('a', 'x'), latest);
      const value = object?.value<{ kind: string; apiVersion: string; metadata: object; spec: { text: string } }>();
      assert.ok(value !== undefined);
      value.spec.text = 'changed';
      assert.equal(textOf(object), 'mine');
      assert.equal(textOf(await pods.get(podKey('a', 'x'), latest)), 'mine');
    },
  },
  {
    id: 'get.corrupt',
    title: 'a corrupt object fails with Corrupt and its key, and others can be read',
    async run({ pods, store }) {
      await createPod(pods, 'a', 'x');
      await store.inner.write({ op: 'put', key: podKey('a', 'bad'), value: Buffer.from('nonsense'), expect: 0 });
      const error = await failsWith('Corrupt', () => pods.get(podKey('a', 'bad'), latest));
      assert.equal(error.key, podKey('a', 'bad'));
      assert.ok((await pods.get(podKey('a', 'x'), latest)) !== undefined);
    },
  },
  {
    id: 'get.aborted',
    title: 'a read whose signal is aborted fails with Timeout',
    async run({ pods, clock }) {
      await failsWith('Timeout', () => pods.get(podKey('a', 'x'), latest, { signal: AbortSignal.abort() }));
      const controller = new AbortController();
      const now = await pods.currentRevision();
      const waiting = pods.get(podKey('a', 'x'), notOlderThan(now + 5), { signal: controller.signal });
      await turns();
      controller.abort();
      await failsWith('Timeout', () => untilTimeout(clock, waiting));
    },
  },
];
