import { mkdirSync, readFileSync, rmdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { runRuntimeCase, runtimeCases } from '@keelson/conformance';
import { Cgroups } from '@keelson/container-monitor';
import test from 'ava';
import { openProcess, processHarness } from './support/process-harness.ts';

/** Below the group that this process is in, so that nothing escapes the limits that it is under itself. */
const ownMemoryGroup = /^\d+:memory:(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1];
const parent = ownMemoryGroup === undefined ? undefined : join(ownMemoryGroup, `keelson-test-${process.pid}`);
const real = await Cgroups.find({});

const limits = { cpuShares: 512, cpuQuotaUs: 50_000, cpuPeriodUs: 100_000, memoryLimitBytes: 1 << 25, pidsLimit: 10 };

test('limits are written in the words of version 2, from the root down', async (t) => {
  const mountpoint = await mkdtemp('/tmp/keelson-cgroup-');
  t.teardown(() => rmSync(mountpoint, { recursive: true }));
  writeFileSync(join(mountpoint, 'cgroup.controllers'), 'cpuset cpu io memory pids\n');
  const cgroups = await Cgroups.find({ mountpoint, parent: '/parent' });
  t.true(cgroups.has('memory') && cgroups.has('cpu') && cgroups.has('pids') && cgroups.has('cpuset'));
  const folder = join(mountpoint, 'parent/sandbox/container');
  mkdirSync(folder, { recursive: true });
  for (const file of ['cpu.weight', 'cpu.max', 'memory.max', 'memory.swap.max', 'pids.max'])
    writeFileSync(join(folder, file), '');
  t.deepEqual(await cgroups.create(undefined, 'sandbox', 'container', limits), [folder]);
  const read = (file: string) => readFileSync(join(folder, file), 'utf8');
  t.deepEqual(['cpu.weight', 'cpu.max', 'memory.max', 'memory.swap.max', 'pids.max'].map(read), [
    '20',
    '50000 100000',
    '33554432',
    '0',
    '10',
  ]);
  await cgroups.update([folder], { memoryLimitBytes: -1, cpuQuotaUs: -1 });
  t.deepEqual(['memory.max', 'cpu.max'].map(read), ['max', 'max 100000']);
  t.is(readFileSync(join(mountpoint, 'parent/cgroup.subtree_control'), 'utf8'), '+pids');
  writeFileSync(join(folder, 'memory.events'), 'low 0\noom 1\noom_kill 1\n');
  t.true(await cgroups.ranOutOfMemory([folder]));
  writeFileSync(join(folder, 'memory.current'), '1000\n');
  writeFileSync(join(folder, 'memory.stat'), 'anon 5\ninactive_file 300\n');
  t.deepEqual(await cgroups.memory([folder]), { usageBytes: 1000, workingSetBytes: 700 });
});

test('limits are written in the words of version 1, and new cpusets take after their parent', async (t) => {
  const mountpoint = await mkdtemp('/tmp/keelson-cgroup-');
  t.teardown(() => rmSync(mountpoint, { recursive: true }));
  for (const name of ['memory', 'cpu', 'cpuset']) {
    mkdirSync(join(mountpoint, name, 'pods/sandbox/container'), { recursive: true });
    writeFileSync(join(mountpoint, name, 'cgroup.procs'), '');
  }
  const file = (path: string) => join(mountpoint, path);
  for (const level of ['', '/pods', '/pods/sandbox', '/pods/sandbox/container']) {
    for (const name of ['cpuset.cpus', 'cpuset.mems'])
      writeFileSync(file(`cpuset${level}/${name}`), level === '' ? '0-1' : '\n');
  }
  writeFileSync(file('memory/pods/sandbox/container/memory.limit_in_bytes'), '');
  writeFileSync(file('cpu/pods/sandbox/container/cpu.cfs_quota_us'), '');
  const cgroups = await Cgroups.find({ mountpoint });
  t.false(cgroups.has('pids'));
  const folders = await cgroups.create('/pods', 'sandbox', 'container', { ...limits, cpusetCpus: '1' });
  t.is(folders.length, 3);
  t.is(readFileSync(file('memory/pods/sandbox/container/memory.limit_in_bytes'), 'utf8'), '33554432');
  t.is(readFileSync(file('cpu/pods/sandbox/container/cpu.cfs_quota_us'), 'utf8'), '50000');
  t.is(readFileSync(file('cpuset/pods/sandbox/cpuset.cpus'), 'utf8'), '0-1');
  t.is(readFileSync(file('cpuset/pods/sandbox/container/cpuset.cpus'), 'utf8'), '1');
});

test('a machine without cgroups is reported as such, and no operation fails', async (t) => {
  const none = await Cgroups.find({ mountpoint: '/no/such/folder' });
  t.false(none.has('memory'));
  t.deepEqual(await none.create(undefined, 's', 'c', limits), []);
  t.false(await none.ranOutOfMemory([]));
});

(parent !== undefined && real.has('memory') ? test : test.skip)(
  'the kernel enforces the memory limit, and its kill is told from others',
  async (t) => {
    t.timeout(60_000);
    // Memory only: a folder that has nothing but that hierarchy.
    const mountpoint = await mkdtemp('/tmp/keelson-cgroup-');
    symlinkSync('/sys/fs/cgroup/memory', join(mountpoint, 'memory'));
    t.teardown(() => rmSync(mountpoint, { recursive: true }));
    const options = { cgroups: { mountpoint, parent: parent! } };
    const probe = await openProcess(options);
    const { capabilities } = probe.engine.runtime;
    await probe.dispose();
    t.true(capabilities.memoryLimits);
    const oom = runtimeCases.find(({ id }) => id === 'stop.out-of-memory')!;
    const harness = processHarness('process', capabilities, options);
    for (const id of [
      oom.id,
      'stop.kills-after-the-grace-period',
      'stop.ends-descendants',
      'container.update-resources',
      'sandbox.remove-removes-its-containers',
    ]) {
      await runRuntimeCase(harness, runtimeCases.find((entry) => entry.id === id)!);
    }
    await harness[Symbol.asyncDispose]();
    // Fails unless every group below was removed.
    rmdirSync(join('/sys/fs/cgroup/memory', parent!));
  },
);
