import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { isRuntimeError, type ProcessStreams, type TerminalSize } from '@keelson/container-runtime';
import { FakeClock } from '@keelson/core';
import test, { type ExecutionContext } from 'ava';
import { WebSocket } from 'ws';
import { processProtocols, serveProcess } from '../src/service/streams/serve-process.ts';
import { StreamServer } from '../src/service/streams/stream-server.ts';
import { forwardBySpdy } from '../src/streaming/port-forward.ts';
import { UpgradeRefused } from '../src/streaming/spdy-connection.ts';
import { openWebSocketSession } from '../src/streaming/websocket-session.ts';

function streamServer(t: ExecutionContext, clock = new FakeClock()) {
  const server = new StreamServer({ clock });
  t.teardown(() => server.close());
  return { server, clock };
}

const greeting = {
  kind: 'exec',
  protocols: processProtocols,
  serve: (socket: WebSocket) => {
    socket.send('hello');
    socket.close();
  },
};

/** What comes of a visit: the first message, or the status of the refusal. */
async function visit(url: string, protocols = processProtocols): Promise<string> {
  const socket = new WebSocket(url.replace(/^http/, 'ws'), protocols);
  const greeted = once(socket, 'message').then(([data]) => String(data));
  const refused = once(socket, 'unexpected-response').then(([request, response]) => {
    request.destroy();
    return String(response.statusCode);
  });
  const answer = await Promise.race([greeted, refused]).finally(() => socket.on('error', () => {}));
  socket.terminate();
  greeted.catch(() => {});
  refused.catch(() => {});
  return answer;
}

test('an address is good for one use, of its own kind, within a minute', async (t) => {
  const { server, clock } = streamServer(t);
  const url = await server.offer(greeting);
  t.regex(url, /^http:\/\/127\.0\.0\.1:\d+\/cri\/exec\/[\w-]{22}$/);
  t.is(await visit(url), 'hello');
  t.is(await visit(url), '404');
  t.is(await visit((await server.offer(greeting)).replace('/exec/', '/attach/')), '404');
  const late = await server.offer(greeting);
  const intime = await server.offer(greeting);
  clock.advance(59_999);
  t.is(await visit(intime), 'hello');
  clock.advance(1);
  t.is(await visit(late), '404');
});

test('whoever speaks no WebSocket, or no protocol of them that is known, is refused and has used the address up', async (t) => {
  const { server } = streamServer(t);
  const plain = await server.offer(greeting);
  t.is((await fetch(plain)).status, 400);
  t.is((await fetch(plain)).status, 404);
  t.is(await visit(await server.offer(greeting), ['v1.other']), '400');
  const forSpdy = await server.offer(greeting);
  await t.throwsAsync(forwardBySpdy(forSpdy, 80, undefined), { instanceOf: UpgradeRefused });
});

test('addresses that nobody uses are bounded, and none is given when the service ends', async (t) => {
  const { server } = streamServer(t);
  for (let count = 0; count < 1000; count += 1) await server.offer(greeting);
  t.true(isRuntimeError(await t.throwsAsync(server.offer(greeting)), 'Unavailable'));
  await server.close();
  t.true(isRuntimeError(await t.throwsAsync(server.offer(greeting)), 'Unavailable'));
});

/** A promise, and the way to fulfil it. */
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

const terminal = { stdin: true, stdout: true, stderr: false, tty: true };

test('input, its end, sizes of the terminal and the exit code go through, and all output before the end is told', async (t) => {
  const { server } = streamServer(t);
  const process = someProcess();
  const url = await server.offer({
    ...greeting,
    serve: (socket) => void serveProcess(socket, Promise.resolve(process.streams)),
  });
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

test('a caller who goes lets go of the process, and a process that cannot be started is told of', async (t) => {
  const { server } = streamServer(t);
  const process = someProcess();
  const served = await server.offer({
    ...greeting,
    serve: (socket) => void serveProcess(socket, Promise.resolve(process.streams)),
  });
  const { session } = await openWebSocketSession(served, terminal, undefined);
  session.close();
  await process.closed;
  t.deepEqual(await session.end, undefined);
  const refused = await server.offer({
    ...greeting,
    serve: (socket) => void serveProcess(socket, Promise.reject(new Error('no such file'))),
  });
  const { session: other } = await openWebSocketSession(refused, terminal, undefined);
  other.stdout?.resume();
  t.deepEqual(await other.end, { exitCode: 127 });
});
