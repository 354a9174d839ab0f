import type { KubeObject } from '@keelson/core';
import { ConfigMap, Lease, Namespace } from '@keelson/kinds';
import { MemoryStore } from '@keelson/storage-memory';
import { eventually } from '@keelson/testing';
import test, { type ExecutionContext } from 'ava';
import { type ControlPlane, type ControlPlaneOptions, createControlPlane } from 'keelson';
import { type Connection, shareStore } from '../../src/shared-store.ts';

interface Server {
  readonly plane: ControlPlane;
  readonly url: string;
  readonly connection: Connection;
}

async function servers(t: ExecutionContext, count: number, options: ControlPlaneOptions = {}): Promise<Server[]> {
  const shared = shareStore(new MemoryStore());
  const started: Server[] = [];
  for (let i = 0; i < count; i += 1) {
    const connection = shared.connect();
    const plane = await createControlPlane({ ...options, storage: connection.store });
    t.teardown(() => plane.close());
    started.push({ plane, connection, url: (await plane.listen()).url });
  }
  return started;
}

interface List {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly KubeObject[];
}

const path = '/api/v1/namespaces/default/configmaps';

async function request<T>(url: string, init: RequestInit = {}): Promise<{ readonly status: number; readonly body: T }> {
  const answer = await fetch(url, { ...init, headers: { 'content-type': 'application/json' } });
  return { status: answer.status, body: (await answer.json()) as T };
}

const send = (method: string, body: unknown): RequestInit => ({ method, body: JSON.stringify(body) });

test('a client that changes servers never observes an older state', async (t) => {
  const [a, b] = await servers(t, 2, { controllers: false });
  if (a === undefined || b === undefined) return t.fail();
  const client = async (id: number) => {
    const name = `counter-${id}`;
    await request(`${a.url}${path}`, send('POST', { metadata: { name }, data: { n: '0' } }));
    let seen = 0;
    for (let n = 1; n <= 25; n += 1) {
      const [one, other] = n % 2 === 0 ? [a, b] : [b, a];
      const put = await request<KubeObject>(
        `${one.url}${path}/${name}`,
        send('PUT', { metadata: { name }, data: { n: String(n) } }),
      );
      const read = await request<KubeObject & { data: { n: string } }>(`${other.url}${path}/${name}`);
      const list = await request<List>(`${(n % 3 === 0 ? one : other).url}${path}`);
      const revision = Number(list.body.metadata.resourceVersion);
      t.is(read.body.data.n, String(n));
      t.is(read.body.metadata?.resourceVersion, put.body.metadata?.resourceVersion);
      t.true(revision >= seen && revision >= Number(put.body.metadata?.resourceVersion));
      seen = revision;
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, id) => client(id)));
});

test('an interrupted watch continues at another server without loss or repetition', async (t) => {
  const [a, b] = await servers(t, 2, { controllers: false });
  if (a === undefined || b === undefined) return t.fail();
  const maps = a.plane.client(ConfigMap).namespace('default');
  const total = 200;
  let resourceVersion = (await maps.list()).metadata.resourceVersion ?? '';
  const seen: string[] = [];
  const writing = (async () => {
    for (let i = 0; i < total; i += 1) {
      const server = i % 2 === 0 ? a : b;
      await server.plane
        .client(ConfigMap)
        .namespace('default')
        .create({ metadata: { name: `m-${i}` } });
    }
  })();
  for (let hop = 0; seen.length < total; hop += 1) {
    const { plane } = hop % 2 === 0 ? b : a;
    let taken = 0;
    for await (const { type, object } of plane
      .client(ConfigMap)
      .namespace('default')
      .watch({ resourceVersion, timeoutSeconds: 5 })) {
      if (type !== 'ADDED') continue;
      seen.push(object.metadata?.name ?? '');
      resourceVersion = object.metadata?.resourceVersion ?? '';
      taken += 1;
      if (taken === 7 || seen.length === total) break;
    }
  }
  await writing;
  t.deepEqual(
    seen,
    Array.from({ length: total }, (_, i) => `m-${i}`),
  );
});

