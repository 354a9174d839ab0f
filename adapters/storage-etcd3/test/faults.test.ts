import { cpSync, rmSync } from 'node:fs';
import { isStorageError } from '@keelson/core';
import { stopProcess } from '@keelson/test-support';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { Etcd3Store } from '../src/index.ts';
import { EtcdServer, findEtcd } from './support/etcd-server.ts';
import { Follower, failureOf, put, until } from './support/following.ts';
import { TcpProxy } from './support/tcp-proxy.ts';

const binary = findEtcd();
const serial = binary === undefined ? test.serial.skip : test.serial;

/** A server of this test alone, for the injection of faults. */
async function ownServer(t: ExecutionContext): Promise<EtcdServer> {
  t.timeout(110_000);
  const server = await EtcdServer.start(binary as string);
  t.teardown(() => server.remove());
  return server;
}

/** Repeats a call for half a minute while the store is `Unavailable`, as it may be after a restart of etcd. */
async function available<T>(call: () => Promise<T>): Promise<T> {
  for (const deadline = performance.now() + 30_000; ; ) {
    try {
      return await call();
    } catch (error) {
      if (!isStorageError(error, 'Unavailable') || performance.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

async function storeAt(t: ExecutionContext, ...endpoints: string[]): Promise<Etcd3Store> {
  const store = new Etcd3Store({ endpoints, compaction: 'never' });
  t.teardown(() => store.close());
  await store.ready();
  return store;
}

serial('after every kill -9 of etcd acknowledged writes remain, and a watch receives each change once', async (t) => {
  const server = await ownServer(t);
  const store = await storeAt(t, server.url);
  const start = await store.currentRevision();
  const follower = await Follower.open(store, start, { prevValue: true });
  const acknowledged = new Map<number, string>();
  const unknown = new Set<string>();
  let stop = false;
  const writer = async (name: number) => {
    for (let i = 0; !stop; i++) {
      const key = `/w/${name}/${i}`;
      try {
        acknowledged.set(await put(store, key, key), key);
      } catch (error) {
        if (!isStorageError(error) || (error.code !== 'OutcomeUnknown' && error.code !== 'Unavailable')) throw error;
        if (error.code === 'OutcomeUnknown') unknown.add(key);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  };
  const writers = Array.from({ length: 8 }, (_, name) => writer(name));
  for (let round = 0; round < 4; round++) {
    const before = acknowledged.size;
    await until(() => acknowledged.size > before + 200, 'the writes are acknowledged');
    await server.kill();
    await server.run();
  }
  const before = acknowledged.size;
  await until(() => acknowledged.size > before + 50, 'writes continue');
  stop = true;
  await Promise.all(writers);
  const now = await store.currentRevision();
  await follower.reach(now);
  t.deepEqual(follower.faults, []);
  const seen = new Map(follower.changes.map(({ revision, key }) => [revision, key]));
  t.is(seen.size, follower.changes.length);
  for (const [revision, key] of acknowledged) t.is(seen.get(revision), key, 'an acknowledged write is in the watch');
  for (const [revision, key] of seen)
    t.true(acknowledged.has(revision) || unknown.has(key), `${key}@${revision} was not written`);
  let listed = 0;
  for await (const chunk of store.list({ start: '/', end: '0' })) listed += chunk.entries.length;
  t.is(listed, seen.size);
  t.log(`${acknowledged.size} acknowledged, ${unknown.size} unknown, ${seen.size} changes`);
});

serial('while etcd is stopped by SIGSTOP no change is lost and no write is repeated', async (t) => {
  const server = await ownServer(t);
  const store = await storeAt(t, server.url);
  const first = await put(store, '/a', '0');
  const follower = await Follower.open(store, first);
  await stopProcess(server.pid);
  const early = failureOf(
    store.write({ op: 'put', key: '/b', value: Buffer.from('x'), expect: 0 }, { timeoutMs: 1000 }),
  );
  const later = put(store, '/a', '1', first);
  const reading = store.get('/a');
  t.is((await early).code, 'OutcomeUnknown');
  await new Promise((resolve) => setTimeout(resolve, 1500));
  server.resume();
  const second = await later;
  t.true((await reading).revision >= first);
  t.is((await store.get('/a')).entry?.modRevision, second, 'a read after the pause is not stale');
  await follower.reach(await store.currentRevision());
  t.deepEqual(follower.faults, []);
  t.is(follower.changes.filter(({ key }) => key === '/a').length, 1);
  t.true(follower.changes.filter(({ key }) => key === '/b').length <= 1);
});

serial(
  'a write whose response is lost is OutcomeUnknown and executed once; one that was not sent is Unavailable',
  async (t) => {
    const server = await ownServer(t);
    const direct = await storeAt(t, server.url);
    const proxy = await TcpProxy.start(server.port);
    t.teardown(() => proxy.close());
    const store = await storeAt(t, proxy.url);
    for (let i = 0; i < 5; i++) {
      await store.currentRevision();
      proxy.swallowAnswers = true;
      const before = await direct.currentRevision();
      const write = failureOf(store.write({ op: 'put', key: `/lost/${i}`, value: Buffer.from('x'), expect: 0 }));
      await until(async () => (await direct.get(`/lost/${i}`)).entry !== undefined, 'the write is executed');
      proxy.cut();
      proxy.swallowAnswers = false;
      t.is((await write).code, 'OutcomeUnknown');
      t.is((await direct.get(`/lost/${i}`)).entry?.modRevision, before + 1);
      t.is(await direct.currentRevision(), before + 1, 'the write was not repeated');
    }
    proxy.refuse = true;
    proxy.cut();
    const before = await direct.currentRevision();
    const put1 = store.write({ op: 'put', key: '/never', value: Buffer.from('x'), expect: 0 }, { timeoutMs: 1500 });
    t.is((await failureOf(put1)).code, 'Unavailable');
    t.is(await direct.currentRevision(), before);
    const later = store.write({ op: 'put', key: '/later', value: Buffer.from('x'), expect: 0 });
    proxy.refuse = false;
    t.true((await later).ok, 'a write that waits for a connection succeeds once it is open');
  },
);

serial('endpoints that refuse connections or do not respond are skipped', async (t) => {
  const server = await ownServer(t);
  const dead = await TcpProxy.start(server.port);
  await dead.close();
  const proxy = await TcpProxy.start(server.port);
  t.teardown(() => proxy.close());
  const store = await storeAt(t, dead.url, proxy.url, server.url);
  const first = await put(store, '/a', 'x');
  const follower = await Follower.open(store, first);
  const second = await put(store, '/a', 'y', first);
  await follower.reach(second);
  proxy.swallowAnswers = true;
  const begin = Date.now();
  t.is((await store.get('/a')).entry?.modRevision, second);
  t.true(Date.now() - begin < 9000);
  proxy.refuse = true;
  proxy.cut();
  const third = await put(store, '/a', 'z', second);
  await follower.reach(third);
  t.deepEqual(follower.revisions, [second, third]);
});

serial(
  'an etcd that was restored to an earlier state begins an epoch, and every stream ends with EpochChanged',
  async (t) => {
    const server = await ownServer(t);
    const store = await storeAt(t, server.url);
    const first = await put(store, '/a', 'x');
    const identity = await store.identity();
    await server.kill();
    cpSync(server.dataFolder, `${server.dataFolder}.copy`, { recursive: true });
    await server.run();
    for (let i = 0; i < 20; i++) await put(store, `/b/${i}`, 'x');
    const follower = await Follower.open(store, first);
    const last = await store.currentRevision();
    await follower.reach(last);
    await server.kill();
    rmSync(server.dataFolder, { recursive: true });
    cpSync(`${server.dataFolder}.copy`, server.dataFolder, { recursive: true });
    await server.run();
    const restored = await available(() => store.currentRevision());
    t.true(restored > last, 'the restored store has a revision above all that were read before');
    await follower.over;
    t.like(follower.failure, { code: 'EpochChanged' });
    t.deepEqual(await store.identity(), { storeId: identity.storeId, epoch: identity.epoch + 1 });
    t.is((await store.get('/b/0')).entry, undefined);
    const other = await storeAt(t, server.url);
    t.deepEqual(await other.identity(), await store.identity(), 'a later store reads the same epoch');
    const again = await Follower.open(store, await store.currentRevision());
    const revision = await put(store, '/c', 'x');
    await again.reach(revision);
    t.deepEqual(again.revisions, [revision]);
  },
);

serial('another etcd at the same address is another store', async (t) => {
  const [server, another] = [await ownServer(t), await ownServer(t)];
  const proxy = await TcpProxy.start(server.port);
  t.teardown(() => proxy.close());
  const store = await storeAt(t, proxy.url);
  const before = await store.identity();
  const follower = await Follower.open(store, await put(store, '/a', 'x'));
  await follower.reach(await put(store, '/b', 'x'));
  proxy.target = another.port;
  proxy.cut();
  await follower.over;
  t.like(follower.failure, { code: 'EpochChanged' });
  t.not((await store.identity()).storeId, before.storeId);
  t.is((await store.get('/a')).entry, undefined);
});

if (binary === undefined)
  test.skip('faults [not run: no etcd on PATH, none in KEELSON_TEST_ETCD, and none could be installed]', () => {});
