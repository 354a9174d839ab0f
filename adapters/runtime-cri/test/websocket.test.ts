import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { type WebSocket, WebSocketServer } from 'ws';
import { forwardBySpdy, forwardByWebSocket } from '../src/streaming/port-forward.ts';
import { UpgradeRefused } from '../src/streaming/spdy-connection.ts';
import { openWebSocketSession } from '../src/streaming/websocket-session.ts';

const success = JSON.stringify({ status: 'Success' });
const onChannel = (channel: number, content: string) => Buffer.concat([Buffer.of(channel), Buffer.from(content)]);

/** A streaming server that has WebSockets of one protocol, and nothing else. */
async function streamingServer(
  t: ExecutionContext,
  protocol: string,
  serve: (socket: WebSocket, url: string) => void,
): Promise<string> {
  const server = createServer((_request, response) => response.writeHead(400).end());
  const sockets = new WebSocketServer({
    server,
    handleProtocols: (offered) => (offered.has(protocol) ? protocol : false),
  });
  sockets.on('connection', (socket, request) => serve(socket, request.url ?? ''));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.teardown(() => {
    for (const socket of sockets.clients) socket.terminate();
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/exec/token`;
}

/** Echoes its input; ends at the end of input. */
function echo(socket: WebSocket): void {
  socket.on('message', (data: Buffer) => {
    if (data[0] === 0) socket.send(Buffer.concat([Buffer.of(1), data.subarray(1)]));
    else if (data[0] === 4) socket.send(onChannel(2, data.subarray(1).toString()));
    else if (data[0] === 255 && data[1] === 0) {
      socket.send(onChannel(3, success));
      socket.close();
    }
  });
}

const request = { stdin: true, stdout: true, stderr: true, tty: false };

test('with the v5 protocol the end of input does not end the session', async (t) => {
  const url = await streamingServer(t, 'v5.channel.k8s.io', echo);
  const { session, halfCloses } = await openWebSocketSession(url, request, undefined);
  t.true(halfCloses);
  session.stderr?.resume();
  session.stdin?.end('text');
  t.is(await text(session.stdout ?? Readable.from([])), 'text');
  t.deepEqual(await session.end, { exitCode: 0 });
});

test('the v4 protocol is used where v5 is not supported, and terminal sizes are sent on their own channel', async (t) => {
  const url = await streamingServer(t, 'v4.channel.k8s.io', echo);
  const { session, halfCloses } = await openWebSocketSession(url, request, undefined);
  t.false(halfCloses);
  session.resize({ width: 80, height: 24 });
  const [size] = await once(session.stderr ?? process, 'data');
  t.deepEqual(JSON.parse(String(size)), { Width: 80, Height: 24 });
  session.close();
  t.is(await session.end, undefined, 'an aborted session has no exit code');
});

test('output that is not read yet is buffered, and all of it precedes the end', async (t) => {
  const url = await streamingServer(t, 'v4.channel.k8s.io', (socket) => {
    for (let count = 0; count < 200; count += 1) socket.send(onChannel(1, 'x'.repeat(10_000)));
    socket.send(onChannel(3, success));
    socket.close();
  });
  const { session } = await openWebSocketSession(url, { ...request, stdin: false, stderr: false }, undefined);
  t.is((await text(session.stdout ?? Readable.from([]))).length, 2_000_000);
  t.deepEqual(await session.end, { exitCode: 0 });
});

test('a rejected or aborted handshake is an error', async (t) => {
  const url = await streamingServer(t, 'other', () => {});
  await t.throwsAsync(openWebSocketSession(url, request, undefined));
  const silent = createServer();
  silent.on('upgrade', () => {});
  await once(silent.listen(0, '127.0.0.1'), 'listening');
  const controller = new AbortController();
  const opening = openWebSocketSession(
    `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`,
    request,
    controller.signal,
  );
  controller.abort();
  await t.throwsAsync(opening);
  silent.closeAllConnections();
  silent.close();
});

test('ports are forwarded over WebSocket where the server does not support SPDY', async (t) => {
  const url = await streamingServer(t, 'v4.channel.k8s.io', (socket, path) => {
    const port = Number(new URL(path, 'http://x').searchParams.get('port'));
    const begin = Buffer.from([port & 255, port >> 8]);
    socket.send(Buffer.concat([Buffer.of(0), begin]));
    socket.send(Buffer.concat([Buffer.of(1), begin]));
    if (port === 81) {
      socket.send(onChannel(1, 'connection refused'));
      return;
    }
    socket.on('message', (data: Buffer) => {
      socket.send(Buffer.concat([Buffer.of(0), Buffer.from('got '), data.subarray(1)]));
      socket.close();
    });
  });
  await t.throwsAsync(forwardBySpdy(url, 80, undefined), { instanceOf: UpgradeRefused });
  const connection = await forwardByWebSocket(url, 80, undefined);
  connection.write('hello');
  t.is(await text(connection), 'got hello');
  await t.throwsAsync(text(await forwardByWebSocket(url, 81, undefined)), { message: 'connection refused' });
});
