import { spawn } from 'node:child_process';
import {
  closeSync,
  constants,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readlinkSync,
  readSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { listProcesses, readCommandLine, readStat, toolPath } from '@keelson/container-host';
import { attachStreams, StateDirectory } from '../src/index.ts';
import { KeeperClient } from '../src/logs/keeper-client.ts';
import { fakeKeeper, id, onLinux, opened, removeState, until } from './support/keeper.ts';
import { bench, containerRecord, ownStat, TestContainer } from './support/monitored.ts';

onLinux('the keeper copies output to the log and to attached clients, and completes the log at the exit', async (t) => {
  const { context, log } = await opened(t);
  const { state, keeper } = context;
  await t.throwsAsync(keeper.request('reopen', id), { code: 'InvalidState', message: /not kept/ });
  await keeper.request('keep', id);
  const stdout = openSync(join(state.container(id), 'stdout'), constants.O_WRONLY);
  const stderr = openSync(join(state.container(id), 'stderr'), constants.O_WRONLY);
  writeSync(stdout, 'one\n');
  await until(() => existsSync(log) && readFileSync(log, 'utf8').includes('one'));
  t.regex(readFileSync(log, 'utf8'), /^\S+ stdout F one\n$/);

  const container = new TestContainer(context, {
    ...containerRecord(id),
    config: { ...containerRecord(id).config, stdin: true, stdinOnce: true },
  });
  const streams = await attachStreams(container, context, {
    stdin: true,
    stdout: true,
    stderr: true,
    tty: false,
  } as never);
  let output = '';
  let errors = '';
  streams.stdout?.on('data', (chunk: Buffer) => {
    output += String(chunk);
  });
  streams.stderr?.on('data', (chunk: Buffer) => {
    errors += String(chunk);
  });
  writeSync(stdout, 'two\n');
  writeSync(stderr, 'bad\n');
  await until(() => output === 'two\n' && errors === 'bad\n');
  t.deepEqual([output, errors], ['two\n', 'bad\n']);
  const stdin = openSync(join(state.container(id), 'stdin'), constants.O_RDONLY | constants.O_NONBLOCK);
  streams.stdin?.write('input');
  const received = Buffer.alloc(16);
  let length = 0;
  await until(() => {
    try {
      length = readSync(stdin, received);
    } catch {
      // Nothing was written yet.
    }
    return length > 0;
  });
  t.is(received.toString('utf8', 0, length), 'input');
  await keeper.request('reopen', id);

  // The monitor keeps `done` open for reading until the keeper releases it.
  const done = openSync(join(state.container(id), 'done'), constants.O_RDONLY | constants.O_NONBLOCK);
  writeSync(stdout, 'last without end');
  await context.runFiles.writeExit(id, { exitCode: 0 });
  await until(() => existsSync(context.runFiles.path(id, 'logged')));
  t.true(await context.runFiles.isLogged(id));
  t.regex(readFileSync(log, 'utf8'), /stdout P last without end\n$/);
  t.is((await streams.ended).exitCode, 0);
  await until(() => readFileSync(done, 'utf8') === '\n');
  for (const fd of [stdout, stderr, stdin, done]) closeSync(fd);
  streams.close();
  await t.throwsAsync(attachStreams(container, context, { stdout: true } as never), { code: 'InvalidState' });
});

onLinux('a dropped container is not read any more, and one without stdin cannot be attached with it', async (t) => {
  const { context } = await opened(t);
  const { keeper } = context;
  await keeper.request('keep', id);
  await keeper.request('drop', id);
  await t.throwsAsync(keeper.request('closeStdin', id), { code: 'InvalidState' });
  await keeper.request('keep', id);
  await t.throwsAsync(keeper.request('nothing' as never, id), { message: 'log keeper: unknown request "nothing"' });
  const container = new TestContainer(context, containerRecord(id));
  await t.throwsAsync(attachStreams(container, context, { stdin: true } as never), { code: 'InvalidState' });
  await context.runFiles.writeExit(id, { exitCode: 0 });
  await keeper.close();
  await t.throwsAsync(keeper.ensure(), { code: 'Unavailable' });
});

onLinux('a new keeper reads the containers that are running', async (t) => {
  const { context, log } = await opened(t);
  const { state } = context;
  writeFileSync(context.runFiles.path(id, 'monitor'), ownStat());
  await context.keeper.ensure();
  const stdout = openSync(join(state.container(id), 'stdout'), constants.O_WRONLY | constants.O_NONBLOCK);
  writeSync(stdout, 'found\n');
  await until(() => existsSync(log) && readFileSync(log, 'utf8').includes('found'));
  t.regex(readFileSync(log, 'utf8'), /stdout F found\n$/);
  closeSync(stdout);
  await context.runFiles.writeExit(id, { exitCode: 0 });
  await until(() => existsSync(context.runFiles.path(id, 'logged')));
  t.true(await context.runFiles.isLogged(id));
});

onLinux(
  'of two clients that start a keeper at once one keeper runs; it leads a process group of its own, in /',
  async (t) => {
    const { context } = await opened(t);
    writeFileSync(context.runFiles.path(id, 'monitor'), ownStat());
    const other = new KeeperClient(context.state, () => {});
    await Promise.all([context.keeper.ensure(), other.ensure()]);
    const keepers = listProcesses().filter(({ pid }) => {
      const [program, ...args] = readCommandLine(pid);
      return program === process.execPath && args.includes(context.state.root);
    });
    t.is(keepers.length, 1);
    const [{ pid, session } = { pid: 0, session: 0 }] = keepers;
    t.not(session, readStat(process.pid)?.session, 'signals to the group of its starter do not reach it');
    t.is(readlinkSync(`/proc/${pid}/cwd`), '/', 'it keeps no folder of its starter in use');
    for (const fd of [0, 1, 2]) t.is(readlinkSync(`/proc/${pid}/fd/${fd}`), '/dev/null');
    t.true(readCommandLine(pid).includes('--max-old-space-size=64'));
    t.deepEqual(environmentOf(pid), { PATH: toolPath });
    await context.runFiles.writeExit(id, { exitCode: 0 });
    await other.close();
  },
);

onLinux(
  'output that arrives together with the answer to an attach is not lost; a lost keeper ends all requests',
  async (t) => {
    const fake = await fakeKeeper(t, (socket, request) => {
      if (request.includes('"attach"')) socket.write('{}\nearly output');
      else if (request.includes('"keep"')) socket.destroy();
    });
    const attached = await fake.client.attach(id);
    let output = '';
    attached.on('data', (chunk: Buffer) => {
      output += String(chunk);
    });
    attached.resume();
    await until(() => output !== '');
    t.is(output, 'early output');
    await t.throwsAsync(fake.client.request('keep', id), { code: 'Unavailable', message: /connection .* was lost/ });
    await until(() => fake.lost === 2);
    t.is(fake.lost, 2, 'the request was sent twice; an attached connection is not that of requests');
    attached.destroy();
  },
);

function environmentOf(pid: number): Record<string, string> {
  const entries = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').filter(Boolean);
  return Object.fromEntries(entries.map((entry) => entry.split('=', 2) as [string, string]));
}

onLinux('a request to a keeper that was just leaving is sent to the next one', async (t) => {
  let requests = 0;
  // An idle keeper ends; the kernel accepts connections until then.
  const fake = await fakeKeeper(t, (socket) => {
    requests += 1;
    if (requests === 1) socket.destroy();
    else socket.write('{}\n');
  });
  await fake.client.request('keep', id);
  t.is(requests, 2);
  t.is(fake.lost, 1, 'the runtime is notified, because other containers may have lost their keeper too');
});

onLinux('a keeper without containers and connections ends', async (t) => {
  const root = mkdtempSync('/tmp/keelson-keeper-');
  t.teardown(() => removeState(root));
  await new StateDirectory(root, '#!/bin/sh\n').prepare();
  const entry = fileURLToPath(new URL('../src/logs/log-keeper.js', import.meta.url));
  const keeper = spawn(process.execPath, [entry, root], { stdio: 'ignore' });
  t.teardown(() => keeper.kill('SIGKILL'));
  t.is(await new Promise((resolve) => keeper.once('exit', resolve)), 0);
});

onLinux('a connection without open requests does not keep the process of its client alive', async (t) => {
  const { context } = await opened(t);
  const module = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
  const client = spawn(process.execPath, [
    '--input-type=module',
    '--eval',
    `import { KeeperClient } from ${module('../src/logs/keeper-client.js')};
    import { StateDirectory } from ${module('../src/index.js')};
    const client = new KeeperClient(new StateDirectory(${JSON.stringify(context.state.root)}, ''), () => {});
    await client.request('keep', '${id}');
    process.stdout.write('answered');`,
  ]);
  t.teardown(() => client.kill('SIGKILL'));
  let output = '';
  client.stdout.on('data', (chunk) => (output += String(chunk)));
  t.is(await new Promise((resolve) => client.once('close', resolve)), 0);
  t.is(output, 'answered');
  await context.runFiles.writeExit(id, { exitCode: 0 });
});

onLinux('a client that reads slowly receives all output', async (t) => {
  const { context } = await opened(t);
  await context.keeper.request('keep', id);
  const container = new TestContainer(context, containerRecord(id));
  const streams = await attachStreams(container, context, { stdout: true } as never);
  const stdout = openSync(join(context.state.container(id), 'stdout'), constants.O_WRONLY);
  const part = 'x'.repeat(10_000);
  for (let i = 0; i < 6; i += 1) writeSync(stdout, part);
  writeSync(stdout, 'end');
  // More than the stream buffers, so that it is paused before it is read.
  await until(() => (streams.stdout?.readableLength ?? 0) > 20_000);
  let length = 0;
  streams.stdout?.on('data', (chunk: Buffer) => (length += chunk.length));
  await until(() => length === 60_003);
  t.is(length, 60_003);
  streams.close();
  t.is((await streams.ended).exitCode, 0);
  closeSync(stdout);
  await context.runFiles.writeExit(id, { exitCode: 0 });
});

onLinux('an attach that the keeper rejects, or whose input cannot be opened, closes its connection', async (t) => {
  const fake = await fakeKeeper(t, (socket, request) => {
    socket.write(request.includes(id) ? '{}\n' : '{"error":"not kept"}\n');
  });
  await fake.client.ensure();
  await t.throwsAsync(fake.client.attach('other'), { code: 'InvalidState', message: 'log keeper: not kept' });
  await until(() => fake.sockets.size === 1);
  t.is(fake.sockets.size, 1, 'the connection for requests remains');
  t.is(fake.lost, 0);
  const b = await bench(t);
  const { config } = containerRecord(id);
  const container = new TestContainer(b.context, containerRecord(id, { config: { ...config, stdin: true } }));
  const context = { ...b.context, keeper: fake.client };
  await t.throwsAsync(attachStreams(container, context, { stdin: true } as never), { code: 'ENOENT' });
  await until(() => fake.sockets.size === 1);
  t.is(fake.sockets.size, 1);
});
