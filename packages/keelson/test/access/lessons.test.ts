import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { connect, constants } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isStatusError, type KindDefinition, type KubeObject } from '@keelson/core';
import { systemClock } from '@keelson/core/runtime';
import { builtinKinds, ConfigMap, Namespace } from '@keelson/kinds';
import test, { type ExecutionContext } from 'ava';
import { createControlPlane } from '../../src/control-plane/create-control-plane.ts';
import type { ControlPlaneOptions } from '../../src/control-plane/plane-options.ts';
import { createPromMetrics } from '../../src/observe/prom-metrics.ts';
import { loadCredentials } from '../../src/tls/credentials.ts';

// Lessons of published vulnerabilities that no other test has. docs/explanation/security.md has the list of all.

async function planeOf(t: ExecutionContext, options: ControlPlaneOptions = {}) {
  const plane = await createControlPlane({ controllers: false, ...options });
  t.teardown(() => plane.close());
  return { plane, url: (await plane.listen()).url };
}

const pathOf = ({ group, version }: KindDefinition) => (group === '' ? `/api/${version}` : `/apis/${group}/${version}`);

test('2019-11247: a cluster-scoped object is not reached by the URL of a namespace, nor a namespaced one without it', async (t) => {
  const { url } = await planeOf(t);
  let checked = 0;
  for (const kind of builtinKinds as readonly KindDefinition[]) {
    if (kind.virtual) continue;
    const { plural } = kind.names;
    const wrong = kind.scope === 'Namespaced' ? `${plural}/x` : `namespaces/default/${plural}/x`;
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
      const body = method === 'GET' ? {} : { body: '{"metadata":{"name":"x"}}', headers: { 'content-type': type } };
      const answer = await fetch(`${url}${pathOf(kind)}/${wrong}`, { method, ...body });
      const text = await answer.text();
      // A namespaced kind of one segment more is the collection below a name, which no method serves.
      t.true([404, 405].includes(answer.status), `${method} ${wrong}: ${answer.status} ${text}`);
      checked += 1;
    }
  }
  t.true(checked > 100, String(checked));
});

test('2022-3162: lists and deletions of a namespace do not include others whose names begin with the same letters', async (t) => {
  const { plane } = await planeOf(t);
  const namespaces = ['ns', 'ns1', 'ns10', 'ns-1', 'ns0'];
  for (const name of namespaces) {
    await plane.client(Namespace).create({ metadata: { name } } as Namespace);
    for (const map of ['a', 'ab'])
      await plane
        .client(ConfigMap)
        .namespace(name)
        .create({ metadata: { name: map } });
  }
  const found = async (name: string) =>
    (await plane.client(ConfigMap).namespace(name).list()).items.map(({ metadata }) => metadata?.namespace);
  for (const name of namespaces) t.deepEqual(await found(name), [name, name]);
  await plane.client(ConfigMap).namespace('ns1').deleteCollection();
  t.deepEqual(await found('ns1'), []);
  for (const name of namespaces.filter((other) => other !== 'ns1')) t.deepEqual(await found(name), [name, name]);
});

test('2020-8552: paths, methods, names and user agents of clients add no series to the metrics', async (t) => {
  const metrics = createPromMetrics();
  const { url } = await planeOf(t, { metrics });
  const send = (i: number) =>
    Promise.all(
      [
        [`/apis/group${i}.example/v${i}/things${i}/x`, 'GET'],
        [`/api/v1/namespaces/ns${i}/pods/p${i}`, 'GET'],
        [`/api/v1/namespaces/ns${i}/things${i}`, 'POST'],
        [`/path${i}`, 'DELETE'],
        [`/api/v1/namespaces?labelSelector=a${i}=b`, 'GET'],
      ].map(async ([path, method = 'GET']) => {
        const headers = { 'user-agent': `agent/${i}`, 'content-type': `application/x${i}` };
        await (await fetch(url + path, { method, headers })).arrayBuffer();
      }),
    );
  const series = async () => (await metrics.text()).split('\n').filter((line) => !line.startsWith('#')).length;
  await send(0);
  const before = await series();
  for (let i = 1; i <= 60; i += 1) await send(i);
  t.is(await series(), before);
});

