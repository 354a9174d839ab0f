import { Agent, createServer, request as httpRequest } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { type RequestContext, statusErrors } from '@keelson/core';
import { FakeClock, type Logger, type Metrics, noMetrics, silentLogger } from '@keelson/core/runtime';
import { until } from '@keelson/test-support';
import test from 'ava';
import { serverOptions } from '../src/index.ts';
import { configMap, FakeRegistry, namespace, stored, widget } from './support/fake-registry.ts';
import { admin, call, open, raw, serve } from './support/serve.ts';

const one = '/api/v1/namespaces/default/configmaps/a';
const all = '/api/v1/namespaces/default/configmaps';

function registryWithOne(): FakeRegistry {
  const registry = new FakeRegistry();
  registry.service(configMap).objects.set('a', stored(configMap, 'a', 5));
  registry.service(namespace).objects.set('n', stored(namespace, 'n', 6));
  registry.service(widget).objects.set('w', stored(widget, 'w', 7));
  return registry;
}

for (const viaKoa of [false, true]) {
  const way = viaKoa ? 'through middleware' : 'without middleware';

  test(`an object is returned as its stored bytes ${way}`, async (t) => {
    const registry = registryWithOne();
    const { port } = await serve(t, { registry, viaKoa });
    const reply = await call(port, 'GET', one, { headers: { 'audit-id': 'my-id' } });
    t.is(reply.status, 200);
    t.is(reply.text, `${stored(configMap, 'a', 5).json}\n`);
    t.is(reply.headers['content-type'], 'application/json');
    t.is(reply.headers['content-length'], String(reply.body.length));
    t.is(reply.headers['cache-control'], 'no-cache, private');
    t.is(reply.headers['audit-id'], 'my-id');
    const head = await call(port, 'HEAD', one);
    t.is(head.status, 200);
    t.is(head.headers['content-length'], String(reply.body.length));
    t.is(head.body.length, 0);
    t.regex(head.headers['audit-id'] as string, /^[0-9a-f-]{36}$/);
  });

  test(`a missing object is a 404 Status, an unknown path is a 404 text ${way}`, async (t) => {
    const { port } = await serve(t, { viaKoa });
    const missing = await call(port, 'GET', one);
    t.is(missing.status, 404);
    t.like(missing.json, {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: 'configmaps "a" not found',
      reason: 'NotFound',
      details: { name: 'a', kind: 'configmaps' },
      code: 404,
    });
    for (const path of [
      '/api/v1/namespaces/default/unknowns',
      '/api/v2/configmaps',
      '/api/v2',
      '/api/v1/configmaps/a',
      '/api/v1/namespaces/default/namespaces',
      '/api/v1/namespaces/default/configmaps/a/log',
      '/api/v1/namespaces/default/configmaps/a/status/more',
      '/api/v1/proxy/namespaces/default/configmaps/a',
    ]) {
      const reply = await call(port, 'GET', path);
      t.is(reply.status, 404, path);
      t.deepEqual(reply.json, {
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        message: 'the server could not find the requested resource',
        reason: 'NotFound',
        details: {},
        code: 404,
      });
    }
    for (const path of [
      '/apis/none/v1/configmaps',
      '/apis/none/v1',
      '/api/v1/namespaces/default/configmaps//a',
      '/nothing/here',
      '/VERSION',
      '//version',
    ]) {
      const reply = await call(port, 'GET', path);
      t.is(reply.status, 404, path);
      t.is(reply.text, '404 page not found\n', path);
      t.regex(reply.headers['content-type'] as string, /^text\/plain/);
    }
    const impossible = await call(port, 'GET', '/api/v1/namespaces/a%2Fb/configmaps');
    t.is(impossible.status, 400);
    t.is(impossible.json.reason, 'BadRequest');
  });

  test(`an unsupported method of a path is a 405 Status with Allow ${way}`, async (t) => {
    const registry = registryWithOne();
    const { port } = await serve(t, { registry, viaKoa });
    const cases: [string, string, string][] = [
      ['POST', one, 'GET, PUT, PATCH, DELETE'],
      ['PUT', all, 'POST, DELETE, GET'],
      ['POST', '/api/v1/configmaps', 'GET'],
      ['DELETE', '/api/v1/configmaps', 'GET'],
      ['OPTIONS', all, 'POST, DELETE, GET'],
      ['DELETE', '/api/v1/watch/namespaces/default/configmaps', 'GET'],
      ['DELETE', '/apis/test.io/v1/namespaces/default/widgets/w', 'GET, PATCH'],
      ['POST', '/apis/test.io/v1/namespaces/default/widgets/w/status', 'GET, PUT, PATCH'],
      ['GET', '/apis/test.io/v1/namespaces/default/widgets/w/rollback', 'POST'],
    ];
    for (const [method, path, allow] of cases) {
      const reply = await call(port, method, path, { body: '{}' });
      t.is(reply.status, 405, `${method} ${path}`);
      t.is(reply.json.reason, 'MethodNotAllowed');
      t.deepEqual((reply.headers.allow ?? '').split(', ').sort(), allow.split(', ').sort(), `${method} ${path}`);
    }
    const fixed = await call(port, 'POST', '/version', { body: '{}' });
    t.is(fixed.status, 405);
    t.is(fixed.json.kind, 'Status');
  });

  test(`unauthenticated and unauthorized requests are rejected before anything is looked up ${way}`, async (t) => {
    const registry = registryWithOne();
    const { port } = await serve(t, {
      registry,
      viaKoa,
      authenticate: (request) => {
        const sent = request.headers.authorization;
        if (sent === undefined) return undefined;
        if (sent === 'Bearer good') return Promise.resolve({ name: 'jane', groups: ['system:authenticated'] });
        throw statusErrors.unauthorized();
      },
      insecureUser: { name: 'system:anonymous', groups: ['system:unauthenticated'] },
      authorize: async (attributes, user) =>
        user.name === 'jane' && attributes.name === 'a' ? { allowed: true } : { allowed: false, reason: 'not hers' },
    });
    t.is((await call(port, 'GET', one, { headers: { authorization: 'Bearer good' } })).status, 200);
    const bad = await call(port, 'GET', one, { headers: { authorization: 'Bearer bad' } });
    t.is(bad.status, 401);
    t.is(bad.json.message, 'Unauthorized');
    t.is(bad.json.reason, 'Unauthorized');
    const other = await call(port, 'GET', `${all}/b`, { headers: { authorization: 'Bearer good' } });
    t.is(other.status, 403);
    t.is(
      other.json.message,
      'configmaps "b" is forbidden: User "jane" cannot get resource "configmaps" in API group "" in the namespace "default": not hers',
    );
    t.deepEqual(other.json.details, { name: 'b', kind: 'configmaps' });
    t.is(other.headers['x-content-type-options'], 'nosniff');
    const cluster = await call(port, 'PUT', '/apis/test.io/v1/widgets?x', {
      headers: { authorization: 'Bearer good' },
    });
    t.is(
      cluster.json.message,
      'widgets.test.io is forbidden: User "jane" cannot update resource "widgets" in API group "test.io" at the cluster scope: not hers',
    );
    const path = await call(port, 'GET', '/metrics');
    t.is(path.status, 403);
    t.is(path.json.message, 'forbidden: User "system:anonymous" cannot get path "/metrics": not hers');
    // Unauthenticated clients do not learn whether a path exists.
    t.is((await call(port, 'GET', '/apis/none/v1/things')).status, 403);
    t.is(registry.service(configMap).calls.length, 1);
  });

  test(`an internal error is a 500 without details and is logged ${way}`, async (t) => {
    const registry = registryWithOne();
    registry.service(configMap).on.get = async () => {
      throw new TypeError('secret words');
    };
    const logged: unknown[] = [];
    const logger: Logger = {
      ...silentLogger,
      error: (_message, fields) => logged.push(fields?.['err']),
      child: () => logger,
    };
    const { port } = await serve(t, { registry, viaKoa, logger });
    const reply = await call(port, 'GET', one);
    t.is(reply.status, 500);
    t.is(reply.json.reason, 'InternalError');
    t.false(reply.text.includes('secret'));
    t.is(logged.length, 1);
    t.true(logged[0] instanceof TypeError);
  });
}

