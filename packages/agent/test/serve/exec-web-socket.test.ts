import { Readable, Writable } from 'node:stream';
import { type ExecRequest, RuntimeError, type TerminalSize } from '@keelson/container-runtime';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { execPath, openStreamServer, spawned } from '../support/stream-server.ts';

const v5 = 'v5.channel.k8s.io';
const v4 = 'v4.channel.k8s.io';

/** A node on which commands are processes of this machine. */
function execServer(t: ExecutionContext, words: readonly string[] = []) {
  return openStreamServer(t, { exec: (_, request) => async () => spawned(request.command, request) }, words);
}

test('a command receives its input and end of file, and returns output, errors and exit code', async (t) => {
  const server = await execServer(t);
  const client = await server.webSocket(
    execPath(['sh', '-c', 'cat; echo bad >&2; exit 3'], 'input', 'output', 'error'),
    v5,
    v4,
  );
  t.is(client.socket.protocol, v5);
  client.send(0, 'hel');
  client.send(0, 'lo');
  client.send(255, Buffer.of(0));
  client.send(0, 'late');
  t.is(await client.closed, 1000);
  t.is(client.text(1), 'hello');
  t.is(client.text(2), 'bad\n');
  t.deepEqual(JSON.parse(client.text(3)), {
    metadata: {},
    status: 'Failure',
    message: 'command terminated with exit code 3',
    reason: 'NonZeroExitCode',
    details: { causes: [{ reason: 'ExitCode', message: '3' }] },
  });
  t.deepEqual(
    [client.messages[0]?.channel, client.messages[0]?.content.length],
    [1, 0],
    'the first message says it is open',
  );
  t.is(client.messages.at(-1)?.channel, 3, 'the end comes after all output');
});

