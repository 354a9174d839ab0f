import { gzipSync } from 'node:zlib';
import { isStatusError } from '@keelson/core';
import { FakeClock } from '@keelson/core/runtime';
import test from 'ava';
import { isConnectionError } from '../../src/http/connection-error.ts';
import { createHttpClient } from '../../src/http/http-resource-client.ts';
import { failureOf, fakeServer, sendJson, statusBody } from './fake-server.ts';

const thing = { kind: 'Thing', apiVersion: 'g.example.com/v1', metadata: { name: 'a', namespace: 'n' } };

test('requests are sent with the settings of the options', async (t) => {
  const { things, seen, client } = await fakeServer(
    t,
    (_request, response) => sendJson(response, { ...thing, items: [] }),
    {
      token: 'secret',
      userAgent: 'tester/1',
      impersonate: { user: 'jane', groups: ['a', 'b'], extra: { 'example.com/Scope': ['x y'] } },
    },
  );
  const path = '/apis/g.example.com/v1/namespaces/n/things';
  await things.create({ metadata: { name: 'a' } }, { dryRun: true, fieldManager: 'me', fieldValidation: 'Strict' });
  await things.get('a', { resourceVersion: '0' });
  await things.list({
    labelSelector: 'a in (b,c)',
    fieldSelector: 'x=ü',
    limit: 5,
    resourceVersion: '7',
    resourceVersionMatch: 'Exact',
  });
  await things.update({ metadata: { name: 'a' } });
  for (const type of ['json', 'merge', 'strategic'] as const) await things.patch('a', type, type === 'json' ? [] : {});
  await things.delete('a');
  await things.delete('a', {
    gracePeriodSeconds: 0,
    propagationPolicy: 'Foreground',
    preconditions: { uid: 'u', resourceVersion: '3' },
    dryRun: true,
  });
  await things.deleteCollection({ labelSelector: 'x', propagationPolicy: 'Orphan' });
  await things.getSubresource('a', 'scale');
  await things.createSubresource('a', 'eviction', { kind: 'Eviction' }, { dryRun: true });
  await client.dynamic({ group: '', version: 'v1', resource: 'nodes' }).get('a b');
  t.deepEqual(
    seen.map(({ method, url }) => `${method} ${url}`),
    [
      `POST ${path}?dryRun=All&fieldManager=me&fieldValidation=Strict`,
      `GET ${path}/a?resourceVersion=0`,
      `GET ${path}?labelSelector=a%20in%20(b%2Cc)&fieldSelector=x%3D%C3%BC&resourceVersion=7&resourceVersionMatch=Exact&limit=5`,
      `PUT ${path}/a`,
      `PATCH ${path}/a`,
      `PATCH ${path}/a`,
      `PATCH ${path}/a`,
      `DELETE ${path}/a`,
      `DELETE ${path}/a`,
      `DELETE ${path}?labelSelector=x`,
      `GET ${path}/a/scale`,
      `POST ${path}/a/eviction?dryRun=All`,
      'GET /api/v1/nodes/a%20b',
    ],
  );
  t.deepEqual(
    seen.slice(3, 7).map(({ headers }) => headers['content-type']),
    [
      'application/json',
      'application/json-patch+json',
      'application/merge-patch+json',
      'application/strategic-merge-patch+json',
    ],
  );
  t.is(seen[7]?.body, '');
  t.deepEqual(JSON.parse(seen[8]?.body ?? ''), {
    kind: 'DeleteOptions',
    apiVersion: 'v1',
    gracePeriodSeconds: 0,
    preconditions: { uid: 'u', resourceVersion: '3' },
    propagationPolicy: 'Foreground',
    dryRun: ['All'],
  });
  for (const { headers } of seen) {
    t.like(headers, { authorization: 'Bearer secret', 'user-agent': 'tester/1', accept: 'application/json' });
    t.like(headers, {
      'impersonate-user': 'jane',
      'impersonate-group': 'a, b',
      'impersonate-extra-example.com%2fscope': 'x y',
    });
  }
});