test('without an authorizer only system:masters have access, and all users to health and version', async (t) => {
  const { port } = await serve(t, { insecureUser: { name: 'jane', groups: ['system:authenticated'] } });
  t.is((await call(port, 'GET', one)).status, 403);
  t.is((await call(port, 'GET', '/metrics')).status, 403);
  t.is((await call(port, 'GET', '/readyz')).status, 200);
  t.is((await call(port, 'GET', '/version')).json.gitVersion, 'v1.32.0');
});

test('requests beyond the seats of their user wait, those beyond the queue are 429; watches are not counted', async (t) => {
  const registry = registryWithOne();
  const waiting: (() => void)[] = [];
  const slow = () => new Promise((resolve) => waiting.push(() => resolve({ object: { kind: 'Status' }, code: 200 })));
  registry.service(configMap).on = { get: slow, delete: slow };
  const { port } = await serve(t, {
    registry,
    limits: { requestsInFlight: 4 },
    flowControl: { levels: [{ name: 'catch-all', shares: 1e6 }], queueLength: 1 },
    authenticate: (request) =>
      request.headers['x-master'] ? admin : { name: String(request.headers['x-user'] ?? 'jane'), groups: [] },
    authorize: () => true,
  });
  const running = [call(port, 'GET', one), call(port, 'DELETE', one)];
  await until(() => waiting.length === 2, 'two requests in the service');
  const queued = [call(port, 'GET', one), call(port, 'GET', one)];
  const refused = await Promise.race(queued);
  t.is(refused.status, 429);
  t.is(refused.text, 'Too many requests, please try again later.\n');
  t.is(refused.headers['retry-after'], '1');
  t.is(waiting.length, 2);
  const watch = await open(port, 'GET', `${all}?watch=1`);
  t.is(watch.statusCode, 200);
  watch.destroy();
  const others = [
    call(port, 'GET', one, { headers: { 'x-user': 'joe' } }),
    call(port, 'GET', one, { headers: { 'x-master': '1' } }),
  ];
  await until(() => waiting.length === 4, 'another user and a master are not affected');
  for (const answer of waiting.slice(0, 2)) answer();
  await until(() => waiting.length === 5, 'the queued request has a seat');
  for (const answer of waiting) answer();
  for (const reply of await Promise.all([...running, ...others])) t.is(reply.status, 200);
  t.deepEqual((await Promise.all(queued)).map(({ status }) => status).sort(), [200, 429]);
});

