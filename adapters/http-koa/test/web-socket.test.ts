import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { statusErrors } from '@keelson/core';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { type ClientOptions, WebSocket } from 'ws';
import { configMap, FakeRegistry } from './support/fake-registry.ts';
import { serveReal } from './support/real-plane.ts';
import { call, type ServeOptions, serve } from './support/serve.ts';
import { dialerTo, httpUpstream, runner, toAgent } from './support/upstream.ts';

const all = '/api/v1/namespaces/default/configmaps';
const log = '/api/v1/namespaces/default/pods/p/log';
/** What a browser offers to a server that it gives its bearer token. */
const token = 'base64url.bearer.authorization.k8s.io.c2VjcmV0';

interface Client {
  readonly socket: WebSocket;
  readonly messages: { readonly data: Buffer; readonly binary: boolean }[];
  /** Resolves with the code when the connection is closed. */
  readonly closed: Promise<number>;
}

async function connect(
  t: ExecutionContext,
  port: number,
  path: string,
  protocols: string[] = [],
  options: ClientOptions = {},
): Promise<Client> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, protocols, options);
  const messages: Client['messages'] = [];
  socket.on('message', (data, binary) => messages.push({ data: data as Buffer, binary }));
  const closed = once(socket, 'close').then(([code]) => code as number);
  t.teardown(() => socket.terminate());
  await once(socket, 'open');
  return { socket, messages, closed };
}

/** The response to a request for a WebSocket that is not accepted. */
async function refused(
  port: number,
  path: string,
  protocols: string[] = [],
): Promise<{ status: number; text: string }> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, protocols);
  const [, response] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage];
  let text = '';
  for await (const chunk of response) text += String(chunk);
  return { status: response.statusCode ?? 0, text };
}

const eventsOf = ({ messages }: Client) => messages.map(({ data }) => JSON.parse(data.toString()));

async function servePlane(t: ExecutionContext, options: ServeOptions = {}) {
  const served = await serveReal(t, options);
  served.api.acceptUpgrades(served.server);
  return served;
}

async function serveLogs(t: ExecutionContext, upstream: number) {
  const registry = new FakeRegistry([runner]);
  registry.service(runner).on.connect = toAgent as never;
  const served = await serve(t, { registry, nodeDialer: dialerTo(upstream) });
  served.api.acceptUpgrades(served.server);
  return served;
}

for (const [whose, agent] of [
  ['a browser', 'Mozilla/5.0 (X11; Linux x86_64)'],
  ['another client', 'test/1'],
] as const) {
  test(`a watch of ${whose} over a WebSocket has a text message for each event`, async (t) => {
    const { port } = await servePlane(t);
    for (const name of ['a', 'b']) await call(port, 'POST', all, { body: `{"metadata":{"name":"${name}"}}` });
    const watch = await connect(t, port, `${all}?watch=1`, [token, 'base64.binary.k8s.io'], {
      headers: { 'user-agent': agent },
    });
    t.is(watch.socket.protocol, 'base64.binary.k8s.io', 'the token is no subprotocol');
    await until(() => watch.messages.length === 2, 'both objects arrive');
    await call(port, 'PATCH', `${all}/a`, {
      body: '{"data":{"k":"line\\nline"}}',
      headers: { 'content-type': 'application/merge-patch+json' },
    });
    await call(port, 'DELETE', `${all}/b`);
    await until(() => watch.messages.length === 4, 'both changes arrive');
    t.true(watch.messages.every(({ binary }) => !binary));
    t.deepEqual(
      eventsOf(watch).map(({ type, object }) => [type, object.kind, object.metadata.name, object.data?.k]),
      [
        ['ADDED', 'ConfigMap', 'a', undefined],
        ['ADDED', 'ConfigMap', 'b', undefined],
        ['MODIFIED', 'ConfigMap', 'a', 'line\nline'],
        ['DELETED', 'ConfigMap', 'b', undefined],
      ],
    );
  });
}

test('a watch in protobuf over a WebSocket has a binary message for each event, without its length', async (t) => {
  const { port } = await servePlane(t);
  for (const name of ['a', 'b']) await call(port, 'POST', all, { body: `{"metadata":{"name":"${name}"}}` });
  const accept = 'application/vnd.kubernetes.protobuf;stream=watch';
  const watch = await connect(t, port, `${all}?watch=1`, [], { headers: { accept } });
  await until(() => watch.messages.length === 2, 'both objects arrive');
  for (const [index, { data, binary }] of watch.messages.entries()) {
    t.true(binary);
    // Field 1 of an event is its type, field 2 its object, which starts with the magic number of the encoding.
    t.is(data.subarray(0, 7).toString(), '\n\x05ADDED');
    t.true(data.includes('k8s\0'));
    t.true(data.includes(`\n\x01${'ab'[index]}`));
  }
});

