import { createHash, randomBytes } from 'node:crypto';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { SharedContainerd, testsOn } from './support/shared-containerd.ts';

const test = testsOn(await SharedContainerd.open());
const sh = (script: string) => ['/bin/sh', '-c', script];
const read = (stream: Readable | undefined) => text(stream ?? Readable.from([]));
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

test('a command without input returns its output and exit code over a WebSocket', async (t, shared) => {
  const id = await shared.started('sleep 1000');
  const request = {
    command: sh('echo out; echo err >&2; exit 3'),
    stdin: false,
    stdout: true,
    stderr: true,
    tty: false,
  };
  const streams = await shared.engine.runtime.streaming.exec?.(id, request);
  t.is(streams?.stdin, undefined);
  t.deepEqual(await Promise.all([read(streams?.stdout), read(streams?.stderr)]), ['out\n', 'err\n']);
  t.deepEqual(await streams?.ended, { exitCode: 3 });
});

test('a missing command ends with the exit code of a shell', async (t, shared) => {
  const id = await shared.started('sleep 1000');
  const streams = await shared.engine.runtime.streaming.exec?.(id, {
    ...{ command: ['/no/such/command'], stdin: false, stdout: true, stderr: false, tty: false },
  });
  streams?.stdout?.resume();
  t.deepEqual(await streams?.ended, { exitCode: 127 });
});

test('streams of a container that does not run are rejected', async (t, shared) => {
  const { streaming } = shared.engine.runtime;
  const id = await shared.started('exit 0');
  await shared.ended(id);
  const request = { stdin: false, stdout: true, stderr: false, tty: false };
  await t.throwsAsync(async () => streaming.exec?.(id, { command: ['true'], ...request }), { code: 'InvalidState' });
  await t.throwsAsync(async () => streaming.attach?.('no-such-container', request), { code: 'NotFound' });
});

for (const stdin of [true, false]) {
  test(`a terminal ${stdin ? 'with' : 'without'} input is resized`, async (t, shared) => {
    const id = await shared.started('sleep 1000');
    const script = 'while [ "$(stty size 2>/dev/null)" != "40 120" ]; do sleep 0.02; done; echo seen';
    const request = { command: sh(script), stdin, stdout: true, stderr: false, tty: true };
    const streams = await shared.engine.runtime.streaming.exec?.(id, request);
    streams?.resize?.({ width: 120, height: 40 });
    t.is((await read(streams?.stdout)).replaceAll('\r', ''), 'seen\n');
    t.deepEqual(await streams?.ended, { exitCode: 0 });
  });
}

test('megabytes of input and output are unchanged, also for a slow reader', async (t, shared) => {
  const id = await shared.started('sleep 1000');
  const content = randomBytes(5_000_000);
  const request = { command: ['cat'], stdin: true, stdout: true, stderr: true, tty: false };
  const streams = await shared.engine.runtime.streaming.exec?.(id, request);
  streams?.stdin?.end(content);
  const chunks: Buffer[] = [];
  for await (const chunk of streams?.stdout ?? []) {
    chunks.push(chunk as Buffer);
    if (chunks.length % 16 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  t.is(sha256(Buffer.concat(chunks)), sha256(content));
  t.deepEqual(await streams?.ended, { exitCode: 0 });
  // The same over a WebSocket.
  const file = { command: sh('head -c 3000000 /dev/zero'), stdin: false, stdout: true, stderr: false, tty: false };
  const output = await shared.engine.runtime.streaming.exec?.(id, file);
  let length = 0;
  for await (const chunk of output?.stdout ?? []) length += (chunk as Buffer).length;
  t.is(length, 3_000_000);
});

test('a forwarded port is connected to the process that listens on it in the pod', async (t, shared) => {
  const { streaming } = shared.engine.runtime;
  const sandboxId = await shared.sandbox();
  const id = await shared.started(
    `nc -l -p 8080 -e sh -c 'read -r line; echo "got $line"; head -c 1000000 /dev/zero'`,
    {},
    sandboxId,
  );
  t.is(
    await shared.output(id, 'while ! grep -q ":1F90 " /proc/net/tcp /proc/net/tcp6; do sleep 0.02; done; echo up'),
    'up\n',
  );
  const connection = await streaming.portForward?.(sandboxId, 8080);
  connection?.write('hello\n');
  const answer = await read(connection);
  t.is(answer.slice(0, 10), 'got hello\n');
  t.is(answer.length, 1_000_010);
  await shared.ended(id);
  const closedPort = await streaming.portForward?.(sandboxId, 8081);
  await t.throwsAsync(read(closedPort), { message: /refused/ });
  await t.throwsAsync(async () => streaming.portForward?.('no-such-sandbox', 80), { code: 'NotFound' });
});

test('closing an attached stream ends the stream and leaves the container running', async (t, shared) => {
  const { runtime } = shared.engine;
  const id = await shared.started('sleep 1000');
  const streams = await runtime.streaming.attach?.(id, { stdin: false, stdout: true, stderr: true, tty: false });
  streams?.close();
  t.not((await streams?.ended)?.exitCode, 0);
  t.is((await runtime.containerStatus(id)).state, 'running');
});

test('attached clients receive later output and write to standard input, one after the other', async (t, shared) => {
  const { runtime } = shared.engine;
  // A client is attached once it receives output: until then containerd may lose the answer to its input.
  const script =
    'while :; do echo ready; sleep 0.05; done & while read -r line; do echo "got $line"; [ "$line" = quit ] && exit 7; done';
  const id = await shared.started(script, { stdin: true });
  for (const word of ['one', 'two']) {
    const streams = await runtime.streaming.attach?.(id, { stdin: true, stdout: true, stderr: false, tty: false });
    const lines = createInterface({ input: streams!.stdout! })[Symbol.asyncIterator]();
    t.is((await lines.next()).value, 'ready');
    streams!.stdin!.write(`${word}\n`);
    let line = 'ready';
    while (line === 'ready') line = (await lines.next()).value;
    t.is(line, `got ${word}`);
    streams!.close();
  }
  const last = await runtime.streaming.attach?.(id, { stdin: true, stdout: true, stderr: false, tty: false });
  last?.stdout?.resume();
  last?.stdin?.write('quit\n');
  t.deepEqual(await last?.ended, { exitCode: 7 });
});