test('watches have limits of their own, in total and per user', async (t) => {
  const { port } = await serve(t, {
    limits: { watches: 3, watchesPerUser: 2 },
    authenticate: (request) => ({ name: request.headers['x-user'] as string, groups: [] }),
    authorize: () => true,
  });
  const watch = (user: string) => open(port, 'GET', `${all}?watch=1`, { headers: { 'x-user': user } });
  const mine = [await watch('jane'), await watch('jane')];
  t.is((await watch('jane')).statusCode, 429);
  t.is((await watch('joe')).statusCode, 200);
  t.is((await watch('jim')).statusCode, 429);
  for (const response of mine) response.destroy();
  let status: number | undefined;
  for (let i = 0; i < 200 && status !== 200; i++) status = (await watch('jane')).statusCode;
  t.is(status, 200, 'the watches are released');
});

test('headers that do not arrive in time are answered with 408', async (t) => {
  t.is(serverOptions.headersTimeout, 10_000);
  const { api } = await serve(t);
  const server = createServer({ ...serverOptions, headersTimeout: 100, connectionsCheckingInterval: 20 }, api.listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  t.regex(await raw(port, 'GET /readyz HTTP/1.1\r\nHost: localhost\r\nX-Slow: '), /^HTTP\/1.1 408 /);
});

test('the abort signal of a request is never that of an earlier request of the connection', async (t) => {
  const clock = new FakeClock();
  const registry = registryWithOne();
  const seen: AbortSignal[] = [];
  let hang = true;
  registry.service(configMap).on.get = (context: RequestContext) => {
    const signal = context.signal as AbortSignal;
    seen.push(signal);
    if (!hang) return Promise.resolve({ object: { kind: 'Status' }, code: signal.aborted ? 202 : 200 });
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  };
  const { port } = await serve(t, { registry, clock });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => agent.destroy());
  const get = () => call(port, 'GET', one, { agent });
  const first = get();
  await until(() => seen.length === 1, 'the first is running');
  clock.advance(60_000);
  t.is((await first).status, 504);
  hang = false;
  t.is((await get()).status, 200);
  t.is((await get()).status, 200);
  t.not(seen[1], seen[0]);
  t.is(seen[2], seen[1]);
});

