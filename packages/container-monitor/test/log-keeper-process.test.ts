import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { listProcesses, readCommandLine, readStat } from '@keelson/container-host';
import { StateDirectory } from '../src/index.ts';
import { KeeperClient } from '../src/logs/keeper-client.ts';
import { id, onLinux, opened, removeState, until } from './support/keeper.ts';
import { containerRecord, ownStat } from './support/monitored.ts';

/** Process id of the log keeper of a state directory; undefined when none is running. */
function keeperOf({ root }: StateDirectory): number | undefined {
  return listProcesses().find(({ pid }) => {
    const [program, ...args] = readCommandLine(pid);
    return program === process.execPath && args.at(-1) === root;
  })?.pid;
}

/** Names of the files in a folder that a process has open. */
function openFiles(pid: number | undefined, folder: string): string[] {
  const names = readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`);
    } catch {
      return ''; // Closed since.
    }
  });
  const inside = names.filter((name) => name.startsWith(`${folder}/`));
  return inside.map((name) => name.slice(folder.length + 1)).sort();
}

onLinux('a keeper ends without containers and connections only, and no signal ends it', async (t) => {
  const { context } = await opened(t);
  await context.keeper.request('keep', id);
  await context.keeper.close();
  const connected = await opened(t);
  await connected.context.keeper.ensure();
  const pid = keeperOf(connected.context.state) ?? 0;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.kill(pid, signal);

  // This keeper becomes idle after the two above, so an idle period of theirs ends before it.
  const root = mkdtempSync('/tmp/keelson-keeper-');
  t.teardown(() => removeState(root));
  await new StateDirectory(root, '#!/bin/sh\n').prepare();
  const entry = fileURLToPath(new URL('../src/logs/log-keeper.js', import.meta.url));
  const idle = spawn(process.execPath, [entry, root], { stdio: 'ignore' });
  t.teardown(() => idle.kill('SIGKILL'));
  t.is(await new Promise((resolve) => idle.once('exit', resolve)), 0);

  const reader = keeperOf(context.state) ?? 0;
  t.not(reader, 0, 'it reads a container');
  t.is(keeperOf(connected.context.state), pid, 'it has a connection');
  await t.throwsAsync(connected.context.keeper.request('keep', 'unknown'), { code: 'InvalidState', message: /ENOENT/ });
  await connected.context.keeper.close();
  await context.runFiles.writeExit(id, { exitCode: 0 });
  for (const keeper of [reader, pid]) {
    await until(() => readStat(keeper) === undefined);
    t.is(readStat(keeper), undefined);
  }
});

onLinux(
  'a container that is kept twice is read once, and closes its files when it is dropped or has ended',
  async (t) => {
    const { context } = await opened(t);
    const { state, keeper } = context;
    const folder = state.container(id);
    await keeper.request('keep', id);
    await keeper.request('keep', id);
    const pid = keeperOf(state);
    t.deepEqual(openFiles(pid, folder), ['stderr', 'stdin', 'stdout']);
    await keeper.request('drop', id);
    await until(() => openFiles(pid, folder).length === 0);
    t.deepEqual(openFiles(pid, folder), []);
    await keeper.request('drop', id);
    await context.runFiles.writeExit(id, { exitCode: 0 });
    await keeper.request('keep', id);
    t.true(await context.runFiles.isLogged(id), 'a container that has ended before is read to its end');
    await t.throwsAsync(keeper.request('reopen', id), { code: 'InvalidState', message: /not kept/ });
    rmSync(context.runFiles.path(id, 'exit'));
    await keeper.request('keep', id);
    await t.throwsAsync(keeper.request('reopen', id), { code: 'InvalidState', message: /not kept/ });
  },
);

onLinux(
  'a keeper replaces the socket of one that was killed, and skips containers that are being removed',
  async (t) => {
    const { context } = await opened(t);
    const { state, keeper } = context;
    writeFileSync(join(state.keeper, 'socket'), '');
    const removed = '1'.repeat(24);
    for (const name of [removed, id]) writeFileSync(context.runFiles.path(name, 'monitor'), ownStat());
    const exited = '2'.repeat(24);
    mkdirSync(state.container(exited));
    writeFileSync(join(state.container(exited), 'record.json'), JSON.stringify(containerRecord(exited)));
    writeFileSync(context.runFiles.path(exited, 'pid'), ownStat());
    const attached = await keeper.attach(id);
    await t.notThrowsAsync(keeper.request('reopen', id));
    await t.throwsAsync(keeper.request('reopen', removed), { message: /not kept/ });
    await t.throwsAsync(keeper.request('reopen', exited), { message: /not kept/ });
    attached.destroy();
    await keeper.request('drop', id);
  },
);

onLinux('requests may arrive divided, and several at once', async (t) => {
  const { context } = await opened(t);
  await context.keeper.ensure();
  const direct = connect(join(context.state.keeper, 'socket'));
  t.teardown(() => direct.destroy());
  let answers = '';
  direct.on('data', (chunk) => (answers += String(chunk)));
  direct.write('{"op":"re');
  // The answer to a request on the other connection shows that the first part has been read.
  await context.keeper.request('drop', id);
  direct.write(`open","id":"${id}"}\n{"op":"drop","id":"${id}"}\nnonsense\n{`);
  await until(() => answers.split('\n').length > 3);
  const [first, second, third] = answers.split('\n').map((line) => line && JSON.parse(line));
  t.deepEqual([first, second], [{ error: 'not kept' }, {}]);
  t.regex(third.error, /JSON/);
});

onLinux('a keeper that does not start within its time is an error; the next request starts one again', async (t) => {
  const { context } = await opened(t);
  const { state } = context;
  const lock = spawn('flock', ['--no-fork', join(state.keeper, 'lock'), 'sh', '-c', 'echo held; exec sleep 60']);
  t.teardown(() => lock.kill('SIGKILL'));
  await new Promise((resolve) => lock.stdout.once('data', resolve));
  const client = new KeeperClient(state, () => {}, 50);
  t.teardown(() => client.close());
  await t.throwsAsync(client.ensure(), { code: 'Unavailable', message: 'the log keeper did not start' });
  const released = new Promise((resolve) => lock.once('close', resolve));
  lock.kill('SIGKILL');
  await released;
  let isStarted = false;
  const deadline = Date.now() + 30_000;
  while (!isStarted && Date.now() < deadline) {
    isStarted = await client.ensure().then(
      () => true,
      () => false,
    );
  }
  t.true(isStarted);
});
