import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { silentLogger } from '@keelson/core/runtime';
import type { Container, Pod } from '@keelson/kinds';
import test, { type ExecutionContext } from 'ava';
import { openCgroups } from '../../../src/machine/cgroups/open-cgroups.ts';
import { processTable } from '../../../src/machine/cgroups/process-placement.ts';
import { type Bench, type BenchOptions, startBench, testPod } from '../../support/bench.ts';
import { CgroupMachine } from '../../support/cgroup-machine.ts';

type Amounts = Readonly<Record<string, string>>;

/** An agent with these options on a machine whose cgroups are files. */
function start(
  t: ExecutionContext,
  machine: CgroupMachine,
  words: readonly string[],
  options: BenchOptions = {},
): Promise<Bench> {
  return startBench(t, {
    words,
    images: ['app:1'],
    cgroups: async ({ cgroups: config }, clock) => {
      const tree = await openCgroups({
        config,
        mountpoint: machine.root,
        clock,
        logger: silentLogger,
        files: machine.files,
      });
      const processes = processTable('/nonexistent');
      return tree && { tree, processes, agentPid: 4711, runtimePid: () => Promise.resolve(undefined) };
    },
    ...options,
  });
}

const amounts = (requests: Amounts, limits: Amounts = {}): Container => ({
  name: 'main',
  image: 'app:1',
  imagePullPolicy: 'IfNotPresent',
  resources: { requests, limits },
});

function podOf(name: string, uid: string, requests: Amounts, limits: Amounts = {}): Pod {
  const pod = testPod(name, { containers: [amounts(requests, limits)], terminationGracePeriodSeconds: 1 });
  return { ...pod, metadata: { ...pod.metadata, uid } };
}

const guaranteed = () => podOf('g', 'uid-g', { cpu: '1', memory: '1Gi' }, { cpu: '1', memory: '1Gi' });
const burstable = () => podOf('b', 'uid-b', { cpu: '250m' }, { cpu: '500m', memory: '64Mi' });
const bestEffort = () => podOf('e', 'uid-e', {});

const running = (bench: Bench, count: number) => () =>
  bench.containers('main').filter(({ state }) => state === 'running').length === count;

const parents = ({ world }: Bench) => [...world.sandboxes.values()].map(({ config }) => config.cgroupParent).sort();

/** The files that differ from what the kernel makes of a new group. */
function filesOf(machine: CgroupMachine, paths: readonly string[]): Record<string, string> {
  return Object.fromEntries(paths.map((path) => [path, machine.read(path)]));
}

test('version 1: --cgroups-per-qos places pods by their QoS class, with exactly these files', async (t) => {
  const machine = new CgroupMachine(t, 1);
  const bench = await start(t, machine, ['--cluster-reserved=cpu=500m,memory=1Gi', '--system-reserved=memory=1Gi']);
  bench.pods.put(guaranteed(), burstable(), bestEffort());
  await bench.until(running(bench, 3));
  const groups = [
    '/kubepods',
    '/kubepods/besteffort',
    '/kubepods/besteffort/poduid-e',
    '/kubepods/burstable',
    '/kubepods/burstable/poduid-b',
    '/kubepods/poduid-g',
  ];
  for (const hierarchy of ['cpu', 'cpuset', 'memory', 'pids']) t.deepEqual(machine.groups(hierarchy), groups);
  const expected = {
    'cpu/kubepods/cpu.shares': '3584',
    'memory/kubepods/memory.limit_in_bytes': String(6 * 1024 ** 3),
    'cpu/kubepods/burstable/cpu.shares': '256',
    'memory/kubepods/burstable/memory.limit_in_bytes': '-1',
    'cpu/kubepods/besteffort/cpu.shares': '2',
    'cpu/kubepods/poduid-g/cpu.shares': '1024',
    'cpu/kubepods/poduid-g/cpu.cfs_period_us': '100000',
    'cpu/kubepods/poduid-g/cpu.cfs_quota_us': '100000',
    'memory/kubepods/poduid-g/memory.limit_in_bytes': String(1024 ** 3),
    'cpu/kubepods/burstable/poduid-b/cpu.shares': '256',
    'cpu/kubepods/burstable/poduid-b/cpu.cfs_quota_us': '50000',
    'memory/kubepods/burstable/poduid-b/memory.limit_in_bytes': String(64 * 1024 ** 2),
    'cpu/kubepods/besteffort/poduid-e/cpu.shares': '2',
    'cpu/kubepods/besteffort/poduid-e/cpu.cfs_quota_us': '-1',
    'memory/kubepods/besteffort/poduid-e/memory.limit_in_bytes': '9223372036854771712',
    'cpuset/kubepods/poduid-g/cpuset.cpus': '0-3',
  };
  t.deepEqual(filesOf(machine, Object.keys(expected)), expected);
  t.deepEqual(parents(bench), ['/kubepods/besteffort/poduid-e', '/kubepods/burstable/poduid-b', '/kubepods/poduid-g']);
});

