import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CgroupError, systemCgroupFiles, weightOf } from '@keelson/container-host';
import { FakeClock, systemClock } from '@keelson/core/runtime';
import { temporaryDirectory } from '@keelson/test-support';
import test from 'ava';
import { findCgroups } from '../../../src/machine/cgroups/cgroup-tree.ts';
import { CgroupMachine } from '../../support/cgroup-machine.ts';

const limits = { cpuShares: 512, cpuPeriodUs: 100_000, cpuQuotaUs: 50_000, memoryLimitBytes: 1 << 20 };
/** Lets time pass until the work is over. */
async function whilePassing<T>(clock: FakeClock, work: Promise<T>): Promise<T> {
  let over = false;
  work.finally(() => (over = true)).catch(() => {});
  while (!over) {
    clock.advance(20);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return work;
}

const without = { cpuQuotaUs: -1, memoryLimitBytes: -1 };

test('a cgroup of version 1 exists in every hierarchy, with its limits in the files of their controllers', async (t) => {
  const machine = new CgroupMachine(t, 1);
  const tree = await findCgroups(machine.root, machine.files, systemClock);
  await tree.create('/a/b');
  t.true(await tree.exists('/a/b'));
  for (const name of ['cpu', 'cpuset', 'memory', 'pids']) t.deepEqual(machine.groups(name), ['/a', '/a/b']);
  t.deepEqual(machine.groups('freezer'), [], 'nothing is made where nothing is limited');
  t.deepEqual(
    machine.writes,
    ['a/cpuset.cpus = 0-3', 'a/cpuset.mems = 0', 'a/b/cpuset.cpus = 0-3', 'a/b/cpuset.mems = 0'].map(
      (line) => `cpuset/${line}`,
    ),
  );
  machine.writes.length = 0;
  await tree.limit('/a/b', limits);
  await tree.limit('/a/b', without);
  t.deepEqual(machine.writes, [
    'cpu/a/b/cpu.shares = 512',
    'cpu/a/b/cpu.cfs_period_us = 100000',
    'cpu/a/b/cpu.cfs_quota_us = 50000',
    'memory/a/b/memory.limit_in_bytes = 1048576',
    'cpu/a/b/cpu.cfs_quota_us = -1',
    'memory/a/b/memory.limit_in_bytes = -1',
  ]);
});

test('a cgroup of version 2 has controllers enabled from the root down, and weights instead of shares', async (t) => {
  const machine = new CgroupMachine(t, 2);
  const tree = await findCgroups(machine.root, machine.files, systemClock);
  await tree.create('/a/b');
  await tree.create('/a/c');
  t.deepEqual(machine.groups(), ['/a', '/a/b', '/a/c']);
  t.deepEqual(
    machine.writes,
    ['', 'a/'].flatMap((folder) =>
      ['cpu', 'cpuset', 'memory', 'pids'].map((name) => `${folder}cgroup.subtree_control = +${name}`),
    ),
    'once each',
  );
  machine.writes.length = 0;
  await tree.limit('/a/b', limits);
  await tree.limit('/a/b', without);
  t.deepEqual(machine.writes, [
    'a/b/cpu.weight = 20',
    'a/b/cpu.max = 50000 100000',
    'a/b/memory.max = 1048576',
    'a/b/cpu.max = max 100000',
    'a/b/memory.max = max',
  ]);
  t.deepEqual([0, 2, 1024, 262_144, 1 << 20].map(weightOf), [1, 1, 39, 10_000, 10_000]);
});

test('on a machine with both versions each controller is used in the version that has it', async (t) => {
  const machine = new CgroupMachine(t, 1);
  for (const [name, controllers] of [['unified', 'hugetlb']] as const) {
    mkdirSync(join(machine.root, name));
    writeFileSync(join(machine.root, name, 'cgroup.procs'), '');
    writeFileSync(join(machine.root, name, 'cgroup.controllers'), controllers);
  }
  // Distributions mount these together, and have links with their names.
  symlinkSync('cpu', join(machine.root, 'cpuacct'));
  const tree = await findCgroups(machine.root, machine.files, systemClock);
  await tree.create('/a');
  t.deepEqual(machine.groups('unified'), []);
  await tree.limit('/a', { cpuShares: 2 });
  t.deepEqual(
    machine.writes.filter((line) => line.startsWith('cpu/')),
    ['cpu/a/cpu.shares = 2'],
    'once',
  );
});

for (const version of [1, 2] as const) {
  test(`version ${version}: processes are moved to a cgroup, and killed when it is removed with its children`, async (t) => {
    const machine = new CgroupMachine(t, version);
    const clock = new FakeClock();
    const tree = await findCgroups(machine.root, machine.files, clock);
    await tree.create('/a/b');
    await tree.create('/c');
    machine.enter('/', 0, 1, 41, 42);
    await tree.attach('/a', 41);
    await tree.attach('/a/b', 42);
    await tree.attach('/c', 1);
    t.deepEqual(await tree.members('/a'), [41]);
    t.true(await tree.isMember('/a/b', 42));
    t.false(await tree.isMember('/a', 42));
    t.deepEqual(await tree.members('/'), [], 'number 0 is of another namespace');
    await whilePassing(clock, tree.remove('/a'));
    t.deepEqual([...new Set(machine.killed)], [42, 41], 'from the bottom up');
    t.true(clock.monotonic() >= 500, 'monitors of runtimes may finish');
    t.deepEqual(machine.groups(), ['/c']);
    await tree.remove('/a');
    await t.throwsAsync(tree.remove('/'), { instanceOf: CgroupError });
    await t.throwsAsync(tree.limit('/a', { cpuShares: 2 }), { instanceOf: CgroupError, message: /no cgroup \/a/ });
    await t.throwsAsync(tree.attach('/a', 7), { instanceOf: CgroupError, message: /process 7 .*no such cgroup/ });
  });
}

test('cgroups that runtimes left in other hierarchies are removed too', async (t) => {
  const machine = new CgroupMachine(t, 1);
  const tree = await findCgroups(machine.root, machine.files, systemClock);
  await machine.makeGroup('/a/container');
  t.deepEqual(machine.groups('freezer'), ['/a', '/a/container']);
  await tree.remove('/a');
  t.deepEqual(machine.groups('freezer'), []);
});

test('a cgroup that the kernel does not remove within two seconds of killing its processes is an error', async (t) => {
  const machine = new CgroupMachine(t, 2);
  const clock = new FakeClock();
  const tree = await findCgroups(machine.root, machine.files, clock);
  await tree.create('/a');
  machine.enter('/a', 42);
  machine.immortal.add(42);
  await t.throwsAsync(whilePassing(clock, tree.remove('/a')), {
    instanceOf: CgroupError,
    message: /cgroup \/a could not be removed: EBUSY/,
  });
  t.is(machine.killed.length, 100);
});

test('a machine without hierarchies of cpu and memory has no cgroup support', async (t) => {
  const root = await temporaryDirectory(t);
  const find = () => findCgroups(root, systemCgroupFiles, systemClock);
  await t.throwsAsync(find(), { instanceOf: CgroupError, message: /no cgroup hierarchy with cpu and memory at / });
  writeFileSync(join(root, 'cgroup.controllers'), 'cpu pids\n');
  await t.throwsAsync(find(), { message: /no cgroup hierarchy with memory at / });
});

test('cgroup files: a missing file is not created, and an existing folder is kept', async (t) => {
  const root = await temporaryDirectory(t);
  const files = systemCgroupFiles;
  t.false(await files.write(join(root, 'cpu.shares'), '2'));
  t.is(await files.read(join(root, 'cpu.shares')), undefined);
  writeFileSync(join(root, 'cpu.shares'), '1024\n');
  t.true(await files.write(join(root, 'cpu.shares'), '2'));
  t.is(await files.read(join(root, 'cpu.shares')), '2');
  await files.make(join(root, 'a'));
  await files.make(join(root, 'a'));
  t.deepEqual(await files.folders(root), ['a']);
  await files.remove(join(root, 'a'));
  await files.remove(join(root, 'a'));
  t.false(await files.isFolder(join(root, 'a')));
  t.notThrows(() => files.kill(2 ** 22 + 1), 'one that has ended');
});