test('a watch over a WebSocket ends after its timeout, when the server drains and when the client leaves', async (t) => {
  const { port, api } = await servePlane(t);
  const short = await connect(t, port, `${all}?watch=1&timeoutSeconds=1`);
  const drained = await connect(t, port, `${all}?watch=1`);
  const left = await connect(t, port, `${all}?watch=1`);
  left.socket.send('a message of a client is ignored');
  left.socket.close();
  t.is(await left.closed, 1005);
  t.is(await short.closed, 1000);
  await api.drain();
  t.is(await drained.closed, 1000);
});

test('a watch from a revision that is no longer in the history ends with one ERROR event', async (t) => {
  const registry = new FakeRegistry();
  const served = await serve(t, { registry });
  served.api.acceptUpgrades(served.server);
  registry.service(configMap).on.watch = async () => {
    throw statusErrors.expired('too old resource version: 1 (5)');
  };
  const watch = await connect(t, served.port, `${all}?watch=1&resourceVersion=1`);
  t.is(await watch.closed, 1000);
  t.like(eventsOf(watch)[0], { type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } });
  t.is(watch.messages.length, 1);
});

test('a WebSocket for what cannot be watched, or with an invalid handshake, is answered with a Status', async (t) => {
  const { port } = await servePlane(t);
  t.is((await refused(port, '/api/v1/namespaces/default/nothing?watch=1')).status, 404);
  t.is((await refused(port, `${all}?watch=1&labelSelector=%21%21`)).status, 400);
  const invalid = await call(port, 'GET', `${all}?watch=1`, {
    headers: { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': 'x' },
  });
  t.is(invalid.status, 400);
  t.is(invalid.json.message, 'unable to upgrade: Missing or invalid Sec-WebSocket-Key header');
  const list = await call(port, 'GET', all, { headers: { connection: 'Upgrade', upgrade: 'websocket' } });
  t.deepEqual([list.status, list.json.kind], [200, 'ConfigMapList'], 'a list is answered over HTTP');
});

test('a log over a WebSocket has binary messages, or base64 in text when the client offers that', async (t) => {
  let upgrade: string | undefined;
  const upstream = await httpUpstream(t, (request, response) => {
    upgrade = request.headers.upgrade;
    response.write('first\n');
    setImmediate(() => response.end('second \xff\n', 'latin1'));
  });
  const { port } = await serveLogs(t, upstream);
  for (const protocols of [[], ['binary.k8s.io'], ['unknown', 'base64.binary.k8s.io', 'binary.k8s.io']]) {
    const client = await connect(t, port, `${log}?container=main`, protocols);
    t.is(await client.closed, 1000);
    const text = protocols.includes('base64.binary.k8s.io');
    t.is(client.socket.protocol, text ? 'base64.binary.k8s.io' : (protocols[0] ?? ''));
    const parts = client.messages.map(({ data }) => (text ? Buffer.from(data.toString(), 'base64') : data));
    t.is(Buffer.concat(parts).toString('latin1'), 'first\nsecond \xff\n');
    t.is(client.messages[0]?.data.length, 0);
    t.true(client.messages.every(({ binary }) => binary === !text));
  }
  t.is(upgrade, undefined, 'the agent receives an ordinary request');
});

test('a log over a WebSocket that is missing, or with other subprotocols, is answered with a Status', async (t) => {
  const upstream = await httpUpstream(t, ({ url }, response) =>
    url?.includes('missing') ? response.writeHead(404).end('no such container') : response.end('a line\n'),
  );
  const { port } = await serveLogs(t, upstream);
  const missing = await refused(port, `${log}?container=missing`);
  t.is(missing.status, 404);
  t.regex(missing.text, /no such container/);
  const unknown = await refused(port, log, ['one', 'two']);
  t.is(unknown.status, 400);
  t.regex(unknown.text, /client supports \[one two\], server accepts \[binary\.k8s\.io base64\.binary\.k8s\.io\]/);
});

test('a client of a followed log that leaves ends the request to the agent', async (t) => {
  let ended = false;
  const upstream = await httpUpstream(t, (request, response) => {
    response.write('first\n');
    request.once('close', () => {
      ended = true;
    });
  });
  const { port } = await serveLogs(t, upstream);
  const client = await connect(t, port, `${log}?follow=true`);
  await until(() => client.messages.length === 2, 'the first line arrives');
  client.socket.terminate();
  await until(() => ended, 'the request to the agent has ended');
  t.pass();
});
