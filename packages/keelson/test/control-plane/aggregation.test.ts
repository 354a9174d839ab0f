import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2';
import { createServer, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineKind, type KubeObject, optional, s } from '@keelson/core';
import { type Metrics, systemClock } from '@keelson/core/runtime';
import { APIService, Namespace, Service } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import anyTest, { type TestFn } from 'ava';
import { type ControlPlane, createControlPlane, type Listening } from '../../src/index.ts';
import { createPromMetrics } from '../../src/observe/prom-metrics.ts';
import { issueCertificate } from '../../src/tls/authority.ts';
import { type Credentials, loadCredentials } from '../../src/tls/credentials.ts';

const Toy = defineKind({
  group: 'shop.example.com',
  version: 'v1',
  kind: 'Toy',
  names: { plural: 'toys', shortNames: ['ty'] },
  schema: s.object({ spec: optional(s.object({ price: optional(s.int32()) })) }),
});

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Record<string, unknown>;
}

interface Shared {
  readonly folder: string;
  readonly front: ControlPlane;
  readonly metrics: Metrics;
  readonly shop: ControlPlane;
  readonly credentials: Credentials;
  readonly listening: Listening;
  readonly shopListening: Listening;
  call(path: string, options?: CallOptions): Promise<Answer>;
}

interface CallOptions {
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly user?: { readonly certificate: string; readonly key: string };
}
const test = anyTest as TestFn<Shared>;

async function answerOf(incoming: IncomingMessage): Promise<Answer> {
  let text = '';
  for await (const chunk of incoming) text += String(chunk);
  const { statusCode = 0, headers } = incoming;
  const body = (text.startsWith('{') ? JSON.parse(text) : { text }) as Record<string, unknown>;
  return { status: statusCode, headers, body };
}

test.before(async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-aggregation-'));
  const now = systemClock.now();
  const credentials = await loadCredentials(join(folder, 'front'), '127.0.0.1', now);
  const own = await loadCredentials(join(folder, 'shop'), '127.0.0.1', now, undefined, ['shop.default.svc']);
  const metrics = createPromMetrics();
  const front = await createControlPlane({ controllers: ['namespace-controller'], metrics });
  const listening = await front.listen({ credentials });
  const shop = await createControlPlane({
    controllers: false,
    kinds: [Toy],
    authentication: {
      requestHeaders: {
        authorityFile: join(folder, 'front', 'front-proxy-ca.crt'),
        allowedNames: ['front-proxy-client'],
        username: ['X-Remote-User'],
        groups: ['X-Remote-Group'],
        extraPrefixes: ['X-Remote-Extra-'],
      },
    },
  });
  const shopListening = await shop.listen({ credentials: own });
  await front
    .client(Service)
    .namespace('default')
    .create({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'shop', namespace: 'default' },
      spec: { type: 'ExternalName', externalName: 'localhost' },
    });
  await front.client(APIService).create({
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: 'v1.shop.example.com' },
    spec: {
      group: 'shop.example.com',
      version: 'v1',
      groupPriorityMinimum: 2000,
      versionPriority: 10,
      caBundle: Buffer.from(own.authority).toString('base64'),
      service: { namespace: 'default', name: 'shop', port: shopListening.port },
    },
  });
  const call = (path: string, { method = 'GET', body, headers = {}, user = credentials.admin }: CallOptions = {}) =>
    new Promise<Answer>((resolve, reject) => {
      const content = body === undefined ? undefined : JSON.stringify(body);
      const sent = request(
        listening.url + path,
        {
          method,
          ca: credentials.authority,
          cert: user.certificate,
          key: user.key,
          agent: false,
          headers: { ...(content === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
        },
        (incoming) => void answerOf(incoming).then(resolve, reject),
      );
      sent.on('error', reject);
      sent.end(content);
    });
  Object.assign(t.context, { folder, front, metrics, shop, credentials, listening, shopListening, call });
  await until(async () => (await call('/apis/shop.example.com/v1')).status === 200);
});
test.after.always(async ({ context }) => {
  await context.front?.close();
  await context.shop?.close();
  await rm(context.folder, { recursive: true, force: true });
});

