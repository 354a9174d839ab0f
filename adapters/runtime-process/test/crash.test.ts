import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { joinLog, RuntimeCaseContext, readLog } from '@keelson/conformance';
import { signalProcess } from '@keelson/container-host';
import { type HostProcess, killProcessWith, processesWith, startHostProcess } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { type OpenedProcess, openProcess, processHarness } from './support/process-harness.ts';

const script = fileURLToPath(new URL('./support/crash-host.js', import.meta.url));

interface Pod {
  readonly sandboxId: string;
  readonly ids: readonly string[];
}

interface Started extends Pod {
  readonly folder: string;
  readonly host: HostProcess<Pod>;
}

async function startHost(scripts: readonly string[]): Promise<Started> {
  const folder = await mkdtemp('/tmp/keelson-crash-');
  const host = await startHostProcess<Pod>(script, [folder, ...scripts]);
  return { folder, host, ...host.said };
}

function contextOf(t: ExecutionContext, opened: OpenedProcess): RuntimeCaseContext {
  return new RuntimeCaseContext(processHarness('process', opened.engine.runtime.capabilities), opened, (message) =>
    t.log(message),
  );
}

function pidsOf(...texts: readonly string[]): number[] {
  return processesWith(texts, { environment: true }).map((line) => Number.parseInt(line, 10));
}

/** Kills all processes with one of the texts, until none is left: one that changes its program is not found. */
async function killEverything(texts: readonly string[]): Promise<void> {
  for (let pids = pidsOf(...texts); pids.length > 0; pids = pidsOf(...texts)) {
    for (const pid of pids) signalProcess(pid, 'SIGKILL');
    await delay(10);
  }
}

const counting = 'i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done';
/** Counts to five, and further by five with each SIGUSR1. Its exit code is the count. */
const countingByFive =
  'i=0; five() { for _ in 1 2 3 4 5; do i=$((i+1)); echo $i; done; }; trap five USR1; trap "stop=1" TERM; five; while [ -z "$stop" ]; do sleep 0.05; done; exit $i';

async function countedTo(folder: string, position: number): Promise<number> {
  const text = joinLog(await readLog(join(folder, 'logs', `${position}.log`)), 'stdout').toString();
  const lines = text.split('\n').slice(0, -1).map(Number);
  lines.forEach((value, index) => {
    if (value !== index + 1) throw new Error(`line ${index + 1} of the log is ${value}`);
  });
  return lines.length;
}

test('twenty containers survive the kill of their runtime: all are adopted, none restarts, exit codes are reported', async (t) => {
  t.timeout(100_000);
  const endings = Array.from(
    { length: 5 },
    (_, index) => `while [ ! -e FLAG ]; do sleep 0.05; done; exit ${10 + index}`,
  );
  const flag = `/tmp/keelson-crash-flag-${process.pid}`;
  const scripts = [
    ...Array.from({ length: 15 }, () => counting),
    ...endings.map((script) => script.replace('FLAG', flag)),
  ];
  const { folder, host, ids, sandboxId } = await startHost(scripts);
  const before = pidsOf(`${folder}/state`).sort();
  await host.kill();
  writeFileSync(flag, '');
  const opened = await openProcess({}, folder);
  const context = contextOf(t, opened);
  try {
    t.is((await context.runtime.podSandboxStatus(sandboxId)).state, 'ready');
    t.is((await context.runtime.listContainers()).length, 20);
    for (const [index] of endings.entries())
      t.is((await context.waitFor(ids[15 + index]!, 'exited')).exitCode, 10 + index);
    for (const id of ids.slice(0, 15)) t.is((await context.runtime.containerStatus(id)).state, 'running');
    const counts = await Promise.all(Array.from({ length: 15 }, (_, index) => countedTo(folder, index)));
    await context.until('all containers continue', async () => {
      const now = await Promise.all(counts.map((_, index) => countedTo(folder, index)));
      return now.every((count, index) => count > counts[index]!);
    });
    const after = pidsOf(`${folder}/state`);
    t.true(after.filter((pid) => before.includes(pid)).length >= 15, 'the monitors are the same processes');
  } finally {
    rmSync(flag, { force: true });
    await opened.dispose();
  }
});

