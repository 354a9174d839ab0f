import assert from 'node:assert/strict';
import type { Store } from '@keelson/core/storage-adapter';
import type { StoreCase, StoreCaseContext } from '../harness.ts';
import { everything, listAll, put, refused, remove, textOf } from '../store-driver.ts';
import { changesBetween } from '../watcher.ts';

/** Advances the clock until the key is deleted; a store may delete it later than its expiry time. */
async function untilGone(store: Store, key: string, advance: StoreCaseContext['advance']): Promise<void> {
  for (let i = 0; i < 60; i++) {
    if ((await store.get(key)).entry === undefined) return;
    await advance(1000);
  }
  assert.fail(`${key} is still there a minute after its time`);
}

/** Invariant 14: keys with a time to live. */
export const expiryCases: readonly StoreCase[] = [
  {
    id: 'ttl.declared',
    title: 'an entry with a time to live contains its expiry time in every read',
    async run({ store }) {
      const after = await store.currentRevision();
      const revision = await put(store, '/a', 'x', 0, { ttlMs: 60_000 });
      const expiresAt = (await store.get('/a')).entry?.expiresAt;
      assert.ok(typeof expiresAt === 'number' && expiresAt > 60_000);
      for await (const chunk of store.list(everything)) assert.equal(chunk.entries[0]?.expiresAt, expiresAt);
      assert.equal((await store.get('/a', { revision })).entry?.expiresAt, expiresAt);
      const stream = await store.watch(everything, { after });
      for await (const batch of stream) {
        const change = batch.changes.find(({ key }) => key === '/a');
        if (change === undefined) continue;
        assert.equal(change.entry?.expiresAt, expiresAt);
        break;
      }
    },
  },
  {
    id: 'ttl.ordinary-delete',
    title: 'an expired key is deleted with a revision and a prev',
    requires: ['advance'],
    async run({ store, advance }) {
      const created = await put(store, '/a', 'x', 0, { ttlMs: 5000 });
      await advance(5001);
      await untilGone(store, '/a', advance);
      const now = await store.currentRevision();
      assert.ok(now > created);
      const changes = await changesBetween(store, created, now);
      assert.deepEqual(
        changes.map(({ type, key, prev }) => [type, key, prev?.value]),
        [['delete', '/a', 'x']],
      );
    },
  },
  {
    id: 'ttl.not-early',
    title: 'a key exists until its expiry time',
    requires: ['advance'],
    async run({ store, advance }) {
      await put(store, '/a', 'x', 0, { ttlMs: 10_000 });
      for (const ms of [1, 4999, 3000, 1999]) {
        await advance(ms);
        assert.equal(textOf((await store.get('/a')).entry), 'x');
      }
      await advance(2);
      await untilGone(store, '/a', advance);
    },
  },
  {
    id: 'ttl.idle-store',
    title: 'a key expires without any write or read',
    requires: ['advance'],
    async run({ store, advance }) {
      const revision = await put(store, '/a', 'x', 0, { ttlMs: 1000 });
      for (let i = 0; i < 60; i++) await advance(1000);
      assert.ok((await store.currentRevision()) > revision);
      assert.equal((await listAll(store, everything)).entries.length, 0);
    },
  },
  {
    id: 'ttl.removed-by-update',
    title: 'an update without a time to live removes the expiry',
    requires: ['advance'],
    async run({ store, advance }) {
      const created = await put(store, '/a', 'x', 0, { ttlMs: 5000 });
      const updated = await put(store, '/a', 'y', created);
      assert.equal((await store.get('/a')).entry?.expiresAt, undefined);
      for (let i = 0; i < 40; i++) await advance(1000);
      assert.equal((await store.get('/a')).entry?.modRevision, updated);
      assert.equal(await store.currentRevision(), updated);
    },
  },
  {
    id: 'ttl.renewed',
    title: 'an update with a new time to live restarts it',
    requires: ['advance'],
    async run({ store, advance }) {
      let expect = await put(store, '/a', '0', 0, { ttlMs: 5000 });
      for (let i = 1; i <= 5; i++) {
        await advance(4000);
        expect = await put(store, '/a', `${i}`, expect, { ttlMs: 5000 });
      }
      await advance(4000);
      assert.equal(textOf((await store.get('/a')).entry), '5');
      await advance(1001);
      await untilGone(store, '/a', advance);
    },
  },
  {
    id: 'ttl.shortened',
    title: 'an update may shorten the time to live',
    requires: ['advance'],
    async run({ store, advance }) {
      const created = await put(store, '/a', 'x', 0, { ttlMs: 3_600_000 });
      await put(store, '/a', 'y', created, { ttlMs: 1000 });
      await advance(1001);
      await untilGone(store, '/a', advance);
    },
  },
  {
    id: 'ttl.deleted-before',
    title: 'a key deleted before its expiry is not deleted again, nor is its successor',
    requires: ['advance'],
    async run({ store, advance }) {
      const created = await put(store, '/a', 'x', 0, { ttlMs: 5000 });
      await remove(store, '/a', created);
      const again = await put(store, '/a', 'y');
      for (let i = 0; i < 40; i++) await advance(1000);
      assert.equal((await store.get('/a')).entry?.modRevision, again);
      assert.equal(await store.currentRevision(), again);
    },
  },
  {
    id: 'ttl.many',
    title: 'many keys expire, each with its own change, and the others remain',
    requires: ['advance'],
    async run({ store, advance }) {
      for (let i = 0; i < 200; i++) await put(store, `/a/${i}`, 'x', 0, i % 2 === 0 ? { ttlMs: 1000 + i } : {});
      const before = await store.currentRevision();
      await advance(1300);
      for (let i = 0; i < 200; i += 2) await untilGone(store, `/a/${i}`, advance);
      assert.equal((await listAll(store, everything)).entries.length, 100);
      const changes = await changesBetween(store, before, await store.currentRevision());
      assert.equal(changes.length, 100);
      assert.equal(new Set(changes.map(({ revision }) => revision)).size, 100);
      assert.ok(changes.every(({ type }) => type === 'delete'));
    },
  },
  {
    id: 'ttl.expectations',
    title: 'an expectation of an expired key fails like that of a deleted one',
    requires: ['advance'],
    async run({ store, advance }) {
      const created = await put(store, '/a', 'x', 0, { ttlMs: 1000 });
      await advance(1001);
      await untilGone(store, '/a', advance);
      assert.equal(refused(await store.write({ op: 'delete', key: '/a', expect: created })).current, undefined);
      assert.ok((await put(store, '/a', 'y')) > created);
    },
  },
  {
    id: 'ttl.in-history',
    title: 'an expired key is readable at the revisions at which it existed',
    requires: ['advance'],
    async run({ store, advance }) {
      const created = await put(store, '/a', 'x', 0, { ttlMs: 1000 });
      await advance(1001);
      await untilGone(store, '/a', advance);
      assert.equal(textOf((await store.get('/a', { revision: created })).entry), 'x');
      assert.deepEqual((await listAll(store, everything, { revision: created })).keys, ['/a']);
    },
  },
  {
    id: 'ttl.across-reopen',
    title: 'a time to live persists across restarts, and overdue keys are deleted after the start',
    requires: ['advance', 'reopen', 'durable'],
    async run({ store, advance, reopen }) {
      await put(store, '/soon', 'x', 0, { ttlMs: 2000 });
      await put(store, '/late', 'x', 0, { ttlMs: 3_600_000 });
      const before = await store.currentRevision();
      const again = await reopen();
      assert.equal(textOf((await again.get('/soon')).entry), 'x');
      await advance(2001);
      await untilGone(again, '/soon', advance);
      assert.equal(textOf((await again.get('/late')).entry), 'x');
      const changes = await changesBetween(again, before, await again.currentRevision());
      assert.deepEqual(
        changes.map(({ type, key }) => [type, key]),
        [['delete', '/soon']],
      );
    },
  },
];
