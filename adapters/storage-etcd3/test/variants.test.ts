import { noMetrics, systemClock } from '@keelson/core/runtime';
import type { ExecutionContext } from 'ava';
import { Etcd3 } from 'etcd3';
import { Etcd3Store, type Etcd3StoreOptions } from '../src/index.ts';
import { Cluster } from '../src/net/cluster.ts';
import { endpointsOf } from '../src/net/endpoints-of.ts';
import { EtcdMetrics } from '../src/net/etcd-metrics.ts';
import { decodeHeader } from '../src/wire/responses.ts';
import { etcdKinds, etcdTest } from './support/etcd-test.ts';
import { everything, Follower, failureOf, put } from './support/following.ts';

// Differences between versions of etcd; `npm run conformance` runs all cases on each of them.

async function storeAt(
  t: ExecutionContext,
  options: Partial<Etcd3StoreOptions> & Pick<Etcd3StoreOptions, 'endpoints'>,
) {
  const store = new Etcd3Store({ compaction: 'never', ...options });
  t.teardown(() => store.close());
  await store.ready();
  return store;
}

const root = { username: 'root', password: 'secret' };

async function enableAuth(url: string): Promise<void> {
  const client = new Etcd3({ hosts: url });
  try {
    await client.role('root').create();
    const user = client.user(root.username);
    await user.create(root.password);
    await user.addRole('root');
    await client.auth.authEnable();
  } finally {
    client.close();
  }
}

/** Counts by metric and its label. */
function countingMetrics() {
  const counts = new Map<string, number>();
  const metric = ({ name }: { readonly name: string }) => ({
    add: (value: number, labels: Readonly<Record<string, string>> = {}) => {
      const key = [name, ...Object.values(labels)].join(' ');
      counts.set(key, (counts.get(key) ?? 0) + value);
    },
    set: () => {},
    observe: () => {},
  });
  return { counts, metrics: { counter: metric, gauge: metric, histogram: metric, text: async () => '' } };
}

for (const kind of etcdKinds) {
  const on = etcdTest(kind);

  on(
    'writes, watches, leases and compaction work with authentication, also after etcd has lost its tokens',
    async (t, server) => {
      await enableAuth(server.url);
      const endpoints = [server.url];
      const store = await storeAt(t, { endpoints, auth: root });
      const first = await put(store, '/a', 'x');
      const follower = await Follower.open(store, first);
      await store.write({ op: 'put', key: '/leased', value: Buffer.from('x'), expect: 0, ttlMs: 60_000 });
      await server.kill();
      await server.run();
      const second = await put(store, '/a', 'y', first);
      await follower.reach(second);
      t.is(follower.changes.length, 2);
      await store.compact(second);
      t.is((await failureOf(store.get('/a', { revision: first }))).code, 'Compacted');
      const unauthenticated = new Etcd3Store({ endpoints, compaction: 'never', auth: { ...root, password: 'wrong' } });
      t.teardown(() => unauthenticated.close());
      const refusal = await failureOf(unauthenticated.ready());
      t.is(refusal.code, 'Unavailable');
      t.regex(refusal.message, /authentication failed/);
    },
  );

  on(
    'authentication that is enabled under a running server without an account is reported by every error',
    async (t, server) => {
      const store = await storeAt(t, { endpoints: [server.url] });
      const first = await put(store, '/a', 'x');
      const follower = await Follower.open(store, first);
      await enableAuth(server.url);
      const read = await failureOf(store.get('/a'));
      const write = await failureOf(store.write({ op: 'put', key: '/b', value: Buffer.from('x'), expect: 0 }));
      for (const failure of [read, write]) {
        t.is(failure.code, 'Unavailable');
        t.regex(failure.message, /etcd refuses the request: .*(user name is empty|permission denied)/);
      }
      // An open watch continues in some versions; a new one fails.
      const watching = store.watch(everything, { after: first });
      t.regex((await failureOf(watching)).message, /user name is empty|permission denied/);
      await server.kill();
      await server.run();
      await follower.over;
      t.regex(String(follower.failure), /user name is empty|permission denied/);
    },
  );

  on('the frontier of a watch reaches revisions of other keys', async (t, server) => {
    const { counts, metrics } = countingMetrics();
    const store = await storeAt(t, { endpoints: [server.url], metrics });
    const follower = await Follower.open(store, await store.currentRevision());
    const elsewhere = new Etcd3({ hosts: server.url });
    await elsewhere.put('/elsewhere').value('x');
    elsewhere.close();
    await follower.reach(await store.currentRevision());
    const [major = 0, minor = 0] = (await server.version()).split('.').map(Number);
    const how = major > 3 || minor >= 6 ? 'request' : 'cookie';
    t.true((counts.get(`keelson_etcd_progress_requests_total ${how}`) ?? 0) > 0, how);
    t.deepEqual(follower.changes, []);
  });

  on('a watch behind the compacted revision fails with that revision', async (t, server) => {
    const store = await storeAt(t, { endpoints: [server.url] });
    const first = await put(store, '/a', 'x');
    const second = await put(store, '/a', 'y', first);
    await store.compact(second);
    const failure = await failureOf(store.watch(everything, { after: first }));
    t.like(failure, { code: 'Compacted', revision: second });
    t.is(await store.compactedRevision(), second);
  });

  on('a call that the server does not support is rejected immediately, with its name', async (t, server) => {
    const lineage = { highest: 0, recovery: undefined, check: () => {}, confirmed: () => {}, recordWritten: () => {} };
    const endpoints = endpointsOf({ endpoints: [server.url] }, async () => {});
    const cluster = new Cluster({ endpoints, metrics: new EtcdMetrics(noMetrics, systemClock), lineage });
    t.teardown(() => cluster.close());
    for (const call of ['read', 'write'] as const) {
      const failure = await failureOf(cluster[call]('/etcdserverpb.KV/Unheard', Buffer.alloc(0), decodeHeader));
      t.is(failure.code, 'Unavailable');
      t.regex(failure.message, /etcd refuses the request: unknown method Unheard/);
    }
  });
}