test('the first known offered protocol is used; the result is a Status since version 4, and a text before', async (t) => {
  const server = await execServer(t);
  const success = '{"metadata":{},"status":"Success"}';
  const failure = 'command terminated with exit code 3';
  for (const [offered, chosen, good, bad] of [
    [['unheard.of', v4, v5], v4, success, undefined],
    [['v3.channel.k8s.io'], 'v3.channel.k8s.io', '', failure],
    [['v2.channel.k8s.io'], 'v2.channel.k8s.io', '', failure],
    [['channel.k8s.io'], 'channel.k8s.io', '', failure],
    [[], '', '', failure],
    [['v5.base64.channel.k8s.io'], 'v5.base64.channel.k8s.io', success, undefined],
    [['v4.base64.channel.k8s.io'], 'v4.base64.channel.k8s.io', success, undefined],
    [['base64.channel.k8s.io'], 'base64.channel.k8s.io', '', failure],
  ] as const) {
    for (const code of [0, 3]) {
      const client = await server.webSocket(
        execPath(['sh', '-c', `head -c 2; exit ${code}`], 'input', 'output'),
        ...offered,
      );
      t.is(client.socket.protocol, chosen);
      client.send(0, 'ok');
      t.is(await client.closed, 1000);
      t.is(client.text(1), 'ok', chosen);
      if (code === 0) t.is(client.text(3), good, chosen);
      else if (bad !== undefined) t.is(client.text(3), bad, chosen);
      else t.is(JSON.parse(client.text(3)).reason, 'NonZeroExitCode');
    }
  }
  await t.throwsAsync(server.webSocket(execPath(['true'], 'output'), 'v9.channel.k8s.io'), {
    message:
      /^400 unable to upgrade: .* client supports \[v9\.channel\.k8s\.io\], server accepts \[v5\.channel\.k8s\.io /,
  });
});

test('changes of the terminal size are forwarded, also those received before the terminal exists', async (t) => {
  const sizes: TerminalSize[] = [];
  const requests: ExecRequest[] = [];
  let begin = () => {};
  const asked = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const server = await openStreamServer(t, {
    exec: (_, request) => async () => {
      requests.push(request);
      await asked;
      return { ...spawned(['cat'], request), resize: (size) => void sizes.push(size) };
    },
  });
  const client = await server.webSocket(execPath(['sh'], 'input', 'output', 'error', 'tty'), v5);
  client.send(4, '{"Width":100,"Height":30}\n');
  client.socket.ping();
  await new Promise((resolve) => client.socket.once('pong', resolve));
  begin();
  await until(() => sizes.length === 1);
  client.send(4, '{"Width":80,"Height":24}');
  for (const bad of ['{"Width":0,"Height":1}', 'rubbish', '{}', '{"Width":1e9,"Height":1}']) client.send(4, bad);
  client.send(4, '{"Width":81,"Height":25}');
  // The client for Node, which Go's decoder understands, too.
  client.send(4, '{"height":26,"width":82}');
  await until(() => sizes.length === 4);
  t.deepEqual(sizes, [
    { width: 100, height: 30 },
    { width: 80, height: 24 },
    { width: 81, height: 25 },
    { width: 82, height: 26 },
  ]);
  t.false(requests[0]!.stderr, 'a terminal has one output');
});

test('the disconnect of a client ends the command', async (t) => {
  const server = await execServer(t);
  const client = await server.webSocket(execPath(['sh', '-c', 'echo $$; exec sleep 600'], 'output'), v5);
  const pid = await until(() => Number(client.text(1)) || undefined);
  client.socket.terminate();
  await until(() => {
    try {
      process.kill(pid, 0);
      return false;
    } catch {
      return true;
    }
  });
  t.pass();
});

test('a command that cannot be started, or whose result is unknown, is reported in one sentence', async (t) => {
  const failing = [
    async () => {
      throw new RuntimeError('StartFailed', 'no such file: "nope"');
    },
    async () => ({ ended: Promise.reject(new Error('the runtime is gone')), close: () => {} }),
  ];
  const server = await openStreamServer(t, { exec: () => failing.shift()! });
  const client = await server.webSocket(execPath(['nope'], 'output'), v5);
  await client.closed;
  t.deepEqual(JSON.parse(client.text(3)), {
    metadata: {},
    status: 'Failure',
    message: 'Internal error occurred: error executing command in container: no such file: "nope"',
    reason: 'InternalError',
    details: { causes: [{ message: 'error executing command in container: no such file: "nope"' }] },
    code: 500,
  });
  const other = await server.webSocket(execPath(['nope'], 'output'), 'v3.channel.k8s.io');
  await other.closed;
  t.is(other.text(3), 'error executing command in container: the runtime is gone');
});

const stable = async (value: () => number) => {
  for (let before = -1; before !== value(); await new Promise((resolve) => setTimeout(resolve, 50))) before = value();
  return value();
};

test('a client that does not read applies back pressure to the output, which continues when it reads', async (t) => {
  let given = 0;
  const total = 32 * 1024 * 1024;
  let finish: (end: { exitCode: number }) => void = () => {};
  const stdout = new Readable({
    read() {
      given += 65_536;
      this.push(given > total ? null : Buffer.alloc(65_536, 1));
    },
  });
  const ended = new Promise<{ exitCode: number }>((resolve) => {
    finish = resolve;
  });
  stdout.once('end', () => finish({ exitCode: 0 }));
  const server = await openStreamServer(t, {
    exec: () => async () => ({ stdout, ended, close: () => stdout.destroy() }),
  });
  const client = await server.webSocket(execPath(['yes'], 'output'), v5);
  client.socket.pause();
  t.true((await stable(() => given)) < total / 2, `${given} bytes were read`);
  client.socket.resume();
  await client.closed;
  t.is(
    client.messages.reduce((sum, { channel, content }) => sum + (channel === 1 ? content.length : 0), 0),
    total,
  );
});

test('a command that does not read applies back pressure to its client', async (t) => {
  const waiting: (() => void)[] = [];
  let taken = 0;
  let open = false;
  const stdin = new Writable({
    write(chunk: Buffer, _encoding, done) {
      taken += chunk.length;
      if (open) done();
      else waiting.push(done);
    },
  });
  const ended = new Promise<{ exitCode: number }>((resolve) => stdin.once('finish', () => resolve({ exitCode: 0 })));
  const server = await openStreamServer(t, {
    exec: () => async () => ({ stdin, ended, close: () => stdin.destroy() }),
  });
  const client = await server.webSocket(execPath(['sleep'], 'input'), v5);
  const total = 32 * 1024 * 1024;
  for (let sent = 0; sent < total; sent += 65_536) client.send(0, Buffer.alloc(65_536));
  client.send(255, Buffer.of(0));
  const left = () => client.socket.bufferedAmount;
  t.true((await stable(left)) > total / 3, `${left()} bytes wait at the caller`);
  open = true;
  for (const done of waiting) done();
  await client.closed;
  t.is(taken, total);
});

test('--streaming-connection-idle-timeout: connections without data are closed; pings do not count; 0 disables it', async (t) => {
  const server = await execServer(t, ['--streaming-connection-idle-timeout=10m']);
  const talking = await server.webSocket(execPath(['cat'], 'input', 'output'), v5);
  const silent = await server.webSocket(execPath(['cat'], 'input', 'output'), v5);
  server.clock.advance(9 * 60_000);
  talking.send(0, 'still here');
  await until(() => talking.text(1) === 'still here');
  silent.socket.ping();
  await new Promise((resolve) => silent.socket.once('pong', resolve));
  server.clock.advance(60_000);
  await silent.closed;
  talking.send(0, '!');
  await until(() => talking.text(1) === 'still here!');
  server.clock.advance(10 * 60_000);
  await talking.closed;
  const patient = await execServer(t, ['--streaming-connection-idle-timeout=0']);
  const forever = await patient.webSocket(execPath(['cat'], 'input', 'output'), v5);
  // In steps, because peers limit the number of pings.
  for (let hours = 0; hours < 6; hours += 0.25) {
    const pinged = new Promise((resolve) => forever.socket.once('ping', resolve));
    patient.clock.advance(0.25 * 3_600_000);
    await pinged;
  }
  forever.send(0, 'here');
  await until(() => forever.text(1) === 'here');
  t.pass();
});

test('attach: the exit of the container is a success, whatever its exit code', async (t) => {
  const server = await openStreamServer(t, {
    attach: (_, request) => async () => spawned(['sh', '-c', 'head -c 2; exit 4'], request),
  });
  const client = await server.webSocket('/attach/default/web/main?input=1&output=1', v5);
  client.send(0, 'hi');
  await client.closed;
  t.deepEqual([client.text(1), client.text(3)], ['hi', '{"metadata":{},"status":"Success"}']);
});