test('the path of the server URL is prepended to every path, and connections are reused', async (t) => {
  const sockets = new Set<unknown>();
  const { url, seen } = await fakeServer(t, (_request, response, raw) => {
    sockets.add(raw.socket);
    sendJson(response, thing);
  });
  const client = createHttpClient({ server: `${url}/clusters/one/` });
  t.teardown(() => client.close());
  for (let at = 0; at < 3; at += 1) await client.dynamic({ group: '', version: 'v1', resource: 'nodes' }).get('a');
  t.is(seen[0]?.url, '/clusters/one/api/v1/nodes/a');
  t.is(sockets.size, 1);
});

/** A clock that records started delays, except those of `without` ms. */
function clockWithPauses(without: number) {
  const clock = new FakeClock();
  const after = clock.after.bind(clock);
  const all: number[] = [];
  let notify = () => {};
  clock.after = (ms, callback) => {
    if (ms !== without) all.push(ms);
    notify();
    return after(ms, callback);
  };
  const begun = async (count: number): Promise<void> => {
    while (all.length < count) {
      await new Promise<void>((resolve) => {
        notify = resolve;
      });
    }
  };
  return { clock, pauses: { all, begun } };
}

test('429 and 5xx with Retry-After are retried after the given time, for writes too', async (t) => {
  const { clock, pauses } = clockWithPauses(60_000);
  const answers = [
    [429, '3'],
    [503, '1'],
    [500, '2'],
  ] as const;
  let next = 0;
  const { things, arrived, seen } = await fakeServer(
    t,
    (_request, response) => {
      const [code, after] = answers[next++] ?? [];
      if (code === undefined) sendJson(response, thing);
      else sendJson(response, statusBody(code, 'ServerTimeout'), code, { 'Retry-After': after });
    },
    { clock },
  );
  const creating = things.create({ metadata: { name: 'a' } });
  for (const [at, [, after]] of answers.entries()) {
    await arrived(at + 1);
    await pauses.begun(at + 1);
    t.is(pauses.all[at], Number(after) * 1000);
    clock.advance(Number(after) * 1000 - 1);
    t.is(seen.length, at + 1, 'not before its time');
    clock.advance(1);
  }
  t.is((await creating).metadata?.name, 'a');
  t.is(new Set(seen.map(({ body }) => body)).size, 1);
});

test('after ten retries the last 429 is returned; without Retry-After the first one is', async (t) => {
  let after: string | undefined = '0';
  const { things, seen } = await fakeServer(t, (_request, response) =>
    sendJson(response, statusBody(503, 'ServiceUnavailable'), 503, after === undefined ? {} : { 'Retry-After': after }),
  );
  t.like(await failureOf(things.get('a')), { code: 503, reason: 'ServiceUnavailable' });
  t.is(seen.length, 11);
  after = undefined;
  await failureOf(things.get('a'));
  t.is(seen.length, 12);
  after = 'Wed, 21 Oct 2026 07:28:00 GMT';
  await failureOf(things.get('a'));
  t.is(seen.length, 13);
});

test('a 4xx response is never retried, even with Retry-After, nor is a resourceVersion that is too large', async (t) => {
  let body: object = statusBody(409, 'AlreadyExists');
  const { things, seen } = await fakeServer(t, (_request, response) =>
    sendJson(response, body, (body as { code: number }).code, { 'Retry-After': '1' }),
  );
  t.like(await failureOf(things.create(thing)), { code: 409, reason: 'AlreadyExists' });
  body = {
    ...statusBody(504, 'Timeout'),
    details: { causes: [{ reason: 'ResourceVersionTooLarge' }], retryAfterSeconds: 1 },
  };
  t.like(await failureOf(things.list({ resourceVersion: '99' })), { code: 504, reason: 'Timeout' });
  t.is(seen.length, 2);
});

test('a write whose connection breaks is not retried and fails with OutcomeUnknown', async (t) => {
  for (const cut of ['before', 'within'] as const) {
    const { things, seen } = await fakeServer(t, (_request, response, raw) => {
      if (cut === 'within') {
        response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': '1000' });
        response.write('{"kind":');
        setTimeout(() => raw.socket.destroy(), 10);
      } else raw.socket.destroy();
    });
    const changes = [
      () => things.create(thing),
      () => things.update(thing),
      () => things.patch('a', 'merge', {}),
      () => things.delete('a'),
      () => things.deleteCollection(),
      () => things.createSubresource('a', 'eviction', {}),
    ];
    for (const change of changes) {
      const error = await failureOf(change());
      t.true(isConnectionError(error, 'OutcomeUnknown'), `${cut}: ${error.message}`);
      t.regex(error.message, /unknown whether it was executed/);
    }
    t.is(seen.length, changes.length);
  }
});

