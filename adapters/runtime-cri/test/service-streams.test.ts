import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { isRuntimeError, type ProcessStreams, type StreamRequest, type TerminalSize } from '@keelson/container-runtime';
import { upgradeToProcess } from '@keelson/container-streams';
import { FakeClock } from '@keelson/core/runtime';
import test, { type ExecutionContext } from 'ava';
import { WebSocket } from 'ws';
import { type StreamOffer, StreamServer } from '../src/service/stream-handlers.ts';
import { forwardBySpdy } from '../src/streaming/port-forward.ts';
import { openWebSocketSession } from '../src/streaming/websocket-session.ts';

function streamServer(t: ExecutionContext, clock = new FakeClock()) {
  const server = new StreamServer({ clock });
  t.teardown(() => server.close());
  return { server, clock };
}

const terminal = { stdin: true, stdout: true, stderr: false, tty: true };

/** Offers a process; each request of the URL starts one. */
function processOffer(begin: () => Promise<ProcessStreams>, request: StreamRequest = terminal): StreamOffer {
  const task = { begin, endOf: (exitCode: number) => ({ exitCode }), failure: 'error executing command in container' };
  return { kind: 'exec', serve: (upgrade, _query, limits) => upgradeToProcess(upgrade, request, task, limits) };
}

const anyOffer = processOffer(() => new Promise(() => {}));

/** The result of an upgrade request: `open`, or the status code of the rejection. */
async function requestUpgrade(url: string, protocols = ['v5.channel.k8s.io']): Promise<string> {
  const socket = new WebSocket(url.replace(/^http/, 'ws'), protocols);
  const opened = once(socket, 'open').then(() => 'open');
  const refused = once(socket, 'unexpected-response').then(([request, response]) => {
    request.destroy();
    return String(response.statusCode);
  });
  const answer = await Promise.race([opened, refused]).finally(() => socket.on('error', () => {}));
  socket.terminate();
  opened.catch(() => {});
  refused.catch(() => {});
  return answer;
}

test('a stream URL is valid for one request, of its own kind, within a minute', async (t) => {
  const { server, clock } = streamServer(t);
  const url = await server.offer(anyOffer);
  t.regex(url, /^http:\/\/127\.0\.0\.1:\d+\/cri\/exec\/[\w-]{22}$/);
  t.is(await requestUpgrade(url), 'open');
  t.is(await requestUpgrade(url), '404');
  t.is(await requestUpgrade((await server.offer(anyOffer)).replace('/exec/', '/attach/')), '404');
  const late = await server.offer(anyOffer);
  const inTime = await server.offer(anyOffer);
  clock.advance(59_999);
  t.is(await requestUpgrade(inTime), 'open');
  clock.advance(1);
  t.is(await requestUpgrade(late), '404');
});

test('a request without an upgrade, or with unsupported protocols, is rejected and invalidates the URL', async (t) => {
  const { server } = streamServer(t);
  const plain = await server.offer(anyOffer);
  t.is((await fetch(plain)).status, 400);
  t.is((await fetch(plain)).status, 404);
  t.is(await requestUpgrade(await server.offer(anyOffer), ['v1.other']), '400');
  await t.throwsAsync(forwardBySpdy(await server.offer(anyOffer), 80, undefined), {
    message: /responded with 403 to the upgrade/,
  });
});

test('unused stream URLs are limited in number, and none is issued after the service has closed', async (t) => {
  const { server } = streamServer(t);
  for (let count = 0; count < 1000; count += 1) await server.offer(anyOffer);
  t.true(isRuntimeError(await t.throwsAsync(server.offer(anyOffer)), 'Unavailable'));
  await server.close();
  t.true(isRuntimeError(await t.throwsAsync(server.offer(anyOffer)), 'Unavailable'));
});

/** A promise, and the function that fulfils it. */
function latch<T>() {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((fulfil) => {
    resolve = fulfil;
  });
  return { promise, resolve };
}

function someProcess() {
  const sizes: TerminalSize[] = [];
  const stdin = new PassThrough();
  const stdout = new PassThrough();
  const ended = latch<{ exitCode: number }>();
  const closed = latch<void>();
  const streams: ProcessStreams = {
    stdin,
    stdout,
    resize: (size) => sizes.push(size),
    ended: ended.promise,
    close: () => closed.resolve(),
  };
  return { streams, sizes, stdin, stdout, ended, closed: closed.promise };
}

test('input, its end, terminal sizes and the exit code are transmitted, and all output precedes the end', async (t) => {
  const { server } = streamServer(t);
  const process = someProcess();
  const url = await server.offer(processOffer(async () => process.streams));
  const { session, halfCloses } = await openWebSocketSession(url, terminal, undefined);
  t.true(halfCloses);
  session.resize({ width: 80, height: 25 });
  session.stdin?.end('words');
  t.is(await text(process.stdin), 'words');
  t.deepEqual(process.sizes, [{ width: 80, height: 25 }]);
  process.ended.resolve({ exitCode: 7 });
  const output = 'x'.repeat(1 << 20);
  process.stdout.end(output);
  t.is((await text(session.stdout ?? new PassThrough())).length, output.length);
  t.deepEqual(await session.end, { exitCode: 7 });
  await process.closed;
});

test('a client that disconnects releases the process, and a process that cannot be started is reported', async (t) => {
  const { server } = streamServer(t);
  const process = someProcess();
  const served = await server.offer(processOffer(async () => process.streams));
  const { session } = await openWebSocketSession(served, terminal, undefined);
  session.close();
  await process.closed;
  t.deepEqual(await session.end, undefined);
  const refused = await server.offer(processOffer(() => Promise.reject(new Error('no such file'))));
  const { session: other } = await openWebSocketSession(refused, terminal, undefined);
  other.stdout?.resume();
  t.deepEqual(await other.end, { exitCode: 127 });
});