const toys = '/apis/shop.example.com/v1/namespaces/default/toys';
const toy = (name: string, price = 1) => ({
  apiVersion: 'shop.example.com/v1',
  kind: 'Toy',
  metadata: { name },
  spec: { price },
});

test('objects of an aggregated API are created, read, listed and deleted on the other server', async (t) => {
  const { call, shop } = t.context;
  const made = await call(toys, { method: 'POST', body: toy('car', 3) });
  t.is(made.status, 201);
  t.like(made.body, { kind: 'Toy', spec: { price: 3 } });
  t.is((await shop.client<KubeObject>(Toy).namespace('default').get('car')).metadata?.name, 'car');
  t.like((await call(`${toys}?limit=1`)).body, { kind: 'ToyList' });
  t.is(
    (await call(`${toys}/car`, { headers: { Accept: 'application/json;as=Table;g=meta.k8s.io;v=v1' } })).status,
    200,
  );
  t.is((await call(`${toys}/car`, { method: 'DELETE' })).status, 200);
  const missing = await call(`${toys}/car`);
  t.is(missing.status, 404);
  t.like(missing.body, { message: 'toys.shop.example.com "car" not found' });
});

test('users are authorized by both servers, and the other server knows them by their names', async (t) => {
  const { call, credentials } = t.context;
  const authority = { certificate: credentials.authority, key: credentials.authorityKey };
  const user = await issueCertificate(authority, { commonName: 'ann', usage: 'client' }, systemClock.now());
  t.like((await call(toys, { user })).body, {
    code: 403,
    message:
      'toys.shop.example.com is forbidden: User "ann" cannot list resource "toys" in API group "shop.example.com" ' +
      'in the namespace "default"',
  });
  // Headers of the client do not reach the other server.
  const review = '/apis/shop.example.com/v1/namespaces/default/toys';
  const forged = { 'X-Remote-User': 'eve', 'X-Remote-Group': 'system:masters' };
  t.is((await call(review, { user, headers: forged })).status, 403);
  const impersonated = { 'Impersonate-User': 'bob', 'Impersonate-Group': 'readers' };
  t.is((await call(toys, { headers: impersonated })).status, 403);
});

test('the other server learns the address of the client and the called address', async (t) => {
  const { front, call, credentials } = t.context;
  const received: IncomingHttpHeaders[] = [];
  const server = createServer(
    { key: credentials.server.key, cert: credentials.server.certificate },
    ({ headers, url }, response) => {
      if (url?.includes('/things')) received.push(headers);
      const list = { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: 'plain.example.com/v1', resources: [] };
      response.end(JSON.stringify(list));
    },
  );
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  await front.client(APIService).create({
    metadata: { name: 'v1.plain.example.com' },
    spec: {
      group: 'plain.example.com',
      version: 'v1',
      groupPriorityMinimum: 2000,
      versionPriority: 10,
      insecureSkipTLSVerify: true,
      service: { namespace: 'default', name: 'shop', port },
    },
  } as APIService);
  const path = '/apis/plain.example.com/v1/things';
  const forged = { 'X-Forwarded-For': '192.0.2.1', 'X-Forwarded-Host': 'evil.example' };
  await until(async () => (await call(`${path}?limit=1`, { headers: forged })).status === 200);
  t.like(received[0], {
    'x-forwarded-for': '127.0.0.1',
    'x-forwarded-host': `localhost:${port}`,
    'x-forwarded-proto': 'https',
    'x-forwarded-uri': path,
  });
  await front.client(APIService).delete('v1.plain.example.com');
});

test('a watch of an aggregated API streams events', async (t) => {
  const { listening, credentials, call } = t.context;
  let text = '';
  const sent = request(`${listening.url}${toys}?watch=true`, {
    ca: credentials.authority,
    cert: credentials.admin.certificate,
    key: credentials.admin.key,
    agent: false,
  });
  t.teardown(() => sent.destroy());
  sent.on('error', () => {});
  sent.on('response', (incoming) => {
    incoming.on('data', (chunk) => {
      text += String(chunk);
    });
    incoming.on('error', () => {});
  });
  sent.end();
  await call(toys, { method: 'POST', body: toy('watched') });
  await until(() => /"type":"ADDED".*"watched"/.test(text));
  await call(`${toys}/watched`, { method: 'DELETE' });
  await until(() => /"type":"DELETED".*"watched"/.test(text));
  t.pass();
});