test('version 2: --cgroup-driver=systemd places pods below --cgroup-root, by their QoS class', async (t) => {
  const machine = new CgroupMachine(t, 2);
  await machine.makeGroup('/test.slice');
  const words = [
    '--cgroup-root=/test',
    '--cgroup-driver=systemd',
    '--cpu-cfs-quota=false',
    '--enforce-node-allocatable=',
  ];
  const bench = await start(t, machine, [...words, '--cluster-reserved=cpu=1']);
  bench.pods.put(guaranteed(), burstable());
  await bench.until(running(bench, 2));
  const pods = 'test.slice/test-kubepods.slice';
  const pod = `${pods}/test-kubepods-poduid_g.slice`;
  const burst = `${pods}/test-kubepods-burstable.slice`;
  const expected = {
    [`${pods}/cpu.weight`]: '157',
    [`${pods}/memory.max`]: String(8 * 1024 ** 3),
    [`${pods}/test-kubepods-besteffort.slice/cpu.weight`]: '1',
    [`${burst}/cpu.weight`]: '10',
    [`${burst}/memory.max`]: 'max',
    [`${pod}/cpu.weight`]: '39',
    [`${pod}/cpu.max`]: 'max 100000',
    [`${pod}/memory.max`]: String(1024 ** 3),
    [`${burst}/test-kubepods-burstable-poduid_b.slice/memory.max`]: String(64 * 1024 ** 2),
  };
  t.deepEqual(filesOf(machine, Object.keys(expected)), expected);
  t.deepEqual(parents(bench), [`/${burst}/test-kubepods-burstable-poduid_b.slice`, `/${pod}`].sort());
});

test('a removed or finished pod leaves no cgroup and no process behind', async (t) => {
  const machine = new CgroupMachine(t, 1);
  const bench = await start(t, machine, []);
  const [removed, ended] = [burstable(), testPod('once', { restartPolicy: 'Never' })];
  const endedGroup = `/kubepods/besteffort/pod${ended.metadata?.uid}`;
  bench.pods.put(removed, ended);
  await bench.until(running(bench, 2));
  machine.enter('/kubepods/burstable/poduid-b', 1001);
  machine.enter(endedGroup, 1002);
  t.is(machine.read('cpu/kubepods/burstable/cpu.shares'), '256');
  const own = [...bench.world.containers.values()].find(({ sandbox }) => sandbox.config.metadata.name === 'once');
  bench.world.exit(own?.id ?? '', 0);
  bench.pods.remove(removed);
  await bench.until(() => machine.groups().length === 3);
  t.deepEqual([...new Set(machine.killed)].sort(), [1001, 1002]);
  // Its class weighs less again.
  await bench.until(() => machine.read('cpu/kubepods/burstable/cpu.shares') === '2');
  t.is(bench.status(ended).phase, 'Succeeded');
});

test('cgroups of removed pods are deleted by the next agent, unrelated cgroups are kept', async (t) => {
  const machine = new CgroupMachine(t, 1);
  const bench = await start(t, machine, []);
  const pod = burstable();
  bench.pods.put(pod, guaranteed());
  await bench.until(running(bench, 2));
  await machine.makeGroup('/kubepods/burstable/podsomebody');
  await bench.agent.stop();
  bench.pods.remove(pod);
  bench.world.sandboxes.clear();
  bench.world.containers.clear();
  await bench.again();
  await bench.until(() => !machine.groups().includes('/kubepods/burstable/poduid-b'));
  await bench.until(() => !readdirSync(join(bench.rootDir, 'agent/pods')).includes('uid-b'));
  t.true(machine.groups().includes('/kubepods/burstable/podsomebody'));
  t.true(machine.groups().includes('/kubepods/poduid-g'));
});

