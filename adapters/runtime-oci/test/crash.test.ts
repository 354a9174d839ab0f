import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { joinLog, RuntimeCaseContext, readLog } from '@keelson/conformance';
import { type HostProcess, killProcessWith, processesWith, startHostProcess } from '@keelson/test-support';
import anyTest, { type ExecutionContext } from 'ava';
import { buildImages, missing } from './support/busybox-image.ts';
import { type OpenedOci, ociHarness, openOci } from './support/oci-harness.ts';

const script = fileURLToPath(new URL('./support/crash-host.js', import.meta.url));
const test = missing.length === 0 ? anyTest.serial : anyTest.skip;
const images = missing.length === 0 ? buildImages() : undefined;
anyTest.after.always(() => images?.remove());
const options = { imageSources: images === undefined ? [] : [images.sources] };

interface Pod {
  readonly sandboxId: string;
  readonly ids: readonly string[];
}

interface Started extends Pod {
  readonly folder: string;
  readonly parent: string;
  readonly host: HostProcess<Pod>;
}

async function startHost(scripts: readonly string[]): Promise<Started> {
  const folder = await mkdtemp('/tmp/keelson-oci-crash-');
  const parent = `/${basename(folder)}`;
  mkdirSync(join(folder, 'scratch'));
  const words = scripts.map((text) => text.replaceAll('FOLDER', join(folder, 'scratch')));
  const host = await startHostProcess<Pod>(script, [folder, images?.sources ?? '', parent, ...words]);
  return { folder, parent, host, ...host.said };
}

const reopen = ({ folder, parent }: Started) =>
  openOci({ ...options, cgroups: { parent }, relistPeriodMs: 200 }, folder, false);

function contextOf(t: ExecutionContext, opened: OpenedOci): RuntimeCaseContext {
  return new RuntimeCaseContext(ociHarness('oci', opened.engine.runtime.capabilities, options), opened, (message) =>
    t.log(message),
  );
}

const pidsOf = (text: string) => processesWith([text]).map((line) => Number.parseInt(line, 10));
const monitorsOf = ({ folder }: Started) => pidsOf(`${folder}/state/monitor.sh`).sort((a, b) => a - b);

const counting = 'i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done';
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
  t.timeout(120_000);
  const endings = Array.from(
    { length: 5 },
    (_, index) => `while [ ! -e FOLDER/flag ]; do sleep 0.05; done; exit ${10 + index}`,
  );
  const started = await startHost([...Array.from({ length: 15 }, () => counting), ...endings]);
  const { folder, ids, sandboxId } = started;
  const before = monitorsOf(started);
  await started.host.kill();
  writeFileSync(join(folder, 'scratch', 'flag'), '');
  const opened = await reopen(started);
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
    t.is(before.length, 20);
    const after = monitorsOf(started);
    t.true(after.length >= 15 && after.every((pid) => before.includes(pid)), 'the monitors are the same processes');
    // Containers that a previous runtime started support every operation.
    t.is(await context.exec(ids[0]!, ['/bin/sh', '-c', 'echo $$ > /dev/null; echo in']), 'in\n');
    const more = await context.started({ kind: 'exit', code: 0 }, {}, sandboxId);
    t.is((await context.waitFor(more, 'exited')).exitCode, 0);
  } finally {
    await opened.dispose();
  }
});

test('a container survives the kill of its monitor and reaper and continues to log; its exit code is unknown', async (t) => {
  t.timeout(60_000);
  const opened = await openOci({ ...options, relistPeriodMs: 200 });
  const context = contextOf(t, opened);
  try {
    const logDirectory = join(opened.folder, 'logs');
    const id = await context.started(
      context.script(counting),
      { logPath: '0.log' },
      await context.sandbox({ logDirectory }),
    );
    const { pid = 0 } = await context.runtime.containerStatus(id);
    const reaper = Number(/^\d+ \(.*\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1]);
    const monitor = Number.parseInt(readFileSync(join(opened.folder, 'state/run', `${id}.monitor`), 'latin1'), 10);
    t.regex(readFileSync(`/proc/${reaper}/cmdline`, 'latin1'), /programs\/reaper/);
    for (const victim of [monitor, reaper]) process.kill(victim, 'SIGKILL');
    const then = await countedTo(opened.folder, 0);
    await context.until('the container continues', async () => (await countedTo(opened.folder, 0)) > then + 3);
    t.is((await context.runtime.containerStatus(id)).state, 'running');
    process.kill(pid, 'SIGKILL');
    const ended = await context.waitFor(id, 'exited');
    t.deepEqual([ended.reason, ended.exitCode], ['ContainerStatusUnknown', 137]);
  } finally {
    await opened.dispose();
  }
});

