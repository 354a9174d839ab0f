import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { TerminalSize } from '@keelson/container-runtime';
import type { SpdyClient } from '@keelson/container-streams';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { execPath, openStreamServer, spawned } from '../support/stream-server.ts';

const v4 = 'v4.channel.k8s.io';

function execServer(t: ExecutionContext) {
  return openStreamServer(t, { exec: (_, request) => async () => spawned(request.command, request) });
}

async function streamsOf(client: SpdyClient, ...types: string[]) {
  const opened = [];
  for (const streamtype of types) opened.push(await client.open({ streamtype }));
  await Promise.all(opened.map(({ answered }) => answered));
  return opened;
}

test('a command receives its input and end of file, and returns output, errors and exit code', async (t) => {
  const server = await execServer(t);
  const path = execPath(['sh', '-c', 'cat; echo bad >&2; exit 3'], 'input', 'output', 'error');
  const client = await server.spdy(path, 'v5.channel.k8s.io', v4, 'v3.channel.k8s.io');
  t.is(client.protocol, v4, 'the fifth version is of WebSockets');
  const [error, stdin, stdout, stderr] = await streamsOf(client, 'error', 'stdin', 'stdout', 'stderr');
  stdin!.send('hel');
  stdin!.send('lo', true);
  t.deepEqual(await Promise.all([text(stdout!.incoming), text(stderr!.incoming)]), ['hello', 'bad\n']);
  t.like(JSON.parse(await text(error!.incoming)), {
    reason: 'NonZeroExitCode',
    details: { causes: [{ message: '3' }] },
  });
  await until(() => client.goneAway === 0);
});

test('before version 4 the result is a text or empty; without an offered protocol the first version is used', async (t) => {
  const server = await execServer(t);
  for (const [offered, chosen] of [
    [['v3.channel.k8s.io'], 'v3.channel.k8s.io'],
    [['v2.channel.k8s.io'], 'v2.channel.k8s.io'],
    [['channel.k8s.io'], 'channel.k8s.io'],
    [[], undefined],
  ] as const) {
    for (const [code, end] of [
      [0, ''],
      [3, 'command terminated with exit code 3'],
    ]) {
      const client = await server.spdy(execPath(['sh', '-c', `exit ${code}`], 'output'), ...offered);
      t.is(client.protocol, chosen);
      const [error] = await streamsOf(client, 'error', 'stdout');
      t.is(await text(error!.incoming), String(end));
    }
  }
  await t.throwsAsync(server.spdy(execPath(['true'], 'output'), 'v9.channel.k8s.io'), {
    message:
      /^403 unable to upgrade: .* client supports \[v9\.channel\.k8s\.io\], server accepts \[v4\.channel\.k8s\.io /,
  });
});

test('terminal sizes are received on a separate stream, since version 3', async (t) => {
  const sizes: TerminalSize[] = [];
  const server = await openStreamServer(t, {
    exec: (_, request) => async () => ({ ...spawned(['cat'], request), resize: (size) => void sizes.push(size) }),
  });
  const path = execPath(['sh'], 'input', 'output', 'tty');
  const client = await server.spdy(path, v4);
  const [, stdin, stdout, resize] = await streamsOf(client, 'error', 'stdin', 'stdout', 'resize');
  resize!.send('{"Width":100,"Hei');
  resize!.send('ght":30}\n{"Width":80,"Height":24}\n');
  await until(() => sizes.length === 2);
  stdin!.send('typed', true);
  t.is(await text(stdout!.incoming), 'typed');
  const old = await server.spdy(path, 'v2.channel.k8s.io');
  const [, oldIn, oldOut] = await streamsOf(old, 'error', 'stdin', 'stdout');
  oldIn!.send('typed', true);
  t.is(await text(oldOut!.incoming), 'typed');
});

test('unrequested streams are rejected, and a client that does not open the required ones is disconnected', async (t) => {
  let begun = 0;
  const server = await openStreamServer(t, {
    exec: (_, request) => async () => {
      begun += 1;
      return spawned(request.command, request);
    },
  });
  const client = await server.spdy(execPath(['cat'], 'output'), v4);
  await streamsOf(client, 'error');
  for (const streamtype of ['stdin', 'error', 'nonsense']) await (await client.open({ streamtype })).reset;
  await (await client.open({})).reset;
  t.is(begun, 0);
  server.clock.advance(30_000);
  await client.closed;
  t.is(begun, 0);
});

test('a client that disconnects or violates the protocol ends only its command', async (t) => {
  const server = await execServer(t);
  for (const leave of [
    (client: SpdyClient) => client.socket.destroy(),
    (client: SpdyClient) => client.socket.write(Buffer.from('80ff000100000000', 'hex')),
  ]) {
    const client = await server.spdy(execPath(['sh', '-c', 'echo $$; exec sleep 600'], 'output'), v4);
    const [, stdout] = await streamsOf(client, 'error', 'stdout');
    let output = '';
    stdout!.incoming.on('data', (chunk) => {
      output += String(chunk);
    });
    const pid = await until(() => Number(output) || undefined);
    leave(client);
    await until(() => {
      try {
        process.kill(pid, 0);
        return false;
      } catch {
        return true;
      }
    });
    await client.closed;
  }
  t.is((await server.ask('/healthz')).body, 'ok');
});

test('a reset of the input stream is end of file for the command', async (t) => {
  const server = await execServer(t);
  const client = await server.spdy(execPath(['cat'], 'input', 'output'), v4);
  const [error, stdin, stdout] = await streamsOf(client, 'error', 'stdin', 'stdout');
  stdin!.send('x');
  await until(() => stdout!.incoming.readableLength > 0);
  stdin!.resetIt();
  t.is(await text(stdout!.incoming), 'x');
  t.is(JSON.parse(await text(error!.incoming)).status, 'Success');
});

test('input that the command does not read is discarded when it has ended', async (t) => {
  const server = await execServer(t);
  const client = await server.spdy(execPath(['sh', '-c', 'echo done'], 'input', 'output'), v4);
  const [error, stdin, stdout] = await streamsOf(client, 'error', 'stdin', 'stdout');
  for (let count = 0; count < 40; count += 1) stdin!.send(Buffer.alloc(100_000));
  t.is(await text(stdout!.incoming), 'done\n');
  t.is(JSON.parse(await text(error!.incoming)).status, 'Success');
});

test('a client that does not read applies back pressure to the output, and is pinged meanwhile', async (t) => {
  let given = 0;
  const total = 32 * 1024 * 1024;
  const stdout = new Readable({
    read() {
      given += 65_536;
      this.push(given > total ? null : Buffer.alloc(65_536, 1));
    },
  });
  const ended = new Promise<{ exitCode: number }>((resolve) => stdout.once('end', () => resolve({ exitCode: 0 })));
  const server = await openStreamServer(t, {
    exec: () => async () => ({ stdout, ended, close: () => stdout.destroy() }),
  });
  const client = await server.spdy(execPath(['yes'], 'output'), v4);
  const [, stream] = await streamsOf(client, 'error', 'stdout');
  let last = -1;
  for (; last !== given; await new Promise((resolve) => setTimeout(resolve, 50))) last = given;
  t.true(given < total / 2, `${given} bytes were read`);
  server.clock.advance(30_000);
  let seen = 0;
  for await (const chunk of stream!.incoming.pipe(new PassThrough())) seen += (chunk as Buffer).length;
  t.is(seen, total);
  await until(() => client.pongs.includes(2));
});
