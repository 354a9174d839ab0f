import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { SpdyClient } from '@keelson/container-streams';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { openStreamServer } from '../support/stream-server.ts';
import { openTunnel } from '../support/tunnel.ts';

const path = '/portForward/default/web';
const protocol = 'portforward.k8s.io';

/** A port at which each connection is served by the test. */
async function listening(t: ExecutionContext, serve: (socket: Socket) => void): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {});
    t.teardown(() => socket.destroy());
    serve(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

const upperCase = (socket: Socket) =>
  socket.on('data', (chunk) => socket.write(String(chunk).toUpperCase())).on('end', () => socket.end('.'));

/** A node whose pods have the ports of this machine. */
function forwarding(t: ExecutionContext, words: readonly string[] = []) {
  const open = async (port: number) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    await once(socket, 'connect').catch(() => {
      throw new Error(`nobody listens at ${port}`);
    });
    return socket;
  };
  return openStreamServer(t, { portForward: () => open }, words);
}

async function request(client: SpdyClient, port: number, requestID?: string) {
  const headers = { port: String(port), ...(requestID === undefined ? {} : { requestID }) };
  const error = await client.open({ streamtype: 'error', ...headers });
  error.send('', true);
  const data = await client.open({ streamtype: 'data', ...headers });
  await Promise.all([error.answered, data.answered]);
  return { error, data };
}

test('SPDY: several ports are forwarded concurrently, and each direction ends independently', async (t) => {
  const [first, second] = [await listening(t, upperCase), await listening(t, upperCase)];
  const server = await forwarding(t);
  const client = await server.spdy(path, protocol);
  t.is(client.protocol, protocol);
  const asked = [
    await request(client, first, '0'),
    await request(client, second, '1'),
    await request(client, first, '2'),
  ];
  for (const [index, { data }] of asked.entries()) data.send(`text ${index}`, true);
  for (const [index, { data, error }] of asked.entries()) {
    t.is(await text(data.incoming), `TEXT ${index}.`);
    t.is(await text(error.incoming), '');
  }
  const later = await request(client, second, '3');
  later.data.send('on', true);
  t.is(await text(later.data.incoming), 'ON.');
});

test('SPDY: old clients send no request ID; the error stream is opened first', async (t) => {
  const port = await listening(t, upperCase);
  const client = await (await forwarding(t)).spdy(path, protocol);
  const { data } = await request(client, port);
  data.send('old', true);
  t.is(await text(data.incoming), 'OLD.');
});

test('SPDY: a port without a listener is reported on the error stream, and the other connections continue', async (t) => {
  const port = await listening(t, upperCase);
  const client = await (await forwarding(t)).spdy(`${path}/u1`, protocol);
  const bad = await request(client, 1, '0');
  t.is(await text(bad.error.incoming), 'error forwarding port 1 to pod web, uid u1: nobody listens at 1');
  t.is(await text(bad.data.incoming), '');
  const good = await request(client, port, '1');
  good.data.send('x', true);
  t.is(await text(good.data.incoming), 'X.');
});

test('SPDY: streams with an invalid port or type, duplicates and, after a timeout, unpaired streams are rejected', async (t) => {
  const server = await forwarding(t);
  const client = await server.spdy(path, protocol);
  for (const headers of [
    { streamtype: 'data', port: '0', requestID: '9' },
    { streamtype: 'data', port: '65536', requestID: '9' },
    { streamtype: 'data', port: 'http', requestID: '9' },
    { streamtype: 'data', requestID: '9' },
    { streamtype: 'stdin', port: '80', requestID: '9' },
    { port: '80', requestID: '9' },
  ])
    await (await client.open(headers as unknown as Record<string, string>)).reset;
  const error = await client.open({ streamtype: 'error', port: '80', requestID: '1' });
  await error.answered;
  await (await client.open({ streamtype: 'error', port: '80', requestID: '1' })).reset;
  await (await client.open({ streamtype: 'data', port: '81', requestID: '1' })).reset;
  server.clock.advance(30_000);
  t.is(await text(error.incoming), 'timed out waiting for the other stream of the request');
});

test('a client that resets its stream or disconnects closes the connections to the pod', async (t) => {
  const open: Socket[] = [];
  const port = await listening(t, (socket) => void open.push(socket));
  const server = await forwarding(t);
  const client = await server.spdy(path, protocol);
  const { data, error } = await request(client, port, '0');
  await request(client, port, '1');
  await until(() => open.length === 2);
  for (const socket of open) socket.resume();
  data.resetIt();
  t.is(await text(error.incoming), '');
  await until(() => open.filter((socket) => socket.readableEnded || socket.destroyed).length === 1);
  client.socket.destroy();
  await until(() => open.every((socket) => socket.readableEnded || socket.destroyed));
  const channels = await server.webSocket(`${path}?port=${port}`, 'v4.channel.k8s.io');
  await until(() => open.length === 3);
  channels.socket.terminate();
  open[2]!.resume();
  await until(() => open[2]!.readableEnded || open[2]!.destroyed);
  t.pass();
});