test('a killed log keeper is replaced, and output in between is in the log', async (t) => {
  t.timeout(60_000);
  const opened = await openOci(options);
  const context = contextOf(t, opened);
  try {
    const logDirectory = join(opened.folder, 'logs');
    const id = await context.started(
      context.script(countingByFive),
      { logPath: '0.log' },
      await context.sandbox({ logDirectory }),
    );
    const { pid } = await context.runtime.containerStatus(id);
    const logged = (count: number) =>
      context.until(`${count} lines in the log`, async () => (await countedTo(opened.folder, 0)) === count);
    for (let round = 0; round < 2; round += 1) {
      // Once all lines are in the log, the keeper has nothing buffered.
      await logged(5 + round * 5);
      await killProcessWith('log-keeper.js', opened.folder);
      process.kill(pid!, 'SIGUSR1');
    }
    await logged(15);
    await context.runtime.stopContainer(id, { gracePeriodMs: 30_000 });
    const { exitCode } = await context.waitFor(id, 'exited');
    t.deepEqual([exitCode, await countedTo(opened.folder, 0)], [15, 15]);
  } finally {
    await opened.dispose();
  }
});

test('after all processes were killed, containers are reported as exited, the pod is not ready, and a new pod runs', async (t) => {
  t.timeout(60_000);
  const started = await startHost([counting, 'sleep 1000 & wait', 'exit 3']);
  const { folder, ids, sandboxId } = started;
  // No process can read the exit code after the monitor was killed.
  while (!existsSync(join(folder, 'state/run', `${ids[2]}.exit`))) await delay(20);
  await started.host.kill();
  const holder = Number(readFileSync(join(folder, 'state/pods', sandboxId, 'holder/pid'), 'utf8'));
  const firsts = ids
    .slice(0, 2)
    .map((id) => Number.parseInt(readFileSync(join(folder, 'state/run', `${id}.pid`), 'latin1'), 10));
  for (const pid of [...pidsOf(folder), holder, ...firsts]) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It ended together with another process.
    }
  }
  const opened = await reopen(started);
  const context = contextOf(t, opened);
  try {
    t.is((await context.runtime.podSandboxStatus(sandboxId)).state, 'notReady');
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
  const started = await startHost([counting]);
  const { folder, ids, sandboxId } = started;
  await started.host.kill();
  const first = Number.parseInt(readFileSync(join(folder, 'state/run', `${ids[0]}.pid`), 'latin1'), 10);
  for (const pid of [...pidsOf(folder), first]) process.kill(pid, 'SIGKILL');
  // Mounts do not survive a restart.
  const mounted = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '');
  execFileSync('umount', ['--lazy', ...mounted.filter((path) => path.startsWith(folder))]);
  writeFileSync(join(folder, 'state', 'boot-id'), 'another-boot');
  const opened = await reopen(started);
  const context = contextOf(t, opened);
  try {
    t.is((await context.runtime.podSandboxStatus(sandboxId)).state, 'notReady');
    t.is((await context.waitFor(ids[0]!, 'exited')).reason, 'ContainerStatusUnknown');
  } finally {
    await opened.dispose();
  }
});

test('a runtime that is killed while it creates a pod leaves a pod that can be removed', async (t) => {
  t.timeout(60_000);
  const started = await startHost([]);
  const { folder, sandboxId } = started;
  await started.host.kill();
  // The state during the creation of a pod: marked, with an incomplete folder.
  writeFileSync(join(folder, 'state/sandboxes', `${sandboxId}.stopped`), '');
  const opened = await reopen(started);
  try {
    const { runtime } = opened.engine;
    t.is((await runtime.podSandboxStatus(sandboxId)).state, 'notReady');
    await runtime.removePodSandbox(sandboxId);
    t.deepEqual(await runtime.listPodSandboxes(), []);
  } finally {
    await opened.dispose();
  }
});