test('a read whose connection breaks is retried', async (t) => {
  let left = 3;
  const { things, seen } = await fakeServer(t, (_request, response, raw) => {
    if (left-- > 0) raw.socket.destroy();
    else sendJson(response, thing);
  });
  t.is((await things.get('a')).metadata?.name, 'a');
  t.is(seen.length, 4);
});

test('a request to a port without a listener fails with Unreachable', async (t) => {
  const { url, client } = await fakeServer(t, () => {});
  client.close();
  const unused = createHttpClient({ server: 'http://127.0.0.1:1' });
  t.teardown(() => unused.close());
  const error = await failureOf(unused.dynamic({ group: '', version: 'v1', resource: 'nodes' }).create(thing));
  t.true(isConnectionError(error, 'Unreachable'), error.message);
  t.true(isConnectionError(await failureOf(client.discover()), 'Closed'), url);
});

test('time-outs: a read fails, and a write fails with an unknown outcome', async (t) => {
  const clock = new FakeClock();
  const { things, arrived } = await fakeServer(t, () => {}, { clock, timeoutMs: 7_000 });
  const reading = failureOf(things.get('a'));
  await arrived(1);
  clock.advance(7_000);
  t.true(isConnectionError(await reading, 'Timeout'));
  const changing = failureOf(things.delete('a'));
  await arrived(2);
  clock.advance(7_000);
  const error = await changing;
  t.true(isConnectionError(error, 'OutcomeUnknown'));
  t.regex(error.message, /no response within 7000 ms/);
});

test('an abort signal ends a request that is running, queued or waiting for a retry', async (t) => {
  const { clock, pauses } = clockWithPauses(60_000);
  const { things, arrived } = await fakeServer(
    t,
    ({ url }, response) => {
      if (url.endsWith('/busy')) sendJson(response, statusBody(429, 'TooManyRequests'), 429, { 'Retry-After': '600' });
    },
    { clock, qps: 0.001, burst: 2 },
  );
  const running = new AbortController();
  const read = failureOf(things.get('a', { signal: running.signal }));
  await arrived(1);
  running.abort();
  t.true(isConnectionError(await read, 'Aborted'));
  const repeating = new AbortController();
  const repeated = failureOf(things.get('busy', { signal: repeating.signal }));
  await arrived(2);
  await pauses.begun(1);
  repeating.abort();
  t.true(isConnectionError(await repeated, 'Aborted'));
  const queued = new AbortController();
  const change = failureOf(things.delete('a', { signal: queued.signal }));
  queued.abort();
  t.true(isConnectionError(await change, 'Aborted'), 'it was never sent');
  t.true(isConnectionError(await failureOf(things.get('a', { signal: AbortSignal.abort() })), 'Aborted'));
});

test('closing the client ends running requests', async (t) => {
  const { things, client, arrived } = await fakeServer(t, () => {});
  const read = failureOf(things.get('a'));
  const change = failureOf(things.delete('a'));
  await arrived(2);
  client.close();
  t.true(isConnectionError(await read, 'Closed'));
  t.true(isConnectionError(await change, 'OutcomeUnknown'));
  t.true(isConnectionError(await failureOf(things.get('a')), 'Closed'));
});

