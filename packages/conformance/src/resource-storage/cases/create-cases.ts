import assert from 'node:assert/strict';
import { isStorageError, StorageError, StorageErrorCode } from '@keelson/core';
import type { ResourceStorageCase } from '../harness.ts';
import { any, createPod, everything, keysOf, latest, nodeKey, podJson, podKey, podPrefix, textOf } from '../objects.ts';
import { describe, eventsOf, failsWith } from '../waiting.ts';

export const createCases: readonly ResourceStorageCase[] = [
  {
    id: 'create.revision',
    title: 'a created object has its key, its revision and that revision in its JSON, first in metadata',
    async run({ pods }) {
      const before = await pods.currentRevision();
      const object = await createPod(pods, 'a', 'x', { text: 'hello' });
      assert.equal(object.key, podKey('a', 'x'));
      assert.ok(object.revision > before);
      assert.equal(object.createRevision, object.revision);
      assert.equal(
        object.json.toString(),
        podJson('a', 'x', { text: 'hello' })
          .toString()
          .replace('"metadata":{', `"metadata":{"resourceVersion":"${object.revision}",`),
      );
    },
  },
  {
    id: 'create.exists',
    title: 'a second create fails with AlreadyExists and changes nothing',
    async run({ pods }) {
      const first = await createPod(pods, 'a', 'x', { text: 'first' });
      await failsWith('AlreadyExists', () => createPod(pods, 'a', 'x', { text: 'second' }));
      assert.equal(await pods.currentRevision(), first.revision);
      assert.equal(textOf(await pods.get(podKey('a', 'x'), latest)), 'first');
    },
  },
  {
    id: 'create.read-your-write',
    title: 'a created object is in the next consistent read and list',
    async run({ pods }) {
      for (let i = 0; i < 20; i++) {
        const object = await createPod(pods, 'a', `x${i}`);
        assert.equal((await pods.get(object.key, latest))?.revision, object.revision);
        const list = await pods.list(podPrefix, { at: latest, predicate: everything });
        assert.equal(list.count, i + 1);
        assert.ok(list.revision >= object.revision);
      }
    },
  },
  {
    id: 'create.race',
    title: 'of many creates of one key exactly one succeeds',
    async run({ pods }) {
      const tries = Array.from({ length: 20 }, (_, i) => createPod(pods, 'a', 'x', { text: String(i) }));
      const results = await Promise.allSettled(tries);
      const won = results.filter((result) => result.status === 'fulfilled');
      assert.equal(won.length, 1);
      for (const result of results) {
        if (result.status === 'rejected') assert.ok(isStorageError(result.reason, 'AlreadyExists'));
      }
      assert.equal((await pods.get(podKey('a', 'x'), latest))?.revision, won[0]?.value.revision);
    },
  },
  {
    id: 'create.ttl',
    title: 'an object with a time to live expires with a DELETED event that contains its last state',
    requires: ['advance'],
    async run({ pods, advance }) {
      const start = await pods.currentRevision();
      const watch = await pods.watch(podPrefix, {
        predicate: everything,
        from: { start: 'changesAfter', revision: start },
      });
      const object = await pods.create(podKey('a', 'x'), podJson('a', 'x', { text: 'short' }), { ttlMs: 5_000 });
      await advance(5_001);
      await advance(2_000);
      const [added, deleted] = await eventsOf(watch, 2);
      assert.equal(added?.object.revision, object.revision);
      assert.equal(deleted?.type, 'DELETED');
      assert.equal(textOf(deleted.object), 'short');
      assert.ok(deleted.object.revision > object.revision);
      assert.equal(await pods.get(object.key, latest), undefined);
    },
  },
  {
    id: 'create.not-an-object',
    title: 'bytes without metadata are rejected as Corrupt before anything is written',
    async run({ pods, store }) {
      const writes = store.calls.write;
      await failsWith('Corrupt', () => pods.create(podKey('a', 'x'), Buffer.from('{"kind":"Pod"}')));
      assert.equal(store.calls.write, writes);
    },
  },
  {
    id: 'create.empty-metadata',
    title: 'an object with empty metadata is valid JSON after the resourceVersion is inserted',
    async run({ nodes }) {
      const object = await nodes.create(nodeKey('x'), Buffer.from('{"kind":"Node","apiVersion":"v1","metadata":{}}'));
      assert.deepEqual(object.value(), {
        kind: 'Node',
        apiVersion: 'v1',
        metadata: { resourceVersion: String(object.revision) },
      });
    },
  },
  {
    id: 'create.hostile-names',
    title: 'names of JavaScript properties and names with unusual sort order are ordinary names',
    async run({ pods }) {
      const hostile = [
        '__proto__',
        'constructor',
        'toString',
        'hasOwnProperty',
        '\u{10ffff}',
        '\uffee',
        'é',
        '%2f',
        ' ',
        '"',
      ];
      for (const name of hostile) await createPod(pods, 'a', name, { text: name, labels: { ['__proto__']: name } });
      for (const name of hostile) {
        assert.equal(textOf(await pods.get(podKey('a', name), latest)), name);
        await failsWith('AlreadyExists', () => createPod(pods, 'a', name));
      }
      const list = await pods.list(podPrefix, { at: any, predicate: everything });
      const byBytes = hostile
        .map((name) => podKey('a', name))
        .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      assert.deepEqual(keysOf(list), byBytes);
    },
  },
  {
    id: 'create.large',
    title: 'an object of half a megabyte is stored unchanged, alone and among small ones',
    async run({ pods }) {
      const text = 'é'.repeat(256 * 1024);
      await createPod(pods, 'a', 'small');
      const object = await createPod(pods, 'a', 'big', { text });
      assert.equal(textOf(object), text);
      const list = await pods.list(podPrefix, { at: latest, predicate: everything });
      assert.deepEqual([...list.objects()].map(textOf), [text, '']);
    },
  },
  {
    id: 'create.outcome-unknown',
    title: 'a write without a response fails with OutcomeUnknown, is not repeated, and is visible if it was executed',
    async run({ pods, store }) {
      const start = await pods.currentRevision();
      const watch = await pods.watch(podPrefix, {
        predicate: everything,
        from: { start: 'changesAfter', revision: start },
      });
      store.afterWrite = () => {
        throw new StorageError(StorageErrorCode.OutcomeUnknown, 'the answer was lost');
      };
      const writes = store.calls.write;
      await failsWith('OutcomeUnknown', () => createPod(pods, 'a', 'x', { text: 'done' }));
      assert.equal(store.calls.write, writes + 1);
      store.afterWrite = undefined;
      const events = await eventsOf(watch, 1);
      assert.deepEqual(describe(events), [`ADDED x done@${start + 1}`]);
      assert.equal(textOf(await pods.get(podKey('a', 'x'), latest)), 'done');
    },
  },
  {
    id: 'create.unavailable',
    title: 'a write that did not reach the store fails with the error of the store, and has no effect',
    async run({ pods, store }) {
      store.beforeWrite = () => {
        throw new StorageError(StorageErrorCode.Unavailable, 'not now');
      };
      await failsWith('Unavailable', () => createPod(pods, 'a', 'x'));
      store.beforeWrite = undefined;
      assert.equal(await pods.get(podKey('a', 'x'), latest), undefined);
    },
  },
  {
    id: 'create.aborted',
    title: 'a create whose signal is aborted does nothing',
    async run({ pods, store }) {
      const writes = store.calls.write;
      await failsWith('Timeout', () =>
        pods.create(podKey('a', 'x'), podJson('a', 'x'), { signal: AbortSignal.abort() }),
      );
      assert.equal(store.calls.write, writes);
    },
  },
  {
    id: 'create.key-checked',
    title: 'invalid keys are rejected as InvalidKey',
    async run({ pods }) {
      for (const key of [`${podPrefix}a/\0`, podPrefix + 'x'.repeat(1100), `${podPrefix}\ud800`]) {
        await failsWith('InvalidKey', () => pods.create(key, podJson('a', 'x')));
      }
    },
  },
];