test('bodies beyond the limit are 413, with or without Content-Length, and do not reach the service', async (t) => {
  const registry = registryWithOne();
  const { port } = await serve(t, { registry, limits: { bodyBytes: 1000 } });
  const fits = await call(port, 'POST', all, { body: 'x'.repeat(1000) });
  t.is(fits.status, 201);
  for (const size of [1001, 3000]) {
    const announced = await call(port, 'POST', all, { body: 'x'.repeat(size) });
    t.is(announced.status, 413);
    t.is(announced.json.reason, 'RequestEntityTooLarge');
    t.is(announced.json.message, 'Request entity too large: limit is 1000');
    const chunked = await call(port, 'PUT', one, {
      body: 'x'.repeat(size),
      headers: { 'transfer-encoding': 'chunked' },
    });
    t.is(chunked.status, 413);
  }
  // Far too large: answered without reading the rest, and the connection is closed.
  const head = 'Host: localhost\r\nContent-Type: application/json\r\nContent-Length: 900000000';
  const huge = await raw(port, `POST ${all} HTTP/1.1\r\n${head}\r\n\r\n${'x'.repeat(100)}`);
  t.regex(huge, /^HTTP\/1.1 413 /);
  t.regex(huge, /Connection: close/i);
  t.is(registry.service(configMap).calls.length, 1);
});

test('headers beyond 32 KiB and malformed requests are rejected by the server', async (t) => {
  const { port } = await serve(t);
  t.regex(
    await raw(port, `GET ${one} HTTP/1.1\r\nHost: localhost\r\nX: ${'y'.repeat(40_000)}\r\n\r\n`),
    /^HTTP\/1.1 431 /,
  );
  t.regex(await raw(port, 'GET / HTTP/9.9\r\n\r\n'), /^HTTP\/1.1 400 /);
});

test('an operation that exceeds its deadline is a 504 and is aborted', async (t) => {
  const clock = new FakeClock();
  const registry = registryWithOne();
  let stopped: unknown;
  let started = 0;
  registry.service(configMap).on.get = (context: RequestContext) =>
    new Promise((_, reject) => {
      started += 1;
      context.signal?.addEventListener('abort', () => {
        stopped = context.signal?.reason;
        reject(new Error('stopped'));
      });
    });
  const { port } = await serve(t, { registry, clock });
  const pending = call(port, 'GET', one);
  await until(() => started === 1, 'the operation runs');
  clock.advance(33_000);
  t.is(stopped, undefined);
  clock.advance(3000);
  const reply = await pending;
  t.is(reply.status, 504);
  t.is(reply.json.reason, 'Timeout');
  t.is(reply.json.message, 'Timeout: request did not complete within the allotted timeout');
  t.truthy(stopped);

  const own = call(port, 'GET', `${one}?timeout=1500ms`);
  await until(() => started === 2, 'the second operation runs');
  clock.advance(1499);
  clock.advance(1);
  t.is((await own).status, 504);
  for (const bad of ['x', '10', '-1s', '1x', '1s1']) {
    const refused = await call(port, 'GET', `${one}?timeout=${bad}`);
    t.is(refused.status, 400);
    t.is(refused.json.message, 'invalid timeout specified in the request URL');
  }
});

test('a client that disconnects aborts its operation', async (t) => {
  const registry = registryWithOne();
  let stopped = false;
  let started = false;
  registry.service(configMap).on.get = (context: RequestContext) =>
    new Promise((_, reject) => {
      started = true;
      context.signal?.addEventListener('abort', () => {
        stopped = true;
        reject(new Error('stopped'));
      });
    });
  const { port } = await serve(t, { registry });
  const request = httpRequest({ host: '127.0.0.1', port, path: one, agent: false });
  request.on('error', () => {});
  request.end();
  await until(() => started, 'the operation runs');
  request.destroy();
  await until(() => stopped, 'the operation is stopped');
  t.pass();
});

