import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '@keelson/core/runtime';
import { listeningLogger, temporaryDirectory } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { MachineError } from '../../../src/base/machine-error.ts';
import { findCgroups } from '../../../src/machine/cgroups/cgroup-tree.ts';
import { openCgroups } from '../../../src/machine/cgroups/open-cgroups.ts';
import { Placements, processTable } from '../../../src/machine/cgroups/process-placement.ts';
import { parseOptions } from '../../../src/startup/options/parse-options.ts';
import { resolveCgroups } from '../../../src/startup/options/resolve-cgroups.ts';
import { CgroupMachine } from '../../support/cgroup-machine.ts';

const configOf = (...words: string[]) => resolveCgroups(parseOptions(words));

function open(machine: CgroupMachine, ...words: string[]) {
  const logger = listeningLogger();
  const { root: mountpoint, files } = machine;
  const opened = openCgroups({ config: configOf(...words), mountpoint, clock: systemClock, logger, files });
  return { opened, lines: logger.lines };
}

test('without write access to cgroups an agent continues without them, and logs the options that disable them', async (t) => {
  const machine = new CgroupMachine(t, 1);
  machine.readOnly = true;
  const { opened, lines } = open(machine);
  t.is(await opened, undefined);
  t.is(lines.length, 1);
  t.regex(lines[0]?.message ?? '', /--cgroups-per-qos=false --enforce-node-allocatable=/);
  t.regex(String(lines[0]?.fields['reason']), /cgroup .*kubepods could not be made: EROFS/);
});

for (const word of [
  '--cgroups-per-qos',
  '--enforce-node-allocatable=pods',
  '--experimental-qos-reserved=memory=10%',
  '--agent-cgroups=/agent',
  '--runtime-cgroups=/runtime',
]) {
  test(`without write access to cgroups ${word} is an error`, async (t) => {
    const machine = new CgroupMachine(t, 2);
    machine.readOnly = true;
    const { opened, lines } = open(machine, word);
    const name = /^--[a-z-]+/.exec(word)?.[0];
    await t.throwsAsync(opened, {
      instanceOf: MachineError,
      message: new RegExp(`^${name}: cgroups cannot be used here: `),
    });
    t.deepEqual(lines, []);
  });
}

test('--cgroup-root must exist in every hierarchy, for --system-cgroups too', async (t) => {
  const machine = new CgroupMachine(t, 1);
  mkdirSync(join(machine.root, 'cpu/x'));
  const message = /--cgroup-root: there is no cgroup \/x in every hierarchy at .*; create it first/;
  await t.throwsAsync(open(machine, '--cgroup-root=/x').opened, { instanceOf: MachineError, message });
  await t.throwsAsync(open(machine, '--cgroup-root=/x', '--system-cgroups=/s').opened, { message });
  await machine.makeGroup('/x');
  t.truthy(await open(machine, '--cgroup-root=/x').opened);
  t.true(machine.groups().includes('/x/kubepods/besteffort'));
});

test('cgroups are not accessed when no option uses them', async (t) => {
  const machine = new CgroupMachine(t, 1);
  const { opened, lines } = open(machine, '--cgroups-per-qos=false', '--enforce-node-allocatable=');
  t.is(await opened, undefined);
  t.deepEqual([lines, machine.groups()], [[], []]);
});

/** Processes with programs, among which some of the kernel have none. */
function processes(root: string, programs: readonly number[], kernel: readonly number[]) {
  for (const pid of [...programs, ...kernel]) {
    mkdirSync(join(root, String(pid), 'fd'), { recursive: true });
    if (programs.includes(pid)) symlinkSync('/bin/true', join(root, String(pid), 'exe'));
  }
  return processTable(root);
}

async function placed(t: ExecutionContext, version: 1 | 2, ...words: string[]) {
  const machine = new CgroupMachine(t, version);
  machine.enter('/', 1, 2, 30, 40, 50);
  const tree = await findCgroups(machine.root, machine.files, systemClock);
  const logger = listeningLogger();
  const table = processes(await temporaryDirectory(t), [1, 30, 40, 50], [2]);
  const config = configOf(...words);
  const placements = new Placements({
    tree,
    config,
    processes: table,
    agentPid: 30,
    runtimePid: async () => 40,
    logger,
  });
  await placements.round();
  return { machine, tree, logger, placements };
}

for (const version of [1, 2] as const) {
  test(`version ${version}: --agent-cgroups and --runtime-cgroups move their processes once`, async (t) => {
    const { machine, tree, placements } = await placed(
      t,
      version,
      '--agent-cgroups=/a/agent',
      '--runtime-cgroups=/runtime',
    );
    t.deepEqual([await tree.members('/a/agent'), await tree.members('/runtime')], [[30], [40]]);
    t.deepEqual(await tree.members('/'), [1, 2, 50]);
    machine.writes.length = 0;
    await placements.round();
    t.deepEqual(machine.writes, []);
  });
}

test('--system-cgroups moves processes at the root, but neither the first process nor threads of the kernel', async (t) => {
  const { tree } = await placed(t, 1, '--system-cgroups=/system', '--cgroup-root=/', '--agent-cgroups=/agent');
  t.deepEqual(
    [await tree.members('/'), await tree.members('/system'), await tree.members('/agent')],
    [[1, 2], [40, 50], [30]],
  );
});

test('--system-cgroups does not move processes that another program has placed in a cgroup', async (t) => {
  const machine = new CgroupMachine(t, 1);
  await machine.makeGroup('/engine');
  machine.enter('/engine', 40);
  machine.set('pids/engine/cgroup.procs', '');
  machine.set('pids/cgroup.procs', '40\n');
  const tree = await findCgroups(machine.root, machine.files, systemClock);
  const table = processes(await temporaryDirectory(t), [40], []);
  const config = configOf('--system-cgroups=/system');
  const logger = listeningLogger();
  await new Placements({
    tree,
    config,
    processes: table,
    agentPid: 30,
    runtimePid: async () => undefined,
    logger,
  }).round();
  t.deepEqual([machine.read('pids/system/cgroup.procs'), machine.read('memory/engine/cgroup.procs')], ['40', '40']);
});

test('processes that cannot be moved are reported once, and retried', async (t) => {
  const { machine, tree, logger, placements } = await placed(t, 1);
  t.deepEqual(logger.lines, []);
  machine.readOnly = true;
  const table = processTable('/nonexistent');
  const config = configOf('--agent-cgroups=/agent');
  const failing = new Placements({
    tree,
    config,
    processes: table,
    agentPid: 30,
    runtimePid: async () => undefined,
    logger,
  });
  await failing.round();
  await failing.round();
  t.is(logger.lines.length, 1);
  machine.readOnly = false;
  await failing.round();
  t.deepEqual(await tree.members('/agent'), [30]);
  t.truthy(placements);
});
