import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { statusErrors } from '@keelson/core';
import type { RequestAttributes } from '@keelson/core/internal';
import { FakeClock } from '@keelson/core/runtime';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { FakeRegistry } from './support/fake-registry.ts';
import { call, open, type ServeOptions, serve } from './support/serve.ts';
import { dialerTo, httpUpstream, rawUpstream, runner, textOf, toAgent } from './support/upstream.ts';

const log = '/api/v1/namespaces/default/pods/p/log';
const proxy = '/api/v1/namespaces/default/pods/p/proxy';

/** A server that forwards connect requests to this port. */
async function serveForwarding(t: ExecutionContext, port: number, options: ServeOptions = {}) {
  const registry = new FakeRegistry([runner]);
  const service = registry.service(runner);
  service.on.connect = toAgent as never;
  return { service, ...(await serve(t, { registry, nodeDialer: dialerTo(port), ...options })) };
}

test('a response is forwarded with its status and headers, a request with its query; hop-by-hop headers are not', async (t) => {
  let seen: { url: string | undefined; headers: NodeJS.Dict<string | string[]>; body: string } | undefined;
  const headersOfAnswer = [
    'Content-Type',
    'text/csv',
    'Vary',
    'a',
    'Vary',
    'b',
    'Connection',
    'retry-after',
    'Retry-After',
    '1',
  ];
  const upstream = await httpUpstream(t, (request, response) => {
    void textOf(request).then((body) => {
      seen = { url: request.url, headers: request.headers, body };
      response.writeHead(202, headersOfAnswer).end('done');
    });
  });
  const { port, service } = await serveForwarding(t, upstream);
  const headers = {
    authorization: 'Bearer secret',
    'x-own': 'kept',
    connection: 'x-mine',
    'x-mine': 'gone',
    te: 'trailers',
  };
  const reply = await call(port, 'POST', `${proxy}/a//b%20c/?x=1&x=2&timeout=1ms`, { headers, body: 'question' });
  t.deepEqual([reply.status, reply.text, reply.headers['content-type']], [202, 'done', 'text/csv']);
  t.is(reply.headers.vary, 'a, b');
  t.is(reply.headers['retry-after'], undefined);
  t.truthy(reply.headers['audit-id']);
  t.is(seen?.url, '/proxy/a//b%20c/?x=1&x=2&timeout=1ms');
  t.deepEqual([seen?.body, seen?.headers['x-own']], ['question', 'kept']);
  t.deepEqual(
    [seen?.headers['authorization'], seen?.headers['x-mine'], seen?.headers['te']],
    [undefined, undefined, undefined],
  );
  t.deepEqual(service.calls[0]?.args[1], { namespace: 'default', name: 'p' });
  const { status } = await call(port, 'OPTIONS', proxy);
  t.is(status, 202, 'a proxied path accepts any method');
  t.is((await call(port, 'HEAD', proxy)).text, '');
});

test('a body is never parsed as another request, and credentials and impersonation are not forwarded', async (t) => {
  const heads: string[] = [];
  const upstream = await rawUpstream(t, (socket, head) => {
    heads.push(head);
    socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
  });
  const { port } = await serveForwarding(t, upstream, { authorize: () => true });
  const body = 'GET /exec HTTP/1.1\r\n\r\n';
  const secrets = { authorization: 'Bearer x', 'impersonate-user': 'jane', 'impersonate-group': 'a' };
  await call(port, 'GET', log, { headers: { ...secrets, connection: 'content-length' }, body });
  await call(port, 'GET', log, { headers: { 'transfer-encoding': 'chunked' }, body });
  await call(port, 'POST', proxy);
  t.regex(heads[0] ?? '', /\r\ncontent-length: 22\r\n/i);
  t.notRegex(heads[0] ?? '', /authorization|impersonate/i);
  t.regex(heads[1] ?? '', /\r\ntransfer-encoding: chunked\r\n/i);
  t.notRegex(heads[1] ?? '', /content-length/i);
  t.regex(heads[2] ?? '', /\r\ncontent-length: 0\r\n/i);
});