test('discovery and OpenAPI contain the aggregated API', async (t) => {
  const { call } = t.context;
  t.like((await call('/apis/shop.example.com')).body, {
    kind: 'APIGroup',
    preferredVersion: { groupVersion: 'shop.example.com/v1' },
  });
  const { body: groups } = await call('/apis');
  t.true((groups['groups'] as { name: string }[]).some(({ name }) => name === 'shop.example.com'));
  const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
  const { body: aggregated } = await call('/apis', { headers: { Accept: accept } });
  const items = aggregated['items'] as { metadata: { name: string }; versions: unknown[] }[];
  t.like(items.find(({ metadata }) => metadata.name === 'shop.example.com')?.versions[0], {
    version: 'v1',
    freshness: 'Current',
    resources: [{ resource: 'toys', scope: 'Namespaced', shortNames: ['ty'], responseKind: { kind: 'Toy' } }],
  });
  t.like((await call('/apis/shop.example.com/v1')).body, {
    kind: 'APIResourceList',
    groupVersion: 'shop.example.com/v1',
  });
  const { body: index } = await call('/openapi/v3');
  const entry = (index['paths'] as Record<string, { serverRelativeURL: string }>)['apis/shop.example.com/v1'];
  const document = await call(entry?.serverRelativeURL ?? '');
  t.is(document.status, 200);
  t.true(JSON.stringify(document.body).includes('/apis/shop.example.com/v1/namespaces/{namespace}/toys'));
});

test('the Swagger document contains the aggregated API with the definitions that it uses', async (t) => {
  const { call } = t.context;
  const swagger = await call('/openapi/v2');
  const paths = Object.keys(swagger.body['paths'] as object);
  const toysPath = '/apis/shop.example.com/v1/namespaces/{namespace}/toys';
  for (const path of [toysPath, `${toysPath}/{name}`]) t.true(paths.includes(path), path);
  t.is(new Set(paths).size, paths.length);
  const definitions = swagger.body['definitions'] as Record<string, Record<string, unknown>>;
  const names = Object.keys(definitions);
  t.like(definitions[names.find((name) => name.endsWith('.Toy')) ?? ''], {
    'x-kubernetes-group-version-kind': [{ group: 'shop.example.com', version: 'v1', kind: 'Toy' }],
  });
  t.deepEqual(
    names.filter((name) => /_v\d+$/.test(name)),
    [],
    'equal definitions are not repeated',
  );
  const used = [...JSON.stringify(swagger.body).matchAll(/"#\/definitions\/([^"]+)"/g)].map(([, name]) => name ?? '');
  t.deepEqual(
    [...new Set(used)].filter((name) => definitions[name] === undefined),
    [],
  );
  const tag = String(swagger.headers['etag']);
  t.is((await call('/openapi/v2', { headers: { 'If-None-Match': tag } })).status, 304);
});

test('the condition of an APIService states whether its server is available', async (t) => {
  const { front, call } = t.context;
  const services = front.client(APIService);
  const conditionOf = async (name: string) =>
    (await services.get(name)).status?.conditions?.find(({ type }) => type === 'Available');
  await until(async () => (await conditionOf('v1.shop.example.com'))?.status === 'True');
  t.like(await conditionOf('v1.shop.example.com'), { reason: 'Passed', message: 'all checks passed' });
  await services.create({
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: 'v1.gone.example.com' },
    spec: {
      group: 'gone.example.com',
      version: 'v1',
      groupPriorityMinimum: 2000,
      versionPriority: 10,
      insecureSkipTLSVerify: true,
      service: { namespace: 'default', name: 'gone' },
    },
  });
  await until(async () => (await conditionOf('v1.gone.example.com'))?.reason === 'ServiceNotFound');
  t.like(await conditionOf('v1.gone.example.com'), {
    status: 'False',
    message: 'service/gone in "default" is not present',
  });
  const answer = await call('/apis/gone.example.com/v1/things');
  t.is(answer.status, 503);
  t.like(answer.body, { reason: 'ServiceUnavailable' });
  t.is((await call('/apis/gone.example.com/v1')).status, 503);
  const unavailable = await t.context.metrics.text();
  t.regex(unavailable, /^aggregator_unavailable_apiservice\{name="v1\.gone\.example\.com"\} 1$/m);
  t.regex(unavailable, /^aggregator_unavailable_apiservice\{name="v1\.shop\.example\.com"\} 0$/m);
  await services.delete('v1.gone.example.com');
  await until(async () => (await call('/apis/gone.example.com/v1/things')).status === 404);
});

