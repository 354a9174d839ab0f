import { spawnSync } from 'node:child_process';
import { closeSync, constants, openSync, readdirSync, readlinkSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { StreamRequest } from '@keelson/container-runtime';
import test, { type ExecutionContext } from 'ava';
import { attachStreams, type ContainerContext } from '../src/index.ts';
import { fakeKeeper, id, onLinux, until } from './support/keeper.ts';
import { bench, containerRecord, TestContainer } from './support/monitored.ts';

onLinux(
  'requests that the keeper rejects are not repeated, and answers belong to requests in their order',
  async (t) => {
    const received: string[] = [];
    const fake = await fakeKeeper(t, (socket, text) => {
      for (const line of text.trimEnd().split('\n')) received.push(JSON.parse(line).op);
      // The answer of the first request arrives in two parts, the second one together with that of the third.
      if (received.length === 1) socket.write('{"err');
      if (received.length === 3) socket.write('or":"no"}\n{}\n{"error":"why"}\n');
    });
    await fake.client.ensure();
    const first = fake.client.request('keep', id);
    await until(() => received.length === 1);
    const others = [fake.client.request('reopen', id), fake.client.request('drop', id)];
    const results = await Promise.allSettled([first, ...others]);
    t.deepEqual(
      results.map((result) => (result.status === 'rejected' ? result.reason.message : 'done')),
      ['log keeper: no', 'done', 'log keeper: why'],
    );
    t.deepEqual(received, ['keep', 'reopen', 'drop']);
  },
);

onLinux('a closed client closes its connection and its folder, and reports no loss', async (t) => {
  const fake = await fakeKeeper(t, (socket) => socket.write('{}\n'));
  await fake.client.request('keep', id);
  const folders = () =>
    readdirSync('/proc/self/fd').filter((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`) === fake.state.keeper;
      } catch {
        return false; // Closed since.
      }
    }).length;
  t.deepEqual([fake.sockets.size, folders()], [1, 1]);
  await fake.client.close();
  await until(() => fake.sockets.size === 0);
  t.deepEqual([fake.sockets.size, folders(), fake.lost], [0, 0, 0]);
  await t.throwsAsync(fake.client.request('keep', id), { code: 'Unavailable', message: 'the runtime is closed' });
});

onLinux(
  'a connection that ends while nothing is requested is reported, and the next request connects again',
  async (t) => {
    const fake = await fakeKeeper(t, (socket) => socket.write('{}\n'));
    await fake.client.ensure();
    await until(() => fake.sockets.size === 1);
    for (const socket of fake.sockets) socket.destroy();
    await until(() => fake.lost === 1);
    t.is(fake.lost, 1);
    await fake.client.request('keep', id);
    t.is(fake.sockets.size, 1);
  },
);

onLinux('an attached connection is paused until it is read, and has no reader of answers', async (t) => {
  const fake = await fakeKeeper(t, (socket) => socket.write('{}\nearly\noutput'));
  const attached = await fake.client.attach(id);
  t.deepEqual([attached.isPaused(), attached.listenerCount('data')], [true, 0]);
  t.is(String(attached.read('early\noutput'.length)), 'early\noutput');
  attached.destroy();
});

interface Attached {
  readonly socket: Duplex;
  readonly context: ContainerContext;
  readonly container: TestContainer;
  readonly requests: string[];
  readonly folder: string;
  attach(request: Partial<StreamRequest>): ReturnType<typeof attachStreams>;
}

/** A container with a pipe for input, and a stream in place of the connection to the keeper. */
async function attachable(t: ExecutionContext, more: object = {}): Promise<Attached> {
  const b = await bench(t);
  const { config } = containerRecord(id);
  const container = new TestContainer(b.context, containerRecord(id, { config: { ...config, stdin: true, ...more } }));
  const folder = b.state.container(id);
  t.is(spawnSync('mkfifo', [join(folder, 'stdin')]).status, 0);
  const socket = new Duplex({ read: () => {}, write: (_chunk, _encoding, done) => done() });
  socket.pause();
  const keeper = Object.assign(b.context.keeper, { attach: async () => socket });
  const context = { ...b.context, keeper };
  const attach = (request: Partial<StreamRequest>) => attachStreams(container, context, request as StreamRequest);
  return { socket, context, container, requests: b.requests, folder, attach };
}

function frame(stream: number, text: string): Buffer {
  const head = Buffer.from([stream, 0, 0, 0, 0]);
  head.writeUInt32BE(text.length, 1);
  return Buffer.concat([head, Buffer.from(text)]);
}

test('frames of output may arrive divided anywhere, and those of a stream that is not requested are discarded', async (t) => {
  const { socket, attach } = await attachable(t);
  const { stdout, stderr, stdin, close } = await attach({ stdout: true });
  t.deepEqual([stderr, stdin], [undefined, undefined]);
  const frames = Buffer.concat([frame(1, 'one'), frame(2, 'discarded'), frame(1, 'two'), frame(1, 'incomplete')]);
  for (const byte of frames.subarray(0, -1)) {
    socket.push(Buffer.of(byte));
    await new Promise((resolve) => setImmediate(resolve));
  }
  t.is(String(stdout?.read(6)), 'onetwo');
  close();
  t.true(socket.destroyed);
});

test('a slow reader pauses the connection until it has read; the streams end with the connection', async (t) => {
  const { socket, attach, context } = await attachable(t);
  const { stdout, stderr, ended } = await attach({ stdout: true, stderr: true });
  t.false(socket.isPaused());
  socket.push(frame(1, 'x'.repeat(200_000)));
  await until(() => socket.isPaused());
  t.true(socket.isPaused());
  stdout?.resume();
  await until(() => !socket.isPaused());
  t.false(socket.isPaused());
  await context.runFiles.writeExit(id, { exitCode: 3, finishedAt: 0 });
  socket.destroy();
  stderr?.resume();
  await Promise.all([stdout, stderr].map((stream) => finished(stream as never)));
  t.is((await ended).exitCode, 3, 'the state is read when the connection ends');
});

onLinux(
  'input is written to the pipe of the container; its end closes the input of a container that reads once',
  async (t) => {
    for (const stdinOnce of [true, false]) {
      const { folder, attach, requests, socket } = await attachable(t, { stdinOnce });
      const reader = openSync(join(folder, 'stdin'), constants.O_RDONLY | constants.O_NONBLOCK);
      const { stdin } = await attach({ stdin: true });
      const buffer = Buffer.alloc(16);
      await new Promise((resolve) => stdin?.write('input', resolve));
      t.is(buffer.toString('utf8', 0, readSync(reader, buffer)), 'input');
      t.throws(() => readSync(reader, buffer), { code: 'EAGAIN' });
      await new Promise<void>((resolve) => stdin?.once('close', resolve).end());
      t.is(readSync(reader, buffer), 0, 'the pipe is closed');
      t.deepEqual(requests, stdinOnce ? [`closeStdin ${id}`] : []);
      t.false(socket.destroyed, 'output follows');
      closeSync(reader);
      socket.destroy();
    }
  },
);

onLinux('closing an attach closes the input, and input without a reader is an error', async (t) => {
  const { folder, attach } = await attachable(t);
  const reader = openSync(join(folder, 'stdin'), constants.O_RDONLY | constants.O_NONBLOCK);
  const { stdin, close } = await attach({ stdin: true });
  const closed = new Promise((resolve) => stdin?.once('close', resolve));
  close();
  await closed;
  t.is(readSync(reader, Buffer.alloc(16)), 0);
  closeSync(reader);
  const other = await attachable(t);
  const second = openSync(join(other.folder, 'stdin'), constants.O_RDONLY | constants.O_NONBLOCK);
  const streams = await other.attach({ stdin: true });
  closeSync(second);
  const failed = new Promise<NodeJS.ErrnoException>((resolve) => streams.stdin?.once('error', resolve));
  streams.stdin?.write('unread');
  t.is((await failed).code, 'EPIPE');
  streams.close();
});
