import { Random } from '@keelson/conformance';
import test from 'ava';
import { Etcd3 } from 'etcd3';
import { Etcd3Store } from '../src/index.ts';
import { etcdForThisFile, openEtcd, theServer } from './support/etcd-harness.ts';
import { Follower, failureOf, put, until } from './support/following.ts';
import { TcpProxy } from './support/tcp-proxy.ts';

const seed = Number(process.env['KEELSON_SEED'] ?? Math.floor(Math.random() * 2 ** 31));

// One after the other: compaction and revisions are of the whole etcd.
if (etcdForThisFile()) {
  test.serial('a backlog is read completely, in order and once over connections that break at any byte', async (t) => {
    t.timeout(90_000);
    const random = new Random(seed);
    t.log(`KEELSON_SEED=${seed}`);
    const { store, prefix } = await openEtcd();
    t.teardown(() => store.close());
    const start = await store.currentRevision();
    const value = Buffer.alloc(300, 'x');
    const written: number[] = [];
    for (let round = 0; round < 14; round++) {
      written.push(
        ...(await Promise.all(Array.from({ length: 250 }, (_, i) => put(store, `/k/${round}/${i}`, value)))),
      );
    }
    written.sort((a, b) => a - b);
    const proxy = await TcpProxy.start(theServer().port);
    t.teardown(() => proxy.close());
    // Right after "created", within the first batch, and between batches of a thousand revisions.
    const cuts = [80, 140, 200, 260, 1000, 50_000, 400_000, 450_000];
    proxy.cutAfterBytes = () => cuts.shift() ?? 100 + random.below(900_000);
    const watching = new Etcd3Store({ endpoints: [proxy.url], prefix, compaction: 'never' });
    t.teardown(() => watching.close());
    await watching.ready();
    const follower = await Follower.open(watching, start);
    await follower.reach(written.at(-1) as number);
    t.deepEqual(follower.revisions, written);
    t.deepEqual(follower.faults, []);
    t.true(proxy.connections >= 8, `${proxy.connections} connections`);
  });

  test.serial('a watch whose connection breaks repeatedly loses and repeats no change', async (t) => {
    t.timeout(90_000);
    const { store, prefix } = await openEtcd();
    const proxy = await TcpProxy.start(theServer().port);
    const watching = new Etcd3Store({ endpoints: [proxy.url], prefix, compaction: 'never' });
    t.teardown(async () => {
      await Promise.all([store.close(), watching.close()]);
      await proxy.close();
    });
    await watching.ready();
    const start = await store.currentRevision();
    const [plain, full] = [
      await Follower.open(watching, start),
      await Follower.open(watching, start, { prevValue: true }),
    ];
    const written: number[] = [];
    let cuts = 0;
    for (let round = 0; round < 20; round++) {
      let expect = 0;
      for (let i = 0; i < 30; i++) {
        expect = await put(store, `/r/${round}`, `${i}`, expect);
        written.push(expect);
        if (i === 10) cuts += proxy.cut();
      }
      // Some interruptions occur while no data is sent.
      if (round % 4 === 3) await Promise.all([plain.reach(expect), full.reach(expect)]);
    }
    const last = written.at(-1) as number;
    await Promise.all([plain.reach(last), full.reach(last)]);
    for (const follower of [plain, full]) {
      t.deepEqual(follower.revisions, written);
      t.deepEqual(follower.faults, []);
    }
    for (const { type, prev, entry } of full.changes) {
      if (type === 'update') t.is(Number(Buffer.from(prev?.value ?? [])), Number(Buffer.from(entry?.value ?? [])) - 1);
    }
    t.true(cuts >= 20, `${cuts} connections were cut`);
  });

  test.serial(
    'a watch that reconnects behind the compacted revision ends with Compacted and that revision',
    async (t) => {
      const { store, prefix } = await openEtcd();
      const proxy = await TcpProxy.start(theServer().port);
      const watching = new Etcd3Store({ endpoints: [proxy.url], prefix, compaction: 'never' });
      t.teardown(async () => {
        await Promise.all([store.close(), watching.close()]);
        await proxy.close();
      });
      await watching.ready();
      const start = await put(store, '/a', 'x');
      const follower = await Follower.open(watching, start);
      await follower.reach(await put(store, '/b', 'x'));
      proxy.refuse = true;
      proxy.cut();
      for (let i = 0; i < 5; i++) await put(store, `/c/${i}`, 'x');
      const bound = await put(store, '/d', 'x');
      await store.compact(bound);
      proxy.refuse = false;
      await follower.over;
      t.like(follower.failure, { code: 'Compacted', revision: bound });
      t.is(follower.changes.length, 1);
      t.is(await watching.compactedRevision(), bound);
      const again = await Follower.open(watching, bound);
      const next = await put(store, '/e', 'x');
      await again.reach(next);
      t.deepEqual(again.revisions, [next]);
      t.like(await failureOf(watching.watch({ start: '/', end: '0' }, { after: start })), {
        code: 'Compacted',
        revision: bound,
      });
    },
  );

  test.serial(
    'a consumer that leaves the shared window reads history at its own pace, with back pressure on the server',
    async (t) => {
      t.timeout(90_000);
      const { store } = await openEtcd();
      t.teardown(() => store.close());
      const start = await store.currentRevision();
      const slow = await store.watch({ start: '/', end: '0' }, { after: start, prevValue: true });
      const fast = await Follower.open(store, start, { prevValue: true });
      const value = Buffer.alloc(400_000, 'v');
      let expect = 0;
      const written: number[] = [];
      for (let i = 0; i < 120; i++) {
        expect = await put(store, '/big', Buffer.concat([Buffer.from(`${i} `), value]), expect);
        written.push(expect);
      }
      await fast.reach(expect);
      t.deepEqual(fast.revisions, written);
      const late = new Follower(slow, start);
      await late.reach(expect);
      t.deepEqual(late.revisions, written);
      t.deepEqual(late.faults, []);
      for (const [i, { prev, entry }] of late.changes.entries()) {
        t.is(Number.parseInt(Buffer.from(entry?.value ?? []).toString('latin1', 0, 4), 10), i);
        t.is(prev?.value.byteLength, i === 0 ? undefined : value.length + String(i - 1).length + 1);
      }
      const live = await put(store, '/live', 'x');
      await late.reach(live);
      t.is(late.revisions.at(-1), live);
    },
  );

  test.serial('changes of one revision that fill several fragments are delivered in one batch', async (t) => {
    const { store, prefix } = await openEtcd();
    const client = new Etcd3({ hosts: theServer().url });
    t.teardown(async () => {
      client.close();
      await store.close();
    });
    const start = await store.currentRevision();
    const value = Buffer.alloc(480_000, 'z');
    const revisions: number[] = [];
    for (let i = 0; i < 12; i++) {
      const txn = client.if(`${prefix}none`, 'Create', '==', 0);
      const keys = ['a', 'b', 'c'].map((name) => `${prefix}/multi/${i}/${name}`);
      const done = await txn.then(...keys.map((key) => client.put(key).value(value))).commit();
      revisions.push(Number(done.header.revision));
    }
    for (const prevValue of [false, true]) {
      const stream = await store.watch({ start: '/', end: '0' }, { after: start, prevValue });
      const seen: number[] = [];
      for await (const batch of stream) {
        for (const { revision } of batch.changes) seen.push(revision);
        t.is(seen.length % 3, 0, 'a revision was split');
        if (batch.frontier >= (revisions.at(-1) as number)) break;
      }
      t.deepEqual(
        seen,
        revisions.flatMap((revision) => [revision, revision, revision]),
      );
    }
  });

  test.serial(
    'the frontier of an idle watch follows revisions of other keys, with few progress records that are not visible',
    async (t) => {
      const { store, etcd } = await openEtcd();
      const foreign = await openEtcd();
      t.teardown(() => Promise.all([store.close(), foreign.store.close()]).then(() => {}));
      const own = await put(store, '/a', 'x');
      const followers = await Promise.all(Array.from({ length: 20 }, () => Follower.open(store, own)));
      for (let i = 0; i < 5; i++) {
        const revision = await put(foreign.store, `/f/${i}`, 'x');
        t.true((await store.currentRevision()) >= revision);
        await Promise.all(followers.map((follower) => follower.reach(revision)));
      }
      for (const follower of followers) {
        t.deepEqual(follower.revisions, []);
        t.deepEqual(follower.faults, []);
      }
      t.deepEqual((await etcd.count({ start: '', end: '\u{10ffff}' })).count, 1);
      const before = await store.currentRevision();
      const waiting = followers[0]?.stream.advanceTo(before + 5);
      const left = failureOf(waiting as Promise<void>);
      for (let i = 0; i < 3; i++) await Promise.all(followers.map((follower) => follower.reach(before)));
      t.is(await store.currentRevision(), before, 'no progress record is written for a future revision');
      await followers[0]?.stream.close();
      t.is((await left).code, 'Closed');
    },
  );

  test.serial('hundreds of watchers share one stream', async (t) => {
    const proxy = await TcpProxy.start(theServer().port);
    const { store } = await openEtcd({ endpoints: [proxy.url] });
    t.teardown(async () => {
      await store.close();
      await proxy.close();
    });
    const start = await store.currentRevision();
    const followers = await Promise.all(Array.from({ length: 300 }, () => Follower.open(store, start)));
    const revision = await put(store, '/a', 'x');
    await Promise.all(followers.map((follower) => follower.reach(revision)));
    t.true(followers.every((follower) => follower.changes.length === 1));
    t.is(proxy.connections, 2, 'one connection for calls, one for watches');
    await Promise.all(followers.map((follower) => follower.stream.close()));
    await until(() => followers.every((follower) => follower.ended), 'all streams have ended');
  });
}