test('SPDY through a WebSocket forwards ports in the same way', async (t) => {
  const port = await listening(t, upperCase);
  const server = await forwarding(t);
  const tunnel = await openTunnel(t, server.port, path, 'SPDY/3.1+portforward.k8s.io');
  t.is(tunnel.protocol, 'SPDY/3.1+portforward.k8s.io');
  const client = new SpdyClient(tunnel.stream, Buffer.alloc(0), undefined);
  const { data, error } = await request(client, port, '0');
  const much = 'x'.repeat(300_000);
  data.send(much, true);
  t.is(await text(data.incoming), `${much.toUpperCase()}.`);
  t.is(await text(error.incoming), '');
});

const withPort = (port: number, content = '') =>
  Buffer.concat([Buffer.of(port & 255, port >> 8), Buffer.from(content)]).toString('latin1');

test('a WebSocket has two channels for each port, whose first message is the port number', async (t) => {
  const goodBye = (socket: Socket) => socket.on('data', (chunk) => socket.end(`${chunk} and good bye`));
  const [first, second] = [await listening(t, goodBye), await listening(t, goodBye)];
  const server = await forwarding(t);
  for (const [query, ...offered] of [
    [`port=${first}&port=${second}`, 'v4.channel.k8s.io'],
    [`ports=${first},${second}`, 'v5.channel.k8s.io', 'v4.channel.k8s.io'],
    [`ports=${first}&ports=${second}`, 'v4.base64.channel.k8s.io'],
    [`port=${first}&port=${second}`],
  ] as const) {
    const client = await server.webSocket(`${path}?${query}`, ...offered);
    client.send(0, 'one');
    client.send(2, 'two');
    t.is(await client.closed, 1000);
    t.deepEqual(
      [0, 1, 2, 3].map((channel) => client.bytes(channel).toString('latin1')),
      [withPort(first, 'one and good bye'), withPort(first), withPort(second, 'two and good bye'), withPort(second)],
      query,
    );
  }
});

test('a WebSocket reports a port without a listener on its error channel, and closes when all ports are done', async (t) => {
  const port = await listening(t, (socket) => socket.on('data', () => socket.end('bye')));
  const client = await (await forwarding(t)).webSocket(`${path}?port=1&port=${port}`, 'v4.channel.k8s.io');
  await until(() => client.bytes(1).length > 2);
  t.is(client.bytes(1).toString('utf8', 2), 'error forwarding port 1 to pod web, uid : nobody listens at 1');
  client.send(0, 'for nobody');
  client.send(2, 'hello');
  t.is(await client.closed, 1000);
  t.is(client.messages.at(-1)?.content.toString(), 'bye');
});

test('a request that cannot be forwarded is rejected before the upgrade', async (t) => {
  const server = await forwarding(t);
  const ws = (query: string, ...offered: string[]) => server.webSocket(path + query, ...offered);
  await t.throwsAsync(ws('', 'v4.channel.k8s.io'), { message: /^400 the query must name a port/ });
  await t.throwsAsync(ws('?port=0', 'v4.channel.k8s.io'), { message: '400 port must be 1 to 65535, not "0"' });
  await t.throwsAsync(ws('?port=80,x', 'v4.channel.k8s.io'), { message: '400 port must be 1 to 65535, not "x"' });
  await t.throwsAsync(ws(`?ports=${'80,'.repeat(100)}80`, 'v4.channel.k8s.io'), { message: /^400 at most 100 ports/ });
  await t.throwsAsync(ws('?port=80', 'v5.channel.k8s.io'), { message: /^400 unable to upgrade/ });
  await t.throwsAsync(server.spdy(path, 'v4.channel.k8s.io'), {
    message: /^403 unable to upgrade: .*server accepts \[portforward.k8s.io\]/,
  });
  await t.throwsAsync(server.spdy(path), { message: /^403 unable to upgrade/ });
  t.is((await server.ask(path)).status, 400);
  t.is((await server.ask('/portForward/default')).status, 400);
  t.is((await server.ask('/portForward/default/web/uid/more')).status, 400);
});

test('--streaming-connection-idle-timeout: idle forwarded ports are closed too', async (t) => {
  const port = await listening(t, (socket) => void socket.pipe(socket));
  const server = await forwarding(t, ['--streaming-connection-idle-timeout=1m']);
  const spdy = await server.spdy(path, protocol);
  const { data } = await request(spdy, port, '0');
  const socket = await server.webSocket(`${path}?port=${port}`, 'v4.channel.k8s.io');
  server.clock.advance(59_000);
  data.send('x');
  await once(data.incoming, 'data');
  socket.send(0, 'x');
  // The number of the port, and what came back.
  await until(() => socket.bytes(0).length > 2);
  server.clock.advance(59_000);
  spdy.ping(1);
  await until(() => spdy.pongs.length > 0);
  t.is(socket.socket.readyState, socket.socket.OPEN);
  server.clock.advance(1000);
  await Promise.all([spdy.closed, socket.closed]);
  t.pass();
});
