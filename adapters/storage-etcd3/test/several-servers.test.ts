import { FakeClock, type Labels, type Metrics, noMetrics } from '@keelson/core/runtime';
import test from 'ava';
import { Etcd3Store } from '../src/index.ts';
import { etcdForThisFile, newPrefix, openEtcd, theServer } from './support/etcd-harness.ts';
import { Follower, failureOf, put, until } from './support/following.ts';

/** Sums of counters by name. */
function countingMetrics(): { readonly metrics: Metrics; readonly counts: Map<string, number> } {
  const counts = new Map<string, number>();
  const counter = ({ name }: { readonly name: string }) => ({
    add: (value: number, _labels?: Labels) => void counts.set(name, (counts.get(name) ?? 0) + value),
  });
  return { metrics: { ...noMetrics, counter }, counts };
}

if (etcdForThisFile()) {
  test.serial(
    'stores on one prefix have one identity and order, one winner of each write, and read the writes of each other',
    async (t) => {
      const prefix = newPrefix();
      const stores = await Promise.all(Array.from({ length: 4 }, () => openEtcd({ prefix })));
      t.teardown(() => Promise.all(stores.map((store) => store.dispose())).then(() => {}));
      const identities = await Promise.all(stores.map(({ store }) => store.identity()));
      for (const identity of identities) t.deepEqual(identity, identities[0]);
      const start = (await stores[0]?.store.currentRevision()) as number;
      const followers = await Promise.all(stores.map(({ store }) => Follower.open(store, start, { prevValue: true })));
      let last = 0;
      for (let round = 0; round < 30; round++) {
        const expect = last;
        const writes = stores.map(({ store }, i) =>
          store.write({ op: 'put', key: '/one', value: Buffer.from(`${round} by ${i}`), expect }),
        );
        const results = await Promise.all(writes);
        const winners = results.filter((result) => result.ok);
        t.is(winners.length, 1);
        last = winners[0]?.revision as number;
        for (const result of results) if (!result.ok) t.is(result.current?.modRevision, last);
        const { store } = stores[round % stores.length] as (typeof stores)[number];
        t.is((await store.get('/one')).entry?.modRevision, last, 'every server reads acknowledged writes');
      }
      await Promise.all(followers.map((follower) => follower.reach(last)));
      for (const follower of followers) {
        t.is(follower.changes.length, 30);
        t.deepEqual(follower.changes, followers[0]?.changes);
      }
    },
  );

  test.serial('a compaction by one server is the compacted revision of all servers', async (t) => {
    const prefix = newPrefix();
    const [one, two] = [await openEtcd({ prefix }), await openEtcd({ prefix })];
    t.teardown(() => Promise.all([one.dispose(), two.dispose()]).then(() => {}));
    const first = await put(one.store, '/a', 'x');
    const second = await put(one.store, '/a', 'y', first);
    await put(one.store, '/a', 'z', second);
    t.is(await two.store.compactedRevision(), 0);
    await one.store.compact(second);
    t.is(await two.store.compactedRevision(), second);
    t.like(await failureOf(two.store.get('/a', { revision: first })), { code: 'Compacted', revision: second });
    await one.store.compact(second + 1);
    t.like(await failureOf(two.store.get('/a', { revision: second })), { code: 'Compacted', revision: second + 1 });
  });

  test.serial('a new store in an etcd with compacted history begins with a history of its own', async (t) => {
    const old = await openEtcd();
    await old.store.compact(await put(old.store, '/a', 'x'));
    const young = await openEtcd();
    t.teardown(() => Promise.all([old.dispose(), young.dispose()]).then(() => {}));
    t.is(await young.store.compactedRevision(), 0);
    t.deepEqual(await young.store.get('/a', { revision: 1 }), { entry: undefined, revision: 1 });
    const revision = await put(young.store, '/a', 'x');
    const follower = await Follower.open(young.store, 1);
    await follower.reach(revision);
    t.deepEqual(follower.revisions, [revision]);
  });

  test.serial(
    'one of several servers compacts in each interval, never recent history nor the newest changes',
    async (t) => {
      const prefix = newPrefix();
      const clocks = [new FakeClock(), new FakeClock()];
      const history = { minAgeMs: 60_000, minChanges: 50 };
      const stores = await Promise.all(
        clocks.map((clock) => openEtcd({ prefix, clock, history, compaction: 'auto' }).then(({ etcd }) => etcd)),
      );
      t.teardown(() => Promise.all(stores.map((store) => store.close())).then(() => {}));
      const [one] = stores as [Etcd3Store, Etcd3Store];
      const turn = async () => {
        for (const [i, clock] of clocks.entries()) {
          clock.advance(60_000);
          await stores[i]?.settled();
        }
      };
      const begin = await put(one, '/begin', 'x');
      await turn();
      await turn();
      t.is(await one.compactedRevision(), 0, 'fewer changes than the minimum');
      for (let i = 0; i < 200; i++) await put(one, `/a/${i}`, 'x');
      const end = await one.currentRevision();
      await turn();
      const early = await one.compactedRevision();
      t.true(early <= begin + 10, 'changes within the interval remain');
      await turn();
      await turn();
      const bound = await one.compactedRevision();
      t.true(bound > begin && bound <= end - 40, `${begin} < ${bound} <= ${end} - 40`);
      for (const store of stores) t.is(await store.compactedRevision(), bound);
    },
  );

  test.serial('expired keys are removed by an ordinary delete, not early, and share leases', async (t) => {
    t.timeout(60_000);
    const { metrics, counts } = countingMetrics();
    const { store } = await openEtcd({ metrics });
    t.teardown(() => store.close());
    const start = await store.currentRevision();
    const follower = await Follower.open(store, start, { prevValue: true });
    const ends = new Map<string, number>();
    await Promise.all(
      Array.from({ length: 60 }, async (_, i) => {
        const begin = performance.now();
        const ttlMs = 2500;
        await store.write({ op: 'put', key: `/ttl/${i}`, value: Buffer.from(`v${i}`), expect: 0, ttlMs });
        ends.set(`/ttl/${i}`, begin + ttlMs);
      }),
    );
    const renewed = (await store.get('/ttl/0')).entry?.modRevision as number;
    await put(store, '/ttl/0', 'kept', renewed);
    t.true((counts.get('keelson_etcd_leases_total') ?? 0) <= 2, 'leases are shared');
    const early: string[] = [];
    await until(() => {
      for (const { type, key } of follower.changes) {
        if (type === 'delete' && performance.now() < (ends.get(key) ?? 0)) early.push(key);
      }
      return follower.changes.filter(({ type }) => type === 'delete').length === 59;
    }, 'all keys are deleted');
    const late = performance.now() - Math.max(...ends.values());
    t.deepEqual(early, []);
    t.true(late < 15_000, `${late} ms late`);
    for (const { type, key, prev } of follower.changes) {
      if (type === 'delete') t.is(Buffer.from(prev?.value ?? []).toString(), key.replace('/ttl/', 'v'));
    }
    const { entry } = await store.get('/ttl/0');
    t.is(Buffer.from(entry?.value ?? []).toString(), 'kept');
    t.is(entry?.expiresAt, undefined);
  });

  test.serial('a revoked lease is replaced, and the write succeeds', async (t) => {
    const { store } = await openEtcd();
    t.teardown(() => store.close());
    await store.write({ op: 'put', key: '/a', value: Buffer.from('x'), expect: 0, ttlMs: 600_000 });
    // The HTTP gateway of etcd is used as by an operator.
    const call = async (path: string, body: unknown) => {
      const answer = await fetch(`${theServer().url}${path}`, { method: 'POST', body: JSON.stringify(body) });
      return (await answer.json()) as { leases?: { ID: string }[] };
    };
    const { leases = [] } = await call('/v3/lease/leases', {});
    for (const { ID } of leases) await call('/v3/lease/revoke', { ID });
    await until(async () => (await store.get('/a')).entry === undefined, 'the key is deleted with its lease');
    const result = await store.write({ op: 'put', key: '/b', value: Buffer.from('x'), expect: 0, ttlMs: 600_000 });
    t.true(result.ok);
  });

  test.serial('values of the maximum size under keys of a kibibyte are stored, also with a time to live', async (t) => {
    const { store } = await openEtcd();
    t.teardown(() => store.close());
    const key = `/${'k'.repeat(1023)}`;
    const value = Buffer.alloc(1504 * 1024, 7);
    const revision = await put(store, key, value);
    t.true(value.equals(Buffer.from((await store.get(key)).entry?.value ?? [])));
    const result = await store.write({ op: 'put', key, value, expect: revision, ttlMs: 100_000 });
    t.true(result.ok);
    t.is((await store.get(key)).entry?.value.byteLength, value.length);
    const tooLarge = store.write({ op: 'put', key: '/b', value: Buffer.alloc(1504 * 1024 + 1), expect: 0 });
    t.is((await failureOf(tooLarge)).code, 'TooLarge');
  });

  test.serial('a list of large values is read in pages that fit into a message', async (t) => {
    t.timeout(60_000);
    const { store, prefix } = await openEtcd();
    const value = Buffer.alloc(1504 * 1024, 1);
    for (let i = 0; i < 80; i++) await put(store, `/big/${String(i).padStart(3, '0')}`, value);
    await store.close();
    // A new store does not know the sizes, and its first pages are too large.
    const again = await openEtcd({ prefix });
    t.teardown(() => again.dispose());
    const keys: string[] = [];
    for await (const chunk of again.store.list({ start: '/', end: '0' })) {
      t.true(chunk.entries.length <= 43);
      keys.push(...chunk.entries.map((entry) => entry.key));
    }
    t.is(keys.length, 80);
    t.deepEqual(keys, [...keys].sort());
  });

  test.serial('authentication by password works, also after etcd has lost its token', async (t) => {
    t.timeout(60_000);
    const post = async (path: string, body: unknown) => {
      const answer = await fetch(`${theServer().url}/v3/auth/${path}`, { method: 'POST', body: JSON.stringify(body) });
      if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`);
      return (await answer.json()) as { token?: string };
    };
    await post('user/add', { name: 'root', password: 'secret' });
    await post('role/add', { name: 'root' });
    await post('user/grant', { user: 'root', role: 'root' });
    await post('enable', {});
    const prefix = newPrefix();
    try {
      const wrong = new Etcd3Store({
        endpoints: [theServer().url],
        prefix,
        auth: { username: 'root', password: 'wrong' },
      });
      t.teardown(() => wrong.close());
      const begin = performance.now();
      t.regex((await failureOf(wrong.ready())).message, /invalid user ID or password/);
      t.true(performance.now() - begin < 5000, 'a wrong password is not retried');
      const { store } = await openEtcd({ prefix, auth: { username: 'root', password: 'secret' } });
      t.teardown(() => store.close());
      const first = await put(store, '/a', 'x');
      const follower = await Follower.open(store, first);
      await theServer().kill();
      await theServer().run();
      const second = await put(store, '/a', 'y', first);
      await follower.reach(second);
      t.deepEqual(follower.revisions, [second]);
    } finally {
      const { token = '' } = await post('authenticate', { name: 'root', password: 'secret' });
      const answer = await fetch(`${theServer().url}/v3/auth/disable`, {
        method: 'POST',
        body: '{}',
        headers: { authorization: token },
      });
      t.true(answer.ok);
    }
  });
}
