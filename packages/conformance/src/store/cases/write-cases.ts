import assert from 'node:assert/strict';
import type { WriteOp, WriteResult } from '@keelson/core/storage-adapter';
import type { StoreCase } from '../harness.ts';
import { bytes, put, refused, remove, succeeded, textOf } from '../store-driver.ts';

async function race(results: readonly Promise<WriteResult>[]): Promise<{ winner: number; revision: number }> {
  const settled = await Promise.all(results);
  const winners = settled.flatMap((result, i) => (result.ok ? [i] : []));
  assert.equal(winners.length, 1, `expected exactly one winner, got ${winners.length}`);
  const winner = winners[0] as number;
  const revision = succeeded(settled[winner] as WriteResult);
  for (const result of settled)
    if (!result.ok) assert.ok(refused(result).revision >= revision, 'a loser has seen the winner');
  return { winner, revision };
}

/** Compare-and-set on one key: invariants 1 and 4. */
export const writeCases: readonly StoreCase[] = [
  {
    id: 'write.create',
    title: 'a create returns its revision as createRevision and can be read',
    async run({ store }) {
      const result = await store.write({ op: 'put', key: '/a', value: bytes('x'), expect: 0 });
      assert.ok(result.ok);
      assert.equal(result.createRevision, result.revision);
      const { entry } = await store.get('/a');
      assert.equal(textOf(entry), 'x');
      assert.equal(entry?.key, '/a');
      assert.equal(entry?.createRevision, result.revision);
      assert.equal(entry?.modRevision, result.revision);
      assert.equal(entry?.expiresAt, undefined);
    },
  },
  {
    id: 'write.create-existing',
    title: 'a create of an existing key is rejected with the existing entry',
    async run({ store }) {
      const revision = await put(store, '/a', 'x');
      const answer = refused(await store.write({ op: 'put', key: '/a', value: bytes('y'), expect: 0 }));
      assert.deepEqual(answer.current, { key: '/a', value: 'x', createRevision: revision, modRevision: revision });
      assert.equal(textOf((await store.get('/a')).entry), 'x');
    },
  },
  {
    id: 'write.update',
    title: 'an update keeps createRevision and changes modRevision',
    async run({ store }) {
      const created = await put(store, '/a', 'x');
      const result = await store.write({ op: 'put', key: '/a', value: bytes('y'), expect: created });
      assert.ok(result.ok);
      assert.equal(result.createRevision, created);
      const { entry } = await store.get('/a');
      assert.equal(textOf(entry), 'y');
      assert.equal(entry?.createRevision, created);
      assert.equal(entry?.modRevision, result.revision);
    },
  },
  {
    id: 'write.update-stale',
    title: 'an update that expects an older modRevision is rejected with the current entry',
    async run({ store }) {
      const created = await put(store, '/a', 'x');
      const updated = await put(store, '/a', 'y', created);
      const answer = refused(await store.write({ op: 'put', key: '/a', value: bytes('z'), expect: created }));
      assert.deepEqual(answer.current, { key: '/a', value: 'y', createRevision: created, modRevision: updated });
    },
  },
  {
    id: 'write.update-missing',
    title: 'an update of a key that does not exist is rejected without an entry',
    async run({ store }) {
      const revision = await put(store, '/b', 'x');
      assert.equal(
        refused(await store.write({ op: 'put', key: '/a', value: bytes('y'), expect: revision })).current,
        undefined,
      );
      assert.equal((await store.get('/a')).entry, undefined);
    },
  },
  {
    id: 'write.update-future',
    title: 'an update that expects a future revision is rejected',
    async run({ store }) {
      const created = await put(store, '/a', 'x');
      refused(await store.write({ op: 'put', key: '/a', value: bytes('y'), expect: created + 1 }));
      refused(await store.write({ op: 'put', key: '/a', value: bytes('y'), expect: Number.MAX_SAFE_INTEGER }));
    },
  },
  {
    id: 'write.update-other-keys-revision',
    title: 'an update that expects the revision of another key is rejected',
    async run({ store }) {
      await put(store, '/a', 'x');
      const other = await put(store, '/b', 'x');
      refused(await store.write({ op: 'put', key: '/a', value: bytes('y'), expect: other }));
    },
  },
  {
    id: 'write.update-same-bytes',
    title: 'a put of the same bytes is a change like any other',
    async run({ store }) {
      const created = await put(store, '/a', 'x');
      const updated = await put(store, '/a', 'x', created);
      assert.ok(updated > created);
      assert.equal((await store.get('/a')).entry?.modRevision, updated);
    },
  },
  {
    id: 'write.delete',
    title: 'a delete has its own revision, and the key does not exist afterwards',
    async run({ store }) {
      const created = await put(store, '/a', 'x');
      const deleted = await remove(store, '/a', created);
      assert.ok(deleted > created);
      assert.equal((await store.get('/a')).entry, undefined);
    },
  },
  {
    id: 'write.delete-stale',
    title: 'a delete that expects an older modRevision is rejected and deletes nothing',
    async run({ store }) {
      const created = await put(store, '/a', 'x');
      const updated = await put(store, '/a', 'y', created);
      assert.equal(
        refused(await store.write({ op: 'delete', key: '/a', expect: created })).current?.modRevision,
        updated,
      );
      assert.equal(textOf((await store.get('/a')).entry), 'y');
    },
  },
  {
    id: 'write.delete-missing',
    title: 'a delete of a key that does not exist is rejected, also when it expects absence',
    async run({ store }) {
      const revision = await put(store, '/b', 'x');
      for (const expect of [0, revision]) {
        assert.equal(refused(await store.write({ op: 'delete', key: '/a', expect })).current, undefined);
      }
      assert.equal(refused(await store.write({ op: 'delete', key: '/b', expect: 0 })).current?.modRevision, revision);
      assert.equal(await store.currentRevision(), revision);
    },
  },
  {
    id: 'write.delete-twice',
    title: 'the second delete of a key is rejected',
    async run({ store }) {
      const created = await put(store, '/a', 'x');
      const deleted = await remove(store, '/a', created);
      refused(await store.write({ op: 'delete', key: '/a', expect: created }));
      refused(await store.write({ op: 'delete', key: '/a', expect: deleted }));
    },
  },
  {
    id: 'write.recreate',
    title: 'a key created again has a new createRevision, and expectations of previous revisions fail',
    async run({ store }) {
      const first = await put(store, '/a', 'x');
      await remove(store, '/a', first);
      const second = await put(store, '/a', 'y');
      const { entry } = await store.get('/a');
      assert.equal(entry?.createRevision, second);
      refused(await store.write({ op: 'put', key: '/a', value: bytes('z'), expect: first }));
      refused(await store.write({ op: 'delete', key: '/a', expect: first }));
    },
  },
  {
    id: 'write.expect-create-revision',
    title: 'the expectation refers to modRevision, not to createRevision',
    async run({ store }) {
      const created = await put(store, '/a', 'x');
      const updated = await put(store, '/a', 'y', created);
      refused(await store.write({ op: 'put', key: '/a', value: bytes('z'), expect: created }));
      await put(store, '/a', 'z', updated);
    },
  },
  {
    id: 'write.race-create',
    title: 'of many concurrent creates of one key exactly one succeeds, and its value persists',
    async run({ store }) {
      const { winner, revision } = await race(
        Array.from({ length: 50 }, (_, i) => store.write({ op: 'put', key: '/a', value: bytes(`v${i}`), expect: 0 })),
      );
      const { entry } = await store.get('/a');
      assert.equal(textOf(entry), `v${winner}`);
      assert.equal(entry?.modRevision, revision);
    },
  },
  {
    id: 'write.race-update',
    title: 'of many concurrent updates of one revision exactly one succeeds',
    async run({ store }) {
      let expect = await put(store, '/a', 'x');
      for (let round = 0; round < 5; round++) {
        const value = (i: number) => bytes(`${round}-${i}`);
        const attempts = Array.from({ length: 20 }, (_, i) =>
          store.write({ op: 'put', key: '/a', value: value(i), expect }),
        );
        const { winner, revision } = await race(attempts);
        assert.equal(textOf((await store.get('/a')).entry), `${round}-${winner}`);
        expect = revision;
      }
    },
  },
  {
    id: 'write.race-delete',
    title: 'of many concurrent deletes of one revision exactly one succeeds',
    async run({ store }) {
      const expect = await put(store, '/a', 'x');
      await race(Array.from({ length: 20 }, () => store.write({ op: 'delete', key: '/a', expect })));
      assert.equal((await store.get('/a')).entry, undefined);
    },
  },
  {
    id: 'write.race-put-delete',
    title: 'of a put and a delete of the same revision exactly one succeeds',
    async run({ store }) {
      for (let round = 0; round < 10; round++) {
        const key = `/a/${round}`;
        const expect = await put(store, key, 'x');
        const ops: WriteOp[] = [
          { op: 'put', key, value: bytes('y'), expect },
          { op: 'delete', key, expect },
        ];
        const { winner } = await race((round % 2 === 0 ? ops : ops.reverse()).map((op) => store.write(op)));
        const { entry } = await store.get(key);
        assert.equal(entry === undefined, ops[winner]?.op === 'delete');
      }
    },
  },
  {
    id: 'write.race-losers-see-winner',
    title: 'a rejected write returns an entry newer than the expected revision',
    async run({ store }) {
      const expect = await put(store, '/a', 'x');
      const results = await Promise.all(
        Array.from({ length: 20 }, (_, i) => store.write({ op: 'put', key: '/a', value: bytes(`v${i}`), expect })),
      );
      for (const result of results) {
        if (result.ok) continue;
        const { current } = refused(result);
        assert.ok(current !== undefined && current.modRevision > expect);
      }
    },
  },
  {
    id: 'write.counter',
    title: 'concurrent read-modify-write loops lose no increment',
    async run({ store }) {
      await put(store, '/counter', '0');
      const worker = async () => {
        for (let done = 0; done < 10; ) {
          const { entry } = await store.get('/counter');
          assert.ok(entry !== undefined);
          const value = bytes(String(Number(textOf(entry)) + 1));
          const result = await store.write({ op: 'put', key: '/counter', value, expect: entry.modRevision });
          if (result.ok) done++;
        }
      };
      await Promise.all(Array.from({ length: 6 }, worker));
      assert.equal(textOf((await store.get('/counter')).entry), '60');
    },
  },
  {
    id: 'write.pipelined-same-key',
    title: 'concurrent writes of one key take effect in the order of their revisions',
    async run({ store }) {
      const created = await put(store, '/a', 'start');
      const attempts = [0, created, created + 1, created + 2, created, created + 3];
      const results = await Promise.all(
        attempts.map((expect, i) => store.write({ op: 'put', key: '/a', value: bytes(`v${i}`), expect })),
      );
      const chain = results.flatMap((result, i) =>
        result.ok ? [{ revision: result.revision, expect: attempts[i] }] : [],
      );
      chain.sort((a, b) => a.revision - b.revision);
      let last = created;
      for (const link of chain) {
        assert.equal(link.expect, last, 'every winner expected the one before');
        last = link.revision;
      }
      assert.equal((await store.get('/a')).entry?.modRevision, last);
    },
  },
  {
    id: 'write.read-your-write',
    title: 'every read that starts after a write was acknowledged returns it',
    async run({ store }) {
      let expect = 0;
      for (let i = 0; i < 50; i++) {
        expect = await put(store, '/a', `v${i}`, expect);
        const [got, revision] = await Promise.all([store.get('/a'), store.currentRevision()]);
        assert.equal(textOf(got.entry), `v${i}`);
        assert.ok(revision >= expect && got.revision >= expect);
      }
    },
  },
];