test('an incomplete body does not reach the service and leaves nothing running', async (t) => {
  const registry = registryWithOne();
  const { port, api } = await serve(t, { registry });
  const socket = connect(port, '127.0.0.1');
  socket.write(`POST ${all} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"kind"`);
  await new Promise((resolve) => setTimeout(resolve, 50));
  socket.destroy();
  await api.drain();
  t.is(registry.service(configMap).calls.length, 0);
});

test('draining rejects new requests, ends watches cleanly and waits for running requests', async (t) => {
  const registry = registryWithOne();
  let finish: (() => void) | undefined;
  registry.service(configMap).on.get = () =>
    new Promise((resolve) => {
      finish = () => resolve({ object: { kind: 'Status' }, code: 200 });
    });
  const { port, api } = await serve(t, { registry });
  const running = call(port, 'GET', one);
  const watch = await open(port, 'GET', `${all}?watch=1`);
  await until(() => finish !== undefined, 'a running request');
  let drained = false;
  const draining = api.drain().then(() => {
    drained = true;
  });
  for await (const _ of watch) t.fail('no event was sent');
  t.true(watch.complete);
  const refused = await call(port, 'GET', one);
  t.is(refused.status, 503);
  t.is(refused.json.reason, 'ServiceUnavailable');
  t.is(refused.headers.connection, 'close');
  t.false(drained);
  finish?.();
  t.is((await running).status, 200);
  await draining;
});

test('warnings are sent as headers, are truncated, and cannot end their quotes', async (t) => {
  const registry = registryWithOne();
  const texts = ['unknown field "spec.x"', 'line\r\nInjected: yes', 'ü€😀'];
  registry.service(configMap).on.get = async (context: RequestContext) => {
    for (const text of texts) context.warn(text);
    return { object: { kind: 'Status' }, code: 200 };
  };
  const { port } = await serve(t, { registry });
  const reply = await call(port, 'GET', one);
  t.is(
    Buffer.from(reply.headers['warning'] as unknown as string, 'latin1').toString(),
    '299 - "unknown field \\"spec.x\\"", 299 - "line??Injected: yes", 299 - "ü€😀"',
  );
  t.is(reply.headers['injected'], undefined);
  texts.splice(0, 3, ...Array.from({ length: 20 }, (_, i) => `${i} ${'y'.repeat(500)}`));
  const many = await call(port, 'GET', one);
  t.true((many.headers['warning'] as unknown as string).split(', ').every((w) => w.length <= 256 + 10));
});