test('responses that are not a Status get the meaning of their status code', async (t) => {
  let code = 404;
  const { things } = await fakeServer(t, (_request, response) => {
    response.writeHead(code, { 'Content-Type': 'text/plain' });
    response.end('404 page not found\n');
  });
  const error = await failureOf(things.get('a'));
  t.true(isStatusError(error));
  t.like(error, { code: 404, reason: 'NotFound' });
  t.is(error.message, 'the server could not find the requested resource (get things.g.example.com a)');
  t.deepEqual((error as unknown as { status: { details: unknown } }).status.details, {
    name: 'a',
    group: 'g.example.com',
    kind: 'things',
    causes: [{ reason: 'UnexpectedServerResponse', message: '404 page not found' }],
  });
  const reasons: Record<number, string> = {};
  for (code of [302, 400, 401, 403, 405, 406, 409, 410, 413, 415, 418, 422, 500, 502, 503, 504]) {
    reasons[code] = String((await failureOf(things.get('a'))).reason);
  }
  code = 409;
  reasons[code * 10] = String((await failureOf(things.create(thing))).reason);
  t.deepEqual(reasons, {
    302: '',
    400: 'BadRequest',
    401: 'Unauthorized',
    403: 'Forbidden',
    405: 'MethodNotAllowed',
    406: 'NotAcceptable',
    409: 'Conflict',
    410: 'Gone',
    413: 'RequestEntityTooLarge',
    415: 'UnsupportedMediaType',
    418: '',
    422: 'Invalid',
    500: 'InternalError',
    502: 'InternalError',
    503: 'ServiceUnavailable',
    504: 'Timeout',
    4090: 'AlreadyExists',
  });
});

test('compressed responses and errors are decompressed; corrupt ones fail', async (t) => {
  const big = { ...thing, data: 'ü'.repeat(300_000) };
  let body = gzipSync(JSON.stringify(big));
  let code = 200;
  const { things, seen } = await fakeServer(t, (_request, response) => {
    response.writeHead(code, { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' });
    response.end(body);
  });
  t.deepEqual(await things.get('a'), big);
  t.is(seen[0]?.headers['accept-encoding'], 'gzip');
  code = 403;
  body = gzipSync(JSON.stringify(statusBody(403, 'Forbidden')));
  t.like(await failureOf(things.get('a')), { code: 403, reason: 'Forbidden' });
  code = 200;
  body = Buffer.from('no gzip');
  t.true(isConnectionError(await failureOf(things.get('a')), 'BadAnswer'));
});

test('responses that are not JSON or not HTTP fail with BadAnswer', async (t) => {
  let raw = false;
  const { things } = await fakeServer(t, (_request, response, message) => {
    if (raw) message.socket.end('nonsense\r\n\r\n');
    else response.end('<html>');
  });
  t.true(isConnectionError(await failureOf(things.get('a')), 'BadAnswer'));
  raw = true;
  t.true(isConnectionError(await failureOf(things.get('a')), 'BadAnswer'));
});

test('warnings reach the listener, whatever characters they contain and however many a header contains', async (t) => {
  const warnings: string[] = [];
  const { things } = await fakeServer(
    t,
    (_request, response) =>
      sendJson(response, thing, 200, {
        Warning: [
          '299 - "one, \\"two\\" \\\\ three"',
          '299 agent "four" "Wed, 21 Oct 2026 07:28:00 GMT", 299 - "five"',
          '110 - "stale"',
        ],
      }),
    { onWarning: (text) => warnings.push(text) },
  );
  await things.get('a');
  t.deepEqual(warnings, ['one, "two" \\ three', 'four', 'five']);
});

test('the token source is called for every request; without a token no request is sent', async (t) => {
  const tokens = ['one\n', 'two'];
  const { things, seen } = await fakeServer(t, (_request, response) => sendJson(response, thing), {
    token: 'never',
    tokenProvider: async () => {
      const token = tokens.shift();
      if (token === undefined) throw new Error('no more');
      return token;
    },
  });
  await things.get('a');
  await things.get('a');
  t.deepEqual(
    seen.map(({ headers }) => headers.authorization),
    ['Bearer one', 'Bearer two'],
  );
  t.true(isConnectionError(await failureOf(things.delete('a')), 'Unreachable'));
  t.is(seen.length, 2);
});

test('contradictory options are rejected by the constructor', (t) => {
  t.throws(() => createHttpClient({ server: 'ftp://x' }), { message: /http:\/\/ or https:\/\// });
  t.throws(() => createHttpClient({ server: 'nonsense' }));
  t.throws(() => createHttpClient({ server: 'https://x', clientCertificate: 'c' }), {
    message: /must be specified together/,
  });
  t.throws(() => createHttpClient({ server: 'http://x', qps: 0 }), { message: /qps/ });
});