test('a followed log is streamed as it is written, and a disconnect of the client closes the upstream request', async (t) => {
  let answer: ServerResponse | undefined;
  let closed = false;
  const upstream = await httpUpstream(t, (_request, response) => {
    answer = response;
    response.once('close', () => {
      closed = true;
    });
    response.writeHead(200, { 'Content-Type': 'text/plain' });
    response.flushHeaders();
  });
  const { port } = await serveForwarding(t, upstream);
  const reply = await open(port, 'GET', `${log}?follow=true`);
  t.is(reply.statusCode, 200, 'before any output');
  for (const line of ['one\n', 'two\n']) {
    answer?.write(line);
    const [chunk] = await once(reply, 'data');
    t.is(String(chunk), line);
  }
  reply.destroy();
  await until(() => closed, 'the upstream request is closed');
});

test('a client that does not read exerts back pressure on the upstream', async (t) => {
  const size = 64 * 1024 * 1024;
  let written = 0;
  const upstream = await httpUpstream(t, (_request, response) => {
    const chunk = Buffer.alloc(256 * 1024);
    const write = (): void => {
      while (written < size) {
        written += chunk.length;
        if (!response.write(chunk)) return void response.once('drain', write);
      }
      response.end();
    };
    write();
  });
  const { port } = await serveForwarding(t, upstream);
  const reply = await open(port, 'GET', log);
  let before = -1;
  await until(() => {
    const still = written > 0 && written === before;
    before = written;
    return still;
  }, 'the upstream stops writing');
  t.true(written < size);
  let received = 0;
  for await (const chunk of reply) received += (chunk as Buffer).length;
  t.is(received, size);
});

test('an error of an agent becomes a Status, also behind the node proxy', async (t) => {
  const upstream = await httpUpstream(t, (request, response) => {
    const code = Number(new URL(request.url ?? '', 'http://x').searchParams.get('code'));
    response.writeHead(code, { 'Content-Type': 'text/plain' }).end('container "c" not found\n');
  });
  const { port } = await serveForwarding(t, upstream);
  const missing = await call(port, 'GET', `${log}?code=404`);
  t.is(missing.status, 404);
  t.like(missing.json, { kind: 'Status', reason: 'NotFound', message: 'container "c" not found', code: 404 });
  const refused = await call(port, 'GET', `${log}?code=401`);
  t.is(refused.status, 503, 'the client is not at fault');
  t.regex(refused.json.message, /^the agent of node "n" at 127\.0\.0\.1:\d+ rejects this server with 401: container/);
  const proxied = await call(port, 'GET', `${proxy}?code=404`);
  t.like(proxied.json, { kind: 'Status', reason: 'NotFound', message: 'container "c" not found', code: 404 });
});

test('an unreachable, silent or disconnecting agent is reported with its address', async (t) => {
  const clock = new FakeClock();
  const silent = await rawUpstream(t, () => {});
  const { port, service } = await serveForwarding(t, silent, { clock });
  const waiting = call(port, 'GET', log);
  await until(() => service.calls.length === 1, 'the request is forwarded');
  // Deadlines of running requests are checked every second.
  let answered = false;
  void waiting.finally(() => {
    answered = true;
  });
  await until(() => {
    clock.advance(1000);
    return answered;
  }, 'the deadline has passed');
  t.like((await waiting).json, {
    code: 504,
    message: `Timeout: the agent of node "n" at 127.0.0.1:${silent} did not answer within 30 s`,
  });

  const disconnecting = await rawUpstream(t, (socket) => socket.destroy());
  const disconnected = await call((await serveForwarding(t, disconnecting)).port, 'GET', log);
  t.like(disconnected.json, {
    code: 503,
    message: `the agent of node "n" at 127.0.0.1:${disconnecting} cannot be reached: socket hang up`,
  });

  const unreachable = await call((await serveForwarding(t, 1)).port, 'GET', log);
  t.like(unreachable.json, { code: 503, reason: 'ServiceUnavailable' });
  t.regex(unreachable.json.message, /^the agent of node "n" at 127\.0\.0\.1:1 cannot be reached: connect ECONNREFUSED/);
  const withoutDialer = await call((await serveForwarding(t, 1, { nodeDialer: undefined as never })).port, 'GET', log);
  t.like(withoutDialer.json, {
    code: 503,
    message: 'this server cannot connect to nodes, so it cannot reach node "n"',
  });
});

test('an upstream response that ends early is aborted for the client too', async (t) => {
  const upstream = await rawUpstream(t, (socket) => {
    socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf');
  });
  const { port } = await serveForwarding(t, upstream);
  const reply = await open(port, 'GET', log);
  await t.throwsAsync(async () => {
    for await (const _chunk of reply);
  });
});

