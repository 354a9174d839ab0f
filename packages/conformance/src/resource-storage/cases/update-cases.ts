import assert from 'node:assert/strict';
import { StorageError, StorageErrorCode } from '@keelson/core';
import type { ResourceStorage, StoredObject } from '@keelson/core/internal';
import type { ResourceStorageCase } from '../harness.ts';
import {
  any,
  createPod,
  everything,
  latest,
  podJson,
  podKey,
  podPrefix,
  putPod,
  removePod,
  textOf,
} from '../objects.ts';
import { eventsAfter, failsWith } from '../waiting.ts';

const key = podKey('a', 'x');
const x = (text: string) => podJson('a', 'x', { text });

export const updateCases: readonly ResourceStorageCase[] = [
  {
    id: 'update.create',
    title: 'an update of a missing object receives undefined and may create it',
    async run({ pods }) {
      const seen: unknown[] = [];
      const { outcome, object } = await pods.update(key, (current) => {
        seen.push(current);
        return { do: 'write', json: x('1') };
      });
      assert.equal(outcome, 'created');
      assert.deepEqual(seen, [undefined]);
      assert.equal(textOf(object), '1');
      assert.equal(object.createRevision, object.revision);
    },
  },
  {
    id: 'update.write',
    title: 'an update receives the current object and gives it a new revision',
    async run({ pods }) {
      const created = await createPod(pods, 'a', 'x', { text: '1' });
      const { outcome, object } = await pods.update(key, async (current) => ({
        do: 'write',
        json: x(`${textOf(current)}2`),
      }));
      assert.equal(outcome, 'updated');
      assert.equal(textOf(object), '12');
      assert.ok(object.revision > created.revision);
      assert.equal((await pods.get(key, latest))?.revision, object.revision);
    },
  },
  {
    id: 'update.no-op',
    title: 'a write of the stored bytes is unchanged: same revision, no write, no event',
    async run({ pods, store }) {
      const created = await createPod(pods, 'a', 'x', { text: '1' });
      const writes = store.calls.write;
      const { outcome, object } = await pods.update(key, () => ({ do: 'write', json: x('1') }));
      assert.equal(outcome, 'unchanged');
      assert.equal(object.revision, created.revision);
      assert.equal(store.calls.write, writes);
      assert.equal(await pods.currentRevision(), created.revision);
      assert.deepEqual(await eventsAfter(pods, created.revision), []);
    },
  },
  {
    id: 'update.no-op-length',
    title: 'bytes that differ from the stored ones only in length or in one character are a change',
    async run({ pods }) {
      await createPod(pods, 'a', 'x', { text: 'aaa' });
      for (const text of ['aaaa', 'aa', 'aab', 'baa', '']) {
        assert.equal((await pods.update(key, () => ({ do: 'write', json: x(text) }))).outcome, 'updated');
        assert.equal((await pods.update(key, () => ({ do: 'write', json: x(text) }))).outcome, 'unchanged');
      }
    },
  },
  {
    id: 'update.keep',
    title: 'the decision "keep" changes nothing, and is NotFound for a missing object',
    async run({ pods }) {
      const created = await createPod(pods, 'a', 'x');
      const { outcome, object } = await pods.update(key, () => ({ do: 'keep' }));
      assert.equal(outcome, 'unchanged');
      assert.equal(object.revision, created.revision);
      const error = await failsWith('NotFound', () => pods.update(podKey('a', 'none'), () => ({ do: 'keep' })));
      assert.equal(error.key, podKey('a', 'none'));
    },
  },
  {
    id: 'update.error-final',
    title: 'an error of the decision on the current state is returned unchanged, after one read',
    async run({ pods }) {
      await createPod(pods, 'a', 'x');
      await pods.get(key, latest);
      const refusal = new Error('no');
      let asked = 0;
      const refuse = () => {
        asked++;
        throw refusal;
      };
      await assert.rejects(pods.update(key, refuse), (error) => error === refusal);
      assert.equal(asked, 1);
      await assert.rejects(
        pods.update(key, async () => refuse()),
        (error) => error === refusal,
      );
    },
  },
  {
    id: 'update.conflict',
    title: 'after a concurrent write the decision is called again with the new state, and both changes persist',
    async run({ pods, others }) {
      await createPod(pods, 'a', 'x', { text: '' });
      const seen: (string | undefined)[] = [];
      const { object } = await pods.update(key, async (current) => {
        seen.push(textOf(current));
        if (seen.length === 1) await others.update(key, () => ({ do: 'write', json: x('theirs') }));
        return { do: 'write', json: x(`${textOf(current)}+ours`) };
      });
      assert.deepEqual(seen, ['', 'theirs']);
      assert.equal(textOf(object), 'theirs+ours');
    },
  },
  {
    id: 'update.conflict-deleted',
    title: 'after a concurrent deletion the decision receives undefined',
    async run({ pods, others }) {
      await createPod(pods, 'a', 'x', { text: '1' });
      const seen: (string | undefined)[] = [];
      const { outcome } = await pods.update(key, async (current) => {
        seen.push(textOf(current));
        if (seen.length === 1) await removePod(others, 'a', 'x');
        return { do: 'write', json: x('2') };
      });
      assert.deepEqual(seen, ['1', undefined]);
      assert.equal(outcome, 'created');
    },
  },
  {
    id: 'update.conflict-created',
    title: 'after a concurrent creation the decision receives the object',
    async run({ pods, others }) {
      const seen: (string | undefined)[] = [];
      const { outcome } = await pods.update(key, async (current) => {
        seen.push(textOf(current));
        if (seen.length === 1) await createPod(others, 'a', 'x', { text: 'theirs' });
        return { do: 'write', json: x('ours') };
      });
      assert.deepEqual(seen, [undefined, 'theirs']);
      assert.equal(outcome, 'updated');
    },
  },
  {
    id: 'update.contention',
    title: 'many concurrent increments are all applied, each with its own revision',
    async run({ pods, others }) {
      await createPod(pods, 'a', 'x', { text: '0' });
      const increment = (storage: ResourceStorage) =>
        storage.update(key, (current) => ({ do: 'write', json: x(String(Number(textOf(current)) + 1)) }));
      const outcomes = await Promise.all(Array.from({ length: 40 }, (_, i) => increment(i % 2 === 0 ? pods : others)));
      assert.equal(textOf(await pods.get(key, latest)), '40');
      assert.equal(new Set(outcomes.map(({ object }) => object.revision)).size, 40);
    },
  },
  {
    id: 'update.in-turn',
    title: 'concurrent updates of one object are decided once each, also while the feed is delayed',
    requires: ['cache'],
    async run({ pods, others, store }) {
      await createPod(pods, 'a', 'x', { text: '0' });
      await pods.get(key, latest);
      store.holdStreams();
      let decided = 0;
      const increment = (current: StoredObject | undefined) => {
        decided++;
        return { do: 'write', json: x(String(Number(textOf(current)) + 1)) } as const;
      };
      await Promise.all(Array.from({ length: 20 }, () => pods.update(key, increment)));
      assert.equal(decided, 20);
      assert.equal(textOf(await others.get(key, latest)), '20');
    },
  },
  {
    id: 'update.stale-no-op',
    title: 'an outdated state is not sufficient for the outcome "unchanged"',
    async run({ pods, others, store }) {
      await createPod(pods, 'a', 'x', { text: 'old' });
      await pods.get(key, latest);
      store.holdStreams();
      await putPod(others, 'a', 'x', { text: 'new' });
      const write = await pods.update(key, () => ({ do: 'write', json: x('old') }));
      assert.equal(write.outcome, 'updated');
      assert.equal(textOf((await others.get(key, latest)) as StoredObject), 'old');
      await putPod(others, 'a', 'x', { text: 'newer' });
      const keep = await pods.update(key, () => ({ do: 'keep' }));
      assert.equal(textOf(keep.object), 'newer');
    },
  },
  {
    id: 'update.stale-error',
    title: 'an error of a decision on an outdated state is not final',
    async run({ pods, others, store }) {
      await createPod(pods, 'a', 'x', { text: 'bad' });
      await pods.get(key, latest);
      store.holdStreams();
      await putPod(others, 'a', 'x', { text: 'good' });
      const seen: (string | undefined)[] = [];
      const { outcome } = await pods.update(key, (current) => {
        seen.push(textOf(current));
        if (textOf(current) === 'bad') throw new Error('bad');
        return { do: 'write', json: x('better') };
      });
      assert.equal(outcome, 'updated');
      assert.equal(seen.at(-1), 'good');
    },
  },
  {
    id: 'update.stale-acceptance',
    title: 'a decision on an outdated state is repeated, and its error on the current state is final',
    async run({ pods, others, store }) {
      await createPod(pods, 'a', 'x', { text: 'allowed' });
      await pods.get(key, latest);
      store.holdStreams();
      const newest = await putPod(others, 'a', 'x', { text: 'forbidden' });
      await assert.rejects(
        pods.update(key, (current) => {
          if (textOf(current) !== 'allowed') throw new Error('forbidden');
          return { do: 'delete' };
        }),
        /forbidden/,
      );
      assert.equal((await others.get(key, latest))?.revision, newest.revision);
    },
  },
  {
    id: 'update.stale-missing',
    title: 'an object created elsewhere is read by an update immediately',
    async run({ pods, others, store }) {
      await pods.list(podPrefix, { at: any, predicate: everything });
      store.holdStreams();
      await createPod(others, 'a', 'x', { text: 'theirs' });
      const { object } = await pods.update(key, () => ({ do: 'keep' }));
      assert.equal(textOf(object), 'theirs');
    },
  },
  {
    id: 'update.ttl',
    title: 'a time to live given with an update applies, and an update without one removes it',
    requires: ['advance'],
    async run({ pods, advance }) {
      await createPod(pods, 'a', 'x', { text: '1' });
      await createPod(pods, 'a', 'y', { text: '1' });
      await pods.update(key, () => ({ do: 'write', json: x('2'), ttlMs: 5_000 }));
      await pods.update(podKey('a', 'y'), () => ({
        do: 'write',
        json: podJson('a', 'y', { text: '2' }),
        ttlMs: 5_000,
      }));
      await pods.update(podKey('a', 'y'), () => ({ do: 'write', json: podJson('a', 'y', { text: '3' }) }));
      await advance(5_001);
      await advance(2_000);
      assert.equal(await pods.get(key, latest), undefined);
      assert.equal(textOf(await pods.get(podKey('a', 'y'), latest)), '3');
    },
  },
  {
    id: 'update.outcome-unknown',
    title: 'a write without a response is OutcomeUnknown and is not repeated',
    async run({ pods, store }) {
      await createPod(pods, 'a', 'x', { text: '1' });
      store.afterWrite = () => {
        throw new StorageError(StorageErrorCode.OutcomeUnknown, 'the answer was lost');
      };
      const writes = store.calls.write;
      await failsWith('OutcomeUnknown', () => pods.update(key, () => ({ do: 'write', json: x('2') })));
      assert.equal(store.calls.write, writes + 1);
      assert.equal(textOf(await pods.get(key, latest)), '2');
    },
  },
  {
    id: 'update.aborted',
    title: 'an update whose signal is aborted writes nothing',
    async run({ pods, store }) {
      await createPod(pods, 'a', 'x', { text: '1' });
      const writes = store.calls.write;
      const signal = AbortSignal.abort();
      await failsWith('Timeout', () => pods.update(key, () => ({ do: 'write', json: x('2') }), { signal }));
      assert.equal(store.calls.write, writes);
    },
  },
  {
    id: 'update.not-an-object',
    title: 'bytes without metadata are rejected as Corrupt before anything is written',
    async run({ pods }) {
      const created = await createPod(pods, 'a', 'x', { text: '1' });
      await failsWith('Corrupt', () => pods.update(key, () => ({ do: 'write', json: Buffer.from('{}') })));
      assert.equal((await pods.get(key, latest))?.revision, created.revision);
    },
  },
];
