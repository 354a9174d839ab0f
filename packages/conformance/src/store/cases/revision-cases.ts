import assert from 'node:assert/strict';
import type { StoreCase } from '../harness.ts';
import { bytes, everything, failsWith, listAll, put, refused, remove, succeeded } from '../store-driver.ts';

/** Invariant 1: identity, and one total order of revisions. */
export const revisionCases: readonly StoreCase[] = [
  {
    id: 'store.capabilities',
    title: 'the store declares the capabilities of its harness',
    async run({ store, capabilities }) {
      assert.deepEqual(store.capabilities, capabilities);
      assert.ok(capabilities.maxKeyBytes >= 1024);
      assert.ok(capabilities.maxValueBytes >= 1024 * 1024);
    },
  },
  {
    id: 'identity.stable-while-open',
    title: 'a store has a constant identity and an epoch of at least one',
    async run({ store }) {
      const first = await store.identity();
      await put(store, '/a', 'x');
      assert.deepEqual(await store.identity(), first);
      assert.ok(first.storeId.length > 0);
      assert.ok(Number.isSafeInteger(first.epoch) && first.epoch >= 1);
    },
  },
  {
    id: 'identity.distinct-stores',
    title: 'two stores have different identities and share no data',
    async run({ store, another }) {
      const other = await another();
      assert.notEqual((await other.identity()).storeId, (await store.identity()).storeId);
      await put(store, '/a', 'x');
      assert.equal((await other.get('/a')).entry, undefined);
    },
  },
  {
    id: 'revision.empty-store',
    title: 'an empty store is at a revision of at least one',
    async run({ store }) {
      const revision = await store.currentRevision();
      assert.ok(revision >= 1);
      assert.equal((await listAll(store, everything)).revision, revision);
      assert.equal((await store.get('/a')).revision, revision);
    },
  },
  {
    id: 'revision.current-is-last-write',
    title: 'the current revision is that of the last write, in every read',
    async run({ store }) {
      const revision = await put(store, '/a', 'x');
      assert.ok((await store.currentRevision()) >= revision);
      assert.ok((await store.get('/a')).revision >= revision);
      assert.ok((await store.get('/missing')).revision >= revision);
      assert.ok((await listAll(store, everything)).revision >= revision);
      assert.ok((await store.count(everything)).revision >= revision);
    },
  },
  {
    id: 'revision.strictly-increasing',
    title: 'every successful write of any key and kind has a greater revision than all before',
    async run({ store }) {
      let last = await store.currentRevision();
      for (let round = 0; round < 20; round++) {
        const a = await put(store, `/a/${round}`, 'x');
        const b = await put(store, `/a/${round}`, 'y', a);
        const c = await put(store, `/b/${round}`, 'x');
        const d = await remove(store, `/a/${round}`, b);
        assert.ok(last < a && a < b && b < c && c < d);
        last = d;
      }
    },
  },
  {
    id: 'revision.dense',
    title: 'revisions have no gaps',
    requires: ['denseRevisions'],
    async run({ store }) {
      const base = await store.currentRevision();
      for (let i = 1; i <= 10; i++) assert.equal(await put(store, `/a/${i}`, 'x'), base + i);
      const results = await Promise.all(
        Array.from({ length: 10 }, (_, i) => store.write({ op: 'put', key: `/b/${i}`, value: bytes('x'), expect: 0 })),
      );
      const revisions = results.map(succeeded).sort((a, b) => a - b);
      assert.deepEqual(
        revisions,
        revisions.map((_, i) => base + 11 + i),
      );
    },
  },
  {
    id: 'revision.failed-cas-consumes-none',
    title: 'a write that fails its expectation consumes no revision',
    async run({ store }) {
      const revision = await put(store, '/a', 'x');
      refused(await store.write({ op: 'put', key: '/a', value: bytes('y'), expect: 0 }));
      refused(await store.write({ op: 'put', key: '/b', value: bytes('y'), expect: revision }));
      refused(await store.write({ op: 'delete', key: '/b', expect: revision }));
      refused(await store.write({ op: 'delete', key: '/a', expect: revision + 1 }));
      assert.equal(await store.currentRevision(), revision);
      if (store.capabilities.denseRevisions) assert.equal(await put(store, '/b', 'y'), revision + 1);
    },
  },
  {
    id: 'revision.rejected-write-consumes-none',
    title: 'a write that is rejected for its key or size consumes no revision',
    async run({ store }) {
      const revision = await put(store, '/a', 'x');
      const { maxKeyBytes, maxValueBytes } = store.capabilities;
      await failsWith('InvalidKey', () => put(store, '', 'x'));
      await failsWith('InvalidKey', () => put(store, `/${'k'.repeat(maxKeyBytes)}`, 'x'));
      await failsWith('TooLarge', () => put(store, '/b', new Uint8Array(maxValueBytes + 1)));
      assert.equal(await store.currentRevision(), revision);
    },
  },
  {
    id: 'revision.reads-consume-none',
    title: 'reads, watches and compaction consume no revision',
    async run({ store }) {
      const first = await put(store, '/a', 'x');
      const revision = await put(store, '/a', 'y', first);
      await store.get('/a', { revision: first });
      await listAll(store, everything, { revision: first });
      await store.count(everything);
      const stream = await store.watch(everything, { after: first });
      await stream.close();
      await store.compact(first);
      assert.equal(await store.currentRevision(), revision);
    },
  },
  {
    id: 'revision.concurrent-writes-distinct',
    title: 'concurrent writes of different keys all succeed with different revisions',
    async run({ store }) {
      const writes = Array.from({ length: 200 }, (_, i) => put(store, `/a/${i}`, `v${i}`));
      const revisions = await Promise.all(writes);
      assert.equal(new Set(revisions).size, 200);
      const { entries } = await listAll(store, everything);
      assert.equal(entries.length, 200);
      for (const entry of entries) assert.equal(entry.modRevision, revisions[Number(entry.key.slice(3))]);
    },
  },
  {
    id: 'revision.real-time-order',
    title: 'a write that starts after another one ended has the greater revision, whatever else is in flight',
    async run({ store }) {
      const noise = Array.from({ length: 64 }, (_, i) => put(store, `/noise/${i}`, 'n'));
      let last = 0;
      for (let i = 0; i < 20; i++) {
        const revision = await put(store, `/a/${i}`, 'x');
        assert.ok(revision > last);
        assert.ok((await store.currentRevision()) >= revision);
        last = revision;
      }
      await Promise.all(noise);
    },
  },
];
