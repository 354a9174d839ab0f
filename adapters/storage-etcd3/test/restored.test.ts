import { isStorageError, type StorageError } from '@keelson/core';
import type { ExecutionContext } from 'ava';
import { Etcd3 } from 'etcd3';
import { Etcd3Store } from '../src/index.ts';
import { etcdKinds, etcdTest } from './support/etcd-test.ts';
import { everything, Follower, failureOf, put, until } from './support/following.ts';
import { TcpProxy } from './support/tcp-proxy.ts';

// A restored snapshot keeps the cluster id and the name of the member: running servers detect it by the missing
// revisions.

async function storeAt(t: ExecutionContext, url: string): Promise<Etcd3Store> {
  const store = new Etcd3Store({ endpoints: [url], compaction: 'never' });
  t.teardown(() => store.close());
  await store.ready();
  return store;
}

/** Advances the revision of etcd by writes that belong to no store. */
async function writeElsewhere(url: string, count: number): Promise<void> {
  const client = new Etcd3({ hosts: url });
  try {
    for (let i = 0; i < count; i++) await client.put('/elsewhere').value(String(i));
  } finally {
    client.close();
  }
}

for (const kind of etcdKinds) {
  const on = etcdTest(kind);

  on(
    'a snapshot restored under running servers repeats no revision, and lost revisions are compacted',
    async (t, server) => {
      const [first, second] = [await storeAt(t, server.url), await storeAt(t, server.url)];
      await put(first, '/kept', 'x');
      const identity = await first.identity();
      const file = await server.saveSnapshot();
      const seen = new Set<number>();
      let stop = false;
      let afterwards = 0;
      let restored = false;
      // Both write while the snapshot is restored, as controllers do.
      const writer = async (store: Etcd3Store, name: string) => {
        for (let i = 0; !stop; i++) {
          try {
            const revision = await put(store, `/${name}/${i}`, 'x');
            t.false(seen.has(revision), `revision ${revision} was assigned twice`);
            seen.add(revision);
            if (restored) afterwards++;
          } catch (error) {
            if (!isStorageError(error)) throw error;
          }
        }
      };
      const follower = await Follower.open(first, await first.currentRevision());
      const writers = [first, second, first, second].map((store, i) => writer(store, `w${i}`));
      await until(() => seen.size > 100, 'the writes are acknowledged');
      await server.restoreSnapshot(file);
      const before = Math.max(...seen);
      restored = true;
      // Thousands of revisions are skipped first.
      await until(() => afterwards > 50, 'writes continue', 80_000);
      stop = true;
      await Promise.all(writers);
      t.true([...seen].filter((revision) => revision > before).length >= 50);
      await follower.over;
      t.like(follower.failure, { code: 'EpochChanged' });
      for (const store of [first, second]) {
        t.is((await store.identity()).storeId, identity.storeId);
        t.true((await store.identity()).epoch > identity.epoch);
        t.is((await store.get('/kept')).entry?.value.toString(), 'x');
        t.is((await failureOf(store.watch(everything, { after: before }))).code, 'Compacted');
        t.is((await failureOf(store.count(everything, { revision: before }))).code, 'Compacted');
      }
      t.is((await first.identity()).epoch, (await second.identity()).epoch);
      const again = await Follower.open(second, await second.currentRevision());
      const revision = await put(first, '/again', 'x');
      await again.reach(revision);
      t.deepEqual(again.revisions, [revision]);
    },
  );

  on(
    'of two servers that recover at the same time, none compacts the history of the epoch that the other has begun',
    async (t, server) => {
      const proxy = await TcpProxy.start(server.port);
      t.teardown(() => proxy.close());
      const [first, second] = [await storeAt(t, server.url), await storeAt(t, proxy.url)];
      const { epoch } = await first.identity();
      const file = await server.saveSnapshot();
      const lost = [await put(first, '/lost-1', 'x'), await put(second, '/lost-2', 'x')];
      // Only the watches reconnect; the stores receive no calls.
      for (const store of [first, second]) await Follower.open(store, await store.currentRevision());
      proxy.delayMs = 100;
      await server.restoreSnapshot(file);
      const recovered = async (store: Etcd3Store) => {
        await until(
          async () => (await store.identity().catch(() => undefined))?.epoch === epoch + 1,
          'an epoch begins',
        );
        return store;
      };
      const both = [recovered(first), recovered(second)];
      const next = await put(await Promise.race(both), '/next', 'x');
      await Promise.all(both);
      t.true(next > Math.max(...lost) + 5000, 'revisions that may have been assigned are used up before the epoch');
      const after = [await Follower.open(first, next), await Follower.open(second, next)];
      const later = await put(second, '/later', 'x');
      for (const follower of after) t.deepEqual((await follower.reach(later)).revisions, [later]);
    },
  );

  on(
    'an idle server detects a restored snapshot whose revisions have passed all that it has read',
    async (t, server) => {
      const proxy = await TcpProxy.start(server.port);
      t.teardown(() => proxy.close());
      const store = await storeAt(t, proxy.url);
      const file = await server.saveSnapshot();
      const lost = await put(store, '/lost', 'x');
      const follower = await Follower.open(store, lost);
      const { epoch } = await store.identity();
      proxy.refuse = true;
      await server.restoreSnapshot(file);
      await writeElsewhere(server.url, 20);
      proxy.refuse = false;
      // Only the watch reconnects; the store receives no calls.
      await follower.over;
      t.like(follower.failure, { code: 'EpochChanged' });
      t.is((await store.identity()).epoch, epoch + 1);
      t.is((await store.get('/lost')).entry, undefined);
      t.is((await failureOf(store.watch(everything, { after: lost }))).code, 'Compacted');
    },
  );

  if (kind === 'newest') {
    on(
      'a restore with --bump-revision and --mark-compacted needs no skipped revisions, and compacts lost ones',
      async (t, server) => {
        const store = await storeAt(t, server.url);
        const file = await server.saveSnapshot();
        const lost = await put(store, '/lost', 'x');
        const follower = await Follower.open(store, lost);
        await server.restoreSnapshot(file, '--bump-revision=1000000', '--mark-compacted');
        await follower.over;
        t.like(follower.failure, { code: 'Compacted' });
        const revision = await put(store, '/next', 'x');
        t.true(revision > 1_000_000 && revision < 1_001_000);
        t.is((await failureOf(store.watch(everything, { after: lost }))).code, 'Compacted');
      },
    );
    continue;
  }

  on('a server learns from the record of the store that another one has begun an epoch', async (t, server) => {
    const [first, second] = [await storeAt(t, server.url), await storeAt(t, server.url)];
    const follower = await Follower.open(first, await first.currentRevision());
    await second.passOver((await second.currentRevision()) + 1);
    await follower.over;
    t.like(follower.failure, { code: 'EpochChanged' });
    t.deepEqual(await first.identity(), await second.identity());
    await put(first, '/a', 'x');
  });

  on('a snapshot that lacks too many revisions keeps the store unavailable, with instructions', async (t, server) => {
    const store = await storeAt(t, server.url);
    const revision = await put(store, '/a', 'x');
    const failure: StorageError = await failureOf(store.passOver(revision + 1_000_000));
    t.is(failure.code, 'Unavailable');
    t.regex(failure.message, /restore it again with etcdutl snapshot restore --bump-revision \d+ --mark-compacted/);
  });
}