test('pages of a list from different servers show one state during writes', async (t) => {
  const [a, b] = await servers(t, 2, { controllers: false });
  if (a === undefined || b === undefined) return t.fail();
  const maps = a.plane.client(ConfigMap).namespace('default');
  const names = Array.from({ length: 30 }, (_, i) => `m-${String(i).padStart(2, '0')}`);
  for (const name of names) await maps.create({ metadata: { name } });
  const found: string[] = [];
  const revisions = new Set<string>();
  let token = '';
  for (let page = 0; page === 0 || token !== ''; page += 1) {
    const { url } = page % 2 === 0 ? a : b;
    const { status, body } = await request<List>(`${url}${path}?limit=4&continue=${token}`);
    t.is(status, 200);
    found.push(...body.items.map(({ metadata }) => metadata?.name ?? ''));
    revisions.add(body.metadata.resourceVersion);
    token = body.metadata.continue ?? '';
    await maps.delete(names[29 - page] ?? '');
    await maps.create({ metadata: { name: `z-${page}` } });
  }
  t.deepEqual(found, names);
  t.is(revisions.size, 1);
});

test('a server with other kinds rejects continue tokens', async (t) => {
  const shared = shareStore(new MemoryStore());
  const one = await createControlPlane({ storage: shared.connect().store, controllers: false });
  const other = await createControlPlane({ storage: shared.connect().store, builtinKinds: false, kinds: [ConfigMap] });
  t.teardown(async () => {
    await one.close();
    await other.close();
  });
  for (const name of ['a', 'b']) await one.client(ConfigMap).namespace('default').create({ metadata: { name } });
  const { metadata } = await one.client(ConfigMap).list({ limit: 1 });
  await t.throwsAsync(other.client(ConfigMap).list({ limit: 1, continue: metadata.continue ?? '' }), {
    message: /continue/,
  });
});

const holder = async (plane: ControlPlane) =>
  (await plane.client(Lease).namespace('kube-system').get('keelson-controllers')).spec?.holderIdentity ?? '';

const namespaceEnds = async (plane: ControlPlane, name: string, timeoutMs?: number) => {
  const namespaces = plane.client(Namespace);
  await namespaces.create({ metadata: { name } });
  await namespaces.delete(name);
  await eventually(
    async () => !(await namespaces.list()).items.some(({ metadata }) => metadata?.name === name),
    timeoutMs,
  );
};

test('controllers run on one server; when it fails another takes over within 15 seconds', async (t) => {
  t.timeout(60_000);
  const [a, b] = await servers(t, 2);
  if (a === undefined || b === undefined) return t.fail();
  const first = await eventually(() => holder(b.plane));
  await namespaceEnds(b.plane, 'before');
  a.connection.cut();
  const diedAt = performance.now();
  await namespaceEnds(b.plane, 'after', 20_000);
  const tookMs = performance.now() - diedAt;
  t.not(await holder(b.plane), first);
  t.true(tookMs < 15_000, `took ${tookMs} ms`);
  t.log(`takeover after ${Math.round(tookMs)} ms`);
});

test('a server that is closed releases its controllers immediately', async (t) => {
  const [a, b] = await servers(t, 2);
  if (a === undefined || b === undefined) return t.fail();
  const first = await eventually(() => holder(b.plane));
  await a.plane.close();
  await namespaceEnds(b.plane, 'after', 5_000);
  t.not(await holder(b.plane), first);
});

test('a store that a single process uses needs no election', async (t) => {
  const plane = await createControlPlane({ storage: new MemoryStore() });
  t.teardown(() => plane.close());
  await namespaceEnds(plane, 'short');
  t.deepEqual((await plane.client(Lease).list()).items, []);
});
