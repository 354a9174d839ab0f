import test from 'ava';
import { configMap, FakeRegistry } from './support/fake-registry.ts';
import { admin, type CallOptions, call, open, raw, serve } from './support/serve.ts';
import { dialerTo, rawUpstream, runner, toAgent } from './support/upstream.ts';

const maps = '/api/v1/namespaces/default/configmaps';
const pages: readonly Record<string, string>[] = [
  { host: 'rebound.evil.example' },
  { origin: 'https://evil.example' },
  { origin: 'null' },
  { 'sec-fetch-site': 'cross-site' },
  { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors' },
];

for (const headers of pages) {
  test(`a request without credentials is rejected with the headers ${JSON.stringify(headers)}`, async (t) => {
    const registry = new FakeRegistry();
    const { api, port } = await serve(t, { registry });
    api.use((ctx) => {
      ctx.body = 'own';
    });
    for (const [method, path] of [
      ...[
        ['GET', maps],
        ['GET', `${maps}?watch=1`],
        ['POST', maps],
        ['DELETE', `${maps}/a`],
        ['OPTIONS', maps],
      ],
      ...[
        ['GET', '/version'],
        ['GET', '/readyz'],
        ['GET', '/metrics'],
        ['GET', '/openapi/v2'],
        ['GET', '/own'],
      ],
    ] as const) {
      const reply = await call(port, method as string, path as string, {
        headers,
        ...(method === 'POST' ? { body: '{}' } : {}),
      });
      t.is(reply.status, 403, `${method} ${path}`);
      t.like(reply.json, { kind: 'Status', reason: 'Forbidden' });
      t.regex(reply.json.message, /^without credentials /);
      t.is(reply.headers['access-control-allow-origin'], undefined);
    }
    t.deepEqual(registry.service(configMap).calls, []);
  });

  test(`an upgrade request is rejected with the headers ${JSON.stringify(headers)}`, async (t) => {
    let reached = false;
    const agent = await rawUpstream(t, (socket) => {
      reached = true;
      socket.end();
    });
    const registry = new FakeRegistry([runner]);
    registry.service(runner).on.connect = toAgent as never;
    const { api, server, port } = await serve(t, { registry, nodeDialer: dialerTo(agent) });
    api.acceptUpgrades(server);
    const lines = Object.entries({ host: 'localhost', ...headers, connection: 'Upgrade', upgrade: 'websocket' });
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    for (const path of ['pods/p/exec?command=id', 'pods/p/proxy/', 'pods/p/log', 'pods?watch=1']) {
      t.regex(await raw(port, `GET /api/v1/namespaces/default/${path} HTTP/1.1\r\n${head}\r\n`), /^HTTP\/1\.1 403 /);
    }
    t.false(reached);
  });
}

test('clients other than browsers, pages of this server and allowed hosts are served', async (t) => {
  const { port } = await serve(t, { allowedHosts: ['dev.example'] });
  const own: readonly Record<string, string>[] = [
    {},
    { host: `localhost:${port}` },
    { host: 'dev.example' },
    { host: '[::1]:1' },
    { origin: `http://127.0.0.1:${port}` },
    { 'sec-fetch-site': 'same-origin', origin: `http://127.0.0.1:${port}` },
    { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' },
  ];
  for (const headers of own) t.is((await call(port, 'GET', maps, { headers })).status, 200, JSON.stringify(headers));
  t.regex(await raw(port, `GET ${maps} HTTP/1.0\r\n\r\n`), /^HTTP\/1\.1 200 /, 'a client that sends no host');
});

test('host and origin are not checked with credentials, nor for anonymous users', async (t) => {
  const headers = { host: 'api.example', origin: 'https://console.example', 'sec-fetch-site': 'cross-site' };
  const byToken = await serve(t, {
    authenticate: ({ headers: { authorization } }) => (authorization ? admin : undefined),
  });
  t.is((await call(byToken.port, 'GET', maps, { headers: { ...headers, authorization: 'Bearer x' } })).status, 200);
  t.is((await call(byToken.port, 'GET', maps, { headers })).status, 403, 'the insecure user needs none');
  const anonymous = await serve(t, { insecureUser: undefined as never });
  t.is((await call(anonymous.port, 'GET', '/version', { headers })).status, 200);
});

/** The types that a page can send to another site without asking, and none. */
const simple = [
  '',
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'text/plain; application/json',
];

test('a body of a type that pages send without a preflight is 415, and nothing is created', async (t) => {
  const registry = new FakeRegistry();
  const { port } = await serve(t, { registry });
  const body = '{"metadata":{"name":"a"}}';
  for (const type of simple) {
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
      // An empty type is none at all, and other methods than POST are not sent unasked.
      if (type === '' && (method === 'PUT' || method === 'DELETE')) continue;
      const path = method === 'POST' ? maps : `${maps}/a`;
      const reply = await call(port, method, path, { headers: { 'content-type': type }, body });
      t.like(reply.json, { code: 415, reason: 'UnsupportedMediaType' }, `${method} ${type}`);
    }
  }
  const untyped = await raw(
    port,
    `POST ${maps} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
  );
  t.regex(untyped, /^HTTP\/1\.1 415 /);
  t.regex(
    untyped,
    /accepted media types include: application\/json, application\/yaml, application\/vnd\.kubernetes\.protobuf/,
  );
  t.deepEqual(registry.service(configMap).calls, []);
});

const scaled = 'kubectl/v1.32.4 (linux/amd64) kubernetes/59526cd';
const untyped: readonly (readonly [what: string, method: string, path: string, options: CallOptions])[] = [
  ['kubectl scale', 'PUT', `${maps}/a`, { body: '{"metadata":{"name":"a"}}', headers: { 'user-agent': scaled } }],
  ['a PUT of any client', 'PUT', `${maps}/a`, { body: '{"metadata":{"name":"a"}}' }],
  ['DeleteOptions of any client', 'DELETE', `${maps}/a`, { body: '{"kind":"DeleteOptions","apiVersion":"v1"}' }],
  ['kubectl create --raw', 'POST', maps, { body: '{}', headers: { 'user-agent': scaled } }],
  ['a raw call with a bearer token', 'POST', maps, { body: '{}', headers: { authorization: 'Bearer x' } }],
];
for (const [what, method, path, { body, headers }] of untyped) {
  test(`a body without Content-Type is JSON: ${what}`, async (t) => {
    const registry = new FakeRegistry();
    registry.service(configMap).on = {
      update: async () => ({ object: {}, code: 200 }),
      delete: async () => ({ object: {}, code: 200 }),
    };
    const { port } = await serve(t, { registry });
    const reply = await new Promise<number>((resolve, reject) => {
      // `call` would add the type.
      const head = Object.entries({
        host: 'localhost',
        connection: 'close',
        'content-length': Buffer.byteLength(String(body)),
        ...headers,
      });
      const lines = head.map(([name, value]) => `${name}: ${value}\r\n`).join('');
      raw(port, `${method} ${path} HTTP/1.1\r\n${lines}\r\n${body}`).then(
        (text) => resolve(Number(text.slice(9, 12))),
        reject,
      );
    });
    t.true(reply === 200 || reply === 201, String(reply));
    t.is(registry.service(configMap).calls.length, 1);
  });
}

test('a POST without a body requires no Content-Type', async (t) => {
  const { port } = await serve(t);
  const reply = await open(port, 'POST', maps);
  t.is(reply.resume().statusCode, 201);
});