test('requests are counted by verb, registered resource, scope and code', async (t) => {
  const counted: string[] = [];
  const metrics: Metrics = {
    ...noMetrics,
    counter: ({ name }) => ({
      add: (value, labels = {}) => {
        counted.push(
          `${name} ${Object.values(labels)
            .map((label) => JSON.stringify(label))
            .join(' ')} ${value}`,
        );
      },
    }),
    text: async () => 'the text\n',
  };
  const { port } = await serve(t, { registry: registryWithOne(), metrics });
  await call(port, 'GET', one);
  await call(port, 'GET', `${all}/missing`);
  await call(port, 'GET', `${one}/invented-by-client`);
  await call(port, 'GET', '/apis/invented-by-client/v1/whatever');
  await call(port, 'PURGE', all);
  await call(port, 'GET', '/livez');
  const reply = await call(port, 'GET', '/metrics');
  t.is(reply.text, 'the text\n');
  t.is(reply.headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8');
  const requests = counted.filter((line) => line.startsWith('apiserver_request_total'));
  t.deepEqual(requests.sort(), [
    'apiserver_request_total "GET" "" "" "" "" "" "200" 1',
    'apiserver_request_total "GET" "" "v1" "configmaps" "" "resource" "200" 1',
    'apiserver_request_total "GET" "" "v1" "configmaps" "" "resource" "404" 2',
    'apiserver_request_total "LIST" "" "" "other" "" "cluster" "404" 1',
    'apiserver_request_total "other" "" "v1" "configmaps" "" "namespace" "405" 1',
  ]);
});

test('health endpoints list their checks, exclude checks, and serve single ones', async (t) => {
  let healthy = true;
  const { port, api } = await serve(t, {
    checks: [
      { name: 'store', check: async () => healthy, on: ['readyz', 'healthz'], aliases: { livez: ['etcd'] } },
      { name: 'cache', check: () => undefined },
    ],
  });
  const ok = await call(port, 'GET', '/readyz');
  t.is(ok.text, 'ok');
  t.is(ok.headers['x-content-type-options'], 'nosniff');
  t.is((await call(port, 'GET', '/livez?verbose')).text, '[+]ping ok\nlivez check passed\n');
  t.is(
    (await call(port, 'GET', '/livez?verbose&exclude=y&exclude=ping&exclude=x')).text,
    '[+]ping excluded: ok\nwarn: some health checks cannot be excluded: no matches for "x","y"\nlivez check passed\n',
  );
  t.is((await call(port, 'GET', '/livez/etcd')).text, 'ok');
  t.is((await call(port, 'GET', '/healthz/etcd')).status, 404);
  healthy = false;
  const bad = await call(port, 'GET', '/readyz');
  t.is(bad.status, 500);
  t.is(bad.text, '[+]ping ok\n[-]store failed: reason withheld\n[+]cache ok\n[+]shutdown ok\nreadyz check failed\n');
  t.is((await call(port, 'GET', '/readyz?exclude=store')).status, 200);
  t.is((await call(port, 'GET', '/readyz/store')).status, 500);
  t.is((await call(port, 'GET', '/readyz/cache/')).status, 200);
  t.is((await call(port, 'GET', '/readyz/none')).status, 404);
  t.is((await call(port, 'GET', '/livez')).status, 200);
  await api.drain();
  t.is((await call(port, 'GET', '/readyz')).status, 503);
});

test('middleware that is added later serves its own paths, behind the filters', async (t) => {
  const users: string[] = [];
  const { api, port } = await serve(t, { authorize: ({ path }) => path !== '/closed' });
  t.is((await call(port, 'GET', '/hello')).status, 404);
  api.use(async (ctx, next) => {
    if (ctx.path !== '/hello') return next();
    ctx.body = 'hello\n';
  });
  t.deepEqual([(await call(port, 'GET', '/hello')).text, (await call(port, 'GET', '/other')).status], ['hello\n', 404]);
  api.use(async (ctx, next) => {
    users.push(ctx.state.exchange.user.name);
    if (ctx.path === '/teapot') ctx.throw(418, 'short and stout');
    if (ctx.path === '/hidden') ctx.throw(500, 'secret');
    await next();
  });
  t.is((await call(port, 'GET', '/hello')).text, 'hello\n', 'the previous paths remain');
  t.like((await call(port, 'GET', '/teapot')).json, { kind: 'Status', code: 418, message: 'short and stout' });
  const hidden = await call(port, 'GET', '/hidden');
  t.is(hidden.status, 500);
  t.notRegex(hidden.text, /secret/);
  t.is((await call(port, 'GET', '/closed')).status, 403);
  t.is((await call(port, 'GET', '/version')).status, 200);
  t.deepEqual(users, ['admin', 'admin']);
});

test('a request target in absolute form is served by its path; an invalid URL is 400', async (t) => {
  const { port } = await serve(t);
  const send = (target: string) => raw(port, `GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
  t.regex(await send('http://localhost/version'), /^HTTP\/1\.1 200 /);
  t.regex(await send('http://localhost/api/v1/namespaces/default/configmaps?limit=1'), /^HTTP\/1\.1 200 /);
  for (const target of ['http://[bad', 'http://[bad/api/v1/pods', 'http://a:99999/version', 'https://', 'http://a b']) {
    const answer = await send(target);
    t.regex(answer, /^HTTP\/1\.1 400 /, target);
  }
  t.regex(await send('http://[bad'), /"kind":"Status".*the request target \\"http:\/\/\[bad\\" is not a valid URL/);
});