test('a killed log keeper is replaced, and output in between is in the log', async (t) => {
  t.timeout(60_000);
  const opened = await openProcess();
  const context = contextOf(t, opened);
  try {
    const logDirectory = join(opened.folder, 'logs');
    const sandboxId = await context.sandbox({ logDirectory });
    const id = await context.started(context.script(countingByFive), { logPath: '0.log' }, sandboxId);
    const { pid } = await context.runtime.containerStatus(id);
    const logged = (count: number) =>
      context.until(`${count} lines in the log`, async () => (await countedTo(opened.folder, 0)) === count);
    for (let round = 0; round < 3; round += 1) {
      // Once all lines are in the log, the keeper has nothing buffered.
      await logged(5 + round * 5);
      await killProcessWith('log-keeper.js', opened.folder);
      process.kill(pid!, 'SIGUSR1');
    }
    await logged(20);
    await context.runtime.stopContainer(id, { gracePeriodMs: 30_000 });
    const { exitCode } = await context.waitFor(id, 'exited');
    t.deepEqual([exitCode, await countedTo(opened.folder, 0)], [20, 20]);
  } finally {
    await opened.dispose();
  }
});

test('a container continues after its monitor is killed; its end is reported, its exit code is unknown', async (t) => {
  t.timeout(60_000);
  const opened = await openProcess({ relistPeriodMs: 200 });
  const context = contextOf(t, opened);
  try {
    const [id, neighbour] = [await context.started({ kind: 'run' }), await context.started({ kind: 'run' })];
    const killMonitorOf = (container: string) =>
      process.kill(
        Number.parseInt(readFileSync(join(opened.folder, 'state/run', `${container}.monitor`), 'latin1'), 10),
        'SIGKILL',
      );
    killMonitorOf(id);
    killMonitorOf(neighbour);
    process.kill((await context.runtime.containerStatus(neighbour)).pid!, 'SIGKILL');
    // The inspection that finds the end of the other container has inspected both.
    await context.waitFor(neighbour, 'exited');
    const status = await context.runtime.containerStatus(id);
    t.is(status.state, 'running');
    process.kill(status.pid!, 'SIGKILL');
    const ended = await context.waitFor(id, 'exited');
    t.is(ended.reason, 'ContainerStatusUnknown');
    t.is(ended.exitCode, 137);
  } finally {
    await opened.dispose();
  }
});

test('after all processes were killed, containers are reported as exited, and a new pod runs', async (t) => {
  t.timeout(60_000);
  const { folder, host, ids, sandboxId } = await startHost([counting, counting, 'exit 3']);
  // No process can read the exit code after the monitor was killed.
  while (!existsSync(join(folder, 'state/run', `${ids[2]}.exit`))) await delay(20);
  await host.kill();
  await killEverything([folder, ...ids]);
  const opened = await openProcess({}, folder);
  const context = contextOf(t, opened);
  try {
    t.is((await context.runtime.podSandboxStatus(sandboxId)).state, 'ready');
    for (const id of ids.slice(0, 2)) t.is((await context.waitFor(id, 'exited')).exitCode, 137);
    t.is((await context.waitFor(ids[2]!, 'exited')).exitCode, 3);
    const next = await context.started({ kind: 'exit', code: 0 });
    t.is((await context.waitFor(next, 'exited')).exitCode, 0);
  } finally {
    await opened.dispose();
  }
});

test('after a restart of the host, sandboxes are not ready and containers have exited', async (t) => {
  t.timeout(60_000);
  const { folder, host, ids, sandboxId } = await startHost([counting]);
  await host.kill();
  await killEverything([folder, ...ids]);
  writeFileSync(join(folder, 'state', 'boot-id'), 'another-boot');
  const opened = await openProcess({}, folder);
  const context = contextOf(t, opened);
  try {
    t.is((await context.runtime.podSandboxStatus(sandboxId)).state, 'notReady');
    t.is((await context.waitFor(ids[0]!, 'exited')).reason, 'ContainerStatusUnknown');
  } finally {
    await opened.dispose();
  }
});