test('a cgroup that another program removed is created again within a minute', async (t) => {
  const machine = new CgroupMachine(t, 2);
  const bench = await start(t, machine, []);
  bench.pods.put(guaranteed());
  await bench.until(running(bench, 1));
  await machine.files.remove(join(machine.root, 'kubepods/poduid-g'));
  await bench.pass(61_000, 1_000);
  t.is(machine.read('kubepods/poduid-g/memory.max'), String(1024 ** 3));
});

test('a pod whose cgroup cannot be created waits, with an event', async (t) => {
  const machine = new CgroupMachine(t, 1);
  const bench = await start(t, machine, []);
  machine.readOnly = true;
  bench.pods.put(bestEffort());
  await bench.until(() => bench.events.some(({ reason }) => reason === 'FailedToCreatePodContainer'));
  t.is(bench.containers().length, 0);
  machine.readOnly = false;
  await bench.until(running(bench, 1));
});

test('--experimental-qos-reserved limits the memory of lower QoS classes, never below their usage', async (t) => {
  const machine = new CgroupMachine(t, 1);
  const bench = await start(t, machine, ['--experimental-qos-reserved=memory=50%', '--system-reserved=memory=4Gi']);
  const limit = (group: string) => Number(machine.read(`memory/kubepods/${group}/memory.limit_in_bytes`)) / 1024 ** 3;
  await bench.until(() => limit('burstable') === 4);
  machine.set('memory/kubepods/besteffort/memory.usage_in_bytes', String(3.75 * 1024 ** 3));
  bench.pods.put(guaranteed());
  await bench.until(running(bench, 1));
  t.deepEqual([limit('burstable'), limit('besteffort')], [3.5, 3.75]);
});

test('--enforce-node-allocatable: reserved cgroups get their limits, and a missing one is reported by an event', async (t) => {
  const machine = new CgroupMachine(t, 1);
  await machine.makeGroup('/cluster');
  const bench = await start(t, machine, [
    '--enforce-node-allocatable=pods,cluster-reserved,system-reserved',
    '--cluster-reserved=cpu=500m,memory=1Gi',
    '--cluster-reserved-cgroup=/cluster',
    '--system-reserved=memory=512Mi',
    '--system-reserved-cgroup=/system',
  ]);
  const events = () => bench.events.filter(({ reason }) => reason === 'FailedNodeAllocatableEnforcement');
  t.is(machine.read('cpu/cluster/cpu.shares'), '512');
  t.is(machine.read('memory/cluster/memory.limit_in_bytes'), String(1024 ** 3));
  t.like(events()[0], { type: 'Warning', pod: 'node-1' });
  t.regex(events()[0]?.message ?? '', /limits of system-reserved on the cgroup \/system: there is no cgroup \/system/);
  await bench.pass(61_000, 1_000);
  t.is(events().length, 1, 'once');
  await machine.makeGroup('/system');
  await bench.until(() => machine.read('memory/system/memory.limit_in_bytes') === String(512 * 1024 ** 2));
});

test('--cgroups-per-qos=false: pods have no cgroups of their own, and are placed in --cgroup-root', async (t) => {
  const machine = new CgroupMachine(t, 1);
  await machine.makeGroup('/apps');
  const words = ['--cgroups-per-qos=false', '--enforce-node-allocatable='];
  const bench = await start(t, machine, [...words, '--cgroup-root=/apps']);
  bench.pods.put(bestEffort());
  await bench.until(running(bench, 1));
  t.deepEqual(parents(bench), ['/apps']);
  t.deepEqual(machine.groups(), ['/apps']);
  const other = await start(t, machine, words);
  other.pods.put(bestEffort());
  await other.until(running(other, 1));
  t.deepEqual(parents(other), [undefined]);
});