test('the log of a pod without a node is empty, that of a missing pod is 404', async (t) => {
  const { port, service } = await serveForwarding(t, 1);
  service.on.connect = async () => ({ to: 'nothing' });
  const reply = await call(port, 'GET', log);
  t.deepEqual([reply.status, reply.text, reply.headers['content-type']], [200, '', 'text/plain']);
  service.on.connect = async () => {
    throw statusErrors.notFound({ group: '', resource: 'pods' }, 'p');
  };
  t.is((await call(port, 'GET', log)).status, 404);
});

test('unsupported methods of connect subresources are 405, and paths below a log are 404', async (t) => {
  const { port, service } = await serveForwarding(t, 1);
  const refused = await call(port, 'POST', log);
  t.deepEqual([refused.status, refused.headers['allow']], [405, 'GET']);
  t.is((await call(port, 'GET', `${log}/more`)).status, 404);
  t.is((await call(port, 'GET', '/api/v1/proxy/namespaces/default/pods/p')).status, 404, 'the legacy path of proxies');
  t.deepEqual(service.calls, []);
});

test('loopback and link-local addresses are rejected as targets of a proxy', async (t) => {
  const { port, service } = await serveForwarding(t, 1);
  for (const host of ['127.0.0.1', '::1', '0.0.0.0', '169.254.169.254', '::ffff:127.0.0.1', 'fe80::1', 'localhost']) {
    service.on.connect = async () => ({ to: 'address', host, port: 1, scheme: 'http', path: '/', query: '' });
    const reply = await call(port, 'GET', proxy);
    t.like(reply.json, { code: 400, message: `address not allowed: ${host}` }, host);
  }
});

test('connect requests are authorized with their own verb and name, before anything else is checked', async (t) => {
  const authorized: Pick<RequestAttributes, 'verb' | 'resource' | 'subresource' | 'name'>[] = [];
  const { port, service } = await serveForwarding(t, 1, {
    authorize: ({ verb, resource, subresource, name }) => {
      authorized.push({ verb, resource, subresource, name });
      return false;
    },
  });
  const exec = '/api/v1/namespaces/default/pods/p/exec';
  t.is((await call(port, 'GET', log)).status, 403);
  await call(port, 'GET', exec);
  await call(port, 'POST', exec);
  await call(port, 'DELETE', '/api/v1/namespaces/default/pods/https:p:8443/proxy/x/');
  const pods = { resource: 'pods', name: 'p' };
  t.deepEqual(authorized, [
    { ...pods, verb: 'get', subresource: 'log' },
    { ...pods, verb: 'get', subresource: 'exec' },
    { ...pods, verb: 'create', subresource: 'exec' },
    { ...pods, verb: 'delete', subresource: 'proxy', name: 'https:p:8443' },
  ]);
  t.deepEqual(service.calls, []);
});

test('connect requests have a limit of their own, take no seats of other requests, and outlive their deadline', async (t) => {
  const clock = new FakeClock();
  const answers: ServerResponse[] = [];
  const upstream = await httpUpstream(t, (_request, response) => {
    answers.push(response);
    response.writeHead(200).flushHeaders();
  });
  const user = { name: 'jane', groups: ['system:authenticated'] };
  const { port } = await serveForwarding(t, upstream, {
    clock,
    insecureUser: user,
    authorize: () => true,
    limits: { requestsInFlight: 1, connects: 2 },
  });
  const first = await open(port, 'GET', `${log}?follow=true`);
  const second = await open(port, 'GET', `${log}?follow=true`);
  t.is((await call(port, 'GET', log)).status, 429);
  t.is((await call(port, 'GET', '/api/v1/namespaces/default/pods')).status, 200);
  for (let i = 0; i < 120; i += 1) clock.advance(1000);
  for (const answer of answers) answer.end('still here');
  for (const reply of [first, second]) {
    t.is(await textOf(reply), 'still here');
  }
});

test('draining aborts followed logs', async (t) => {
  const upstream = await httpUpstream(t, (_request, response) => response.writeHead(200).flushHeaders());
  const { api, port } = await serveForwarding(t, upstream);
  const reply = await open(port, 'GET', `${log}?follow=true`);
  const cut = t.throwsAsync(async () => {
    for await (const _chunk of reply);
  });
  await api.drain();
  await cut;
});