test('the objects of a namespace on another server are deleted before the namespace', async (t) => {
  const { front, shop } = t.context;
  const metadata = { name: 'play' };
  for (const plane of [front, shop]) await plane.client(Namespace).create({ metadata });
  const toys = shop.client(Toy).namespace('play');
  // The finalizer keeps the object, and thereby the namespace.
  await toys.create({ metadata: { name: 'ball', finalizers: ['shop.example.com/sold'] } });
  await toys.create({ metadata: { name: 'doll' } });
  await front.client(Namespace).delete('play');
  await until(async () => {
    const { status } = await front.client(Namespace).get('play');
    const remaining = status?.conditions?.find(({ type }) => type === 'NamespaceContentRemaining');
    return remaining?.message?.includes('toys.shop.example.com has 1 resource instances') ?? false;
  }, 'the remaining object is reported');
  t.truthy((await toys.get('ball')).metadata?.deletionTimestamp);
  await toys.patch('ball', 'merge', { metadata: { finalizers: null } });
  await until(async () => {
    const namespaces = await front.client(Namespace).list();
    return namespaces.items.every(({ metadata: { name } }) => name !== 'play');
  }, 'the namespace is deleted');
  t.deepEqual((await toys.list()).items, []);
});

test('every version that the server itself serves has a local APIService', async (t) => {
  const { front } = t.context;
  await until(async () => {
    const { items } = await front.client(APIService).list();
    const local = new Set(items.filter(({ spec }) => spec.service === undefined).map(({ metadata }) => metadata?.name));
    return front.registry.kinds().every(({ group, version }) => local.has(`${version}.${group}`));
  });
  const apps = await front.client(APIService).get('v1.apps');
  t.like(apps, { spec: { group: 'apps', version: 'v1', groupPriorityMinimum: 17_800, versionPriority: 15 } });
  t.is(apps.spec.service, undefined);
  t.like(apps.status?.conditions?.[0], { type: 'Available', status: 'True', reason: 'Local' });
  t.is(apps.metadata?.labels?.['kube-aggregator.kubernetes.io/automanaged'], 'onstart');
  t.truthy(await front.client(APIService).get('v1.'));
});

test('requests over HTTP/2 are forwarded with their bodies', async (t) => {
  const { listening, credentials, call } = t.context;
  await until(
    async () => (await call('/apis/shop.example.com/v1/namespaces/default/toys')).status === 200,
    'the shop is available',
  );
  const { certificate, key } = credentials.admin;
  const session = connectHttp2(listening.url, { ca: credentials.authority, cert: certificate, key });
  t.teardown(() => session.destroy());
  const ask = async (method: string, path: string, body?: string) => {
    const target = { ':method': method, ':path': `/apis/shop.example.com/v1/namespaces/default/toys${path}` };
    const stream = session.request(
      { ...target, 'content-type': 'application/json' },
      { endStream: body === undefined },
    );
    if (body !== undefined) stream.end(body);
    const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders];
    const text = Buffer.concat((await stream.toArray()) as Buffer[]).toString();
    return { status: Number(headers[':status']), text };
  };
  t.is((await ask('POST', '', JSON.stringify({ metadata: { name: 'train' } }))).status, 201);
  const read = await ask('GET', '/train');
  t.is(read.status, 200);
  t.is(JSON.parse(read.text).kind, 'Toy');
  t.is((await ask('DELETE', '/train')).status, 200);
});