test('2021-25735: admission compares with the stored object, whatever earlier plugins and the request changed', async (t) => {
  const seen: (KubeObject | undefined)[] = [];
  const { plane } = await planeOf(t, {
    admission: [
      {
        name: 'changes',
        handles: ({ kind, operation }) => kind === (ConfigMap as unknown) && operation === 'update',
        mutate: async ({ object }) => {
          Object.assign((object as ConfigMap).data ?? {}, { added: 'by a plugin' });
        },
      },
      {
        name: 'compares',
        handles: ({ kind, operation }) => kind === (ConfigMap as unknown) && operation === 'update',
        validate: async ({ oldObject }) => {
          seen.push(structuredClone(oldObject));
        },
      },
    ],
  });
  const maps = plane.client(ConfigMap).namespace('default');
  const stored = await maps.create({ metadata: { name: 'm' }, data: { a: '1' }, immutable: true });
  const labels = { immutable: 'false' };
  const attempts = [
    () => maps.update({ ...stored, immutable: false, data: { a: '2' }, metadata: { ...stored.metadata, labels } }),
    () => maps.patch('m', 'merge', { immutable: false, data: { a: '2' }, metadata: { labels } }),
    () => maps.patch('m', 'json', [{ op: 'replace', path: '/data', value: {} }]),
  ];
  for (const attempt of attempts) {
    const error: unknown = await attempt().catch((thrown: unknown) => thrown);
    t.true(isStatusError(error) && error.code === 422, String(error));
  }
  const free = await maps.create({ metadata: { name: 'free' }, data: { a: '1' } });
  seen.length = 0;
  await maps.patch('free', 'merge', { data: { a: '2' }, metadata: { labels } });
  t.deepEqual(seen, [{ ...free }], 'the state before the write');
});

test('2023-44487: a client that opens and resets streams without end loses its connection, and others are served', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-lessons-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const credentials = await loadCredentials(folder, '127.0.0.1', systemClock.now());
  const plane = await createControlPlane({ controllers: false });
  t.teardown(() => plane.close());
  const { url } = await plane.listen({ credentials });
  const session = connect(url, { ca: credentials.authority });
  t.teardown(() => session.destroy());
  session.on('error', () => {});
  let opened = 0;
  const next = () => {
    if (session.closed || session.destroyed) return;
    opened += 1;
    const stream = session.request({ ':path': '/version' });
    stream.on('error', () => {});
    stream.on('response', () => {
      stream.close(constants.NGHTTP2_CANCEL);
      setImmediate(next);
    });
  };
  const closed = new Promise((resolve) => session.once('close', resolve));
  for (let i = 0; i < 20; i += 1) next();
  await closed;
  t.true(opened >= 1_000, String(opened));
  const other = connect(url, { ca: credentials.authority });
  t.teardown(() => other.destroy());
  const [head] = (await once(other.request({ ':path': '/version' }).resume(), 'response')) as [Record<string, unknown>];
  t.is(head[':status'], 200);
});

test('every test that the list of lessons names exists', async (t) => {
  const root = new URL('../../../../../', import.meta.url);
  const page = await readFile(new URL('docs/explanation/security.md', root), 'utf8');
  const rows = page.slice(page.indexOf('## Lessons')).matchAll(/\[`([^`]+)`\]\(\.\.\/\.\.\/([^)]+)\)/g);
  let found = 0;
  for (const [, title = '', file = ''] of rows) {
    t.true((await readFile(new URL(file, root), 'utf8')).includes(title), `${file} contains no test "${title}"`);
    found += 1;
  }
  t.true(found >= 20, String(found));
});
