import type { Container, Pod } from '@keelson/kinds';
import test from 'ava';
import {
  classLimits,
  limitsOfReserved,
  limitsOfShare,
  podAmounts,
  podLimits,
  podsShare,
  sharesOf,
} from '../../../src/machine/cgroups/cgroup-limits.ts';
import { CgroupNames } from '../../../src/machine/cgroups/cgroup-names.ts';
import { testPod } from '../../support/bench.ts';

type Amounts = Readonly<Record<string, string>>;

const container = (
  name: string,
  requests: Amounts,
  limits: Amounts = {},
  more: Partial<Container> = {},
): Container => ({
  name,
  image: 'app:1',
  resources: { requests, limits },
  ...more,
});
const podOf = (containers: readonly Container[], initContainers: readonly Container[] = []): Pod =>
  testPod('p', { containers: [...containers], initContainers: [...initContainers] });
const gi = 1024 ** 3;

test('the request of a pod is the sum of its containers, or its largest init container with the sidecars before it', (t) => {
  const sidecar = container('side', { cpu: '100m' }, {}, { restartPolicy: 'Always' });
  const main = [container('a', { cpu: '1', memory: '1Gi' }), container('b', { cpu: '500m' })];
  t.like(podAmounts(podOf(main)), { cpuRequest: 1500, memoryRequest: gi, cpuLimit: undefined, memoryLimit: undefined });
  t.is(podAmounts(podOf(main, [container('init', { cpu: '2' }), sidecar])).cpuRequest, 2000);
  t.is(podAmounts(podOf(main, [sidecar, container('init', { cpu: '2' })])).cpuRequest, 2100);
  t.is(podAmounts(podOf(main, [sidecar])).cpuRequest, 1600);
});

test('a pod has a limit when all its containers have one, and a limit is used as the request where none is set', (t) => {
  const both = [
    container('a', {}, { cpu: '1', memory: '1Gi' }),
    container('b', { cpu: '100m' }, { cpu: '500m', memory: '2Gi' }),
  ];
  t.deepEqual(podAmounts(podOf(both)), {
    cpuRequest: 1100,
    memoryRequest: 3 * gi,
    cpuLimit: 1500,
    memoryLimit: 3 * gi,
  });
  const one = [...both, container('c', {}, { memory: '1Gi' })];
  t.like(podAmounts(podOf(one)), { cpuLimit: undefined, memoryLimit: 4 * gi });
  t.is(podAmounts(podOf(both, [container('init', {})])).memoryLimit, undefined, 'init containers count');
});

test('cgroup limits of a pod: BestEffort has minimal shares; --cpu-cfs-quota=false removes the CPU quota', (t) => {
  const amounts = { cpuRequest: 500, memoryRequest: 0, cpuLimit: 1500, memoryLimit: gi };
  t.deepEqual(podLimits('BestEffort', { ...amounts, cpuRequest: 0 }, true), { cpuShares: 2 });
  t.deepEqual(podLimits('Burstable', { ...amounts, cpuLimit: undefined, memoryLimit: undefined }, true), {
    cpuShares: 512,
  });
  const limits = { cpuShares: 512, cpuPeriodUs: 100_000, cpuQuotaUs: 150_000, memoryLimitBytes: gi };
  t.deepEqual(podLimits('Guaranteed', amounts, true), limits);
  t.deepEqual(podLimits('Burstable', amounts, false), { ...limits, cpuQuotaUs: -1 });
  t.is(podLimits('Burstable', { ...amounts, cpuLimit: 1 }, true).cpuQuotaUs, 1_000, 'the kernel takes no less');
  t.deepEqual([0, 1, 2, 1000, 10 ** 9].map(sharesOf), [2, 2, 2, 1024, 262_144]);
});

test('--experimental-qos-reserved reserves a percentage of the requests of pods against lower QoS classes', (t) => {
  const pods = [
    { qos: 'Guaranteed', cpuRequest: 1000, memoryRequest: 1000 },
    { qos: 'Guaranteed', cpuRequest: 1000, memoryRequest: 1000 },
    { qos: 'Burstable', cpuRequest: 250, memoryRequest: 501 },
    { qos: 'Burstable', cpuRequest: 250, memoryRequest: 100 },
    { qos: 'BestEffort', cpuRequest: 0, memoryRequest: 0 },
  ] as const;
  const at = (allocatableBytes: number, percent: number | undefined) =>
    classLimits(pods, { allocatableBytes, percent });
  t.deepEqual(at(10_000, 50), {
    Burstable: { cpuShares: 512, memoryLimitBytes: 9_000 },
    BestEffort: { cpuShares: 2, memoryLimitBytes: 8_700 },
  });
  t.deepEqual(
    [at(10_000, 100), at(10_000, 0), at(1_000, 100), at(10_000, undefined)].map(({ Burstable, BestEffort }) => [
      Burstable.memoryLimitBytes,
      BestEffort.memoryLimitBytes,
    ]),
    [
      [8_000, 7_399],
      [10_000, 10_000],
      [0, 0],
      [-1, -1],
    ],
  );
});

test('the limit of all pods is the capacity of the machine minus reserved resources, without eviction thresholds', (t) => {
  const machine = { cores: 4, memoryBytes: 8 * gi + 5 };
  t.deepEqual(limitsOfShare(podsShare(machine)), { cpuShares: 4096, memoryLimitBytes: 8 * gi });
  const share = podsShare(machine, { cpu: '500m', memory: '1Gi' }, { cpu: '1', 'ephemeral-storage': '1Gi' });
  t.deepEqual(share, { cpuMilli: 2500, memoryBytes: 7 * gi });
  t.deepEqual(limitsOfReserved({ cpu: '500m' }), { cpuShares: 512 });
  t.deepEqual(limitsOfReserved({ memory: '1Gi' }), { memoryLimitBytes: gi });
  t.throws(() => podsShare(machine, { cpu: '4' }), {
    message: /--system-reserved leave no CPU of this machine to pods/,
  });
  t.throws(() => podsShare(machine, { memory: '8Gi' }), { message: /leave no memory of this machine to pods/ });
});

test('--cgroup-driver=cgroupfs names groups by their path', (t) => {
  const names = new CgroupNames({ root: undefined, driver: 'cgroupfs' });
  t.deepEqual(
    [names.root(), names.pods(), names.ofClass('Guaranteed'), names.ofClass('Burstable'), names.ofClass('BestEffort')],
    ['/', '/kubepods', '/kubepods', '/kubepods/burstable', '/kubepods/besteffort'],
  );
  t.is(names.pod('Guaranteed', 'a-b'), '/kubepods/poda-b');
  const below = new CgroupNames({ root: '/x/y/', driver: 'cgroupfs' });
  t.is(below.root(), '/x/y');
  t.is(below.pod('BestEffort', 'a/../b'), '/x/y/kubepods/besteffort/poda_.._b');
});

test('--cgroup-driver=systemd names groups as slices, each with the names of those above it', (t) => {
  const names = new CgroupNames({ root: undefined, driver: 'systemd' });
  t.deepEqual(
    [
      names.root(),
      names.pods(),
      names.ofClass('Burstable'),
      names.pod('Guaranteed', 'a-b'),
      names.pod('BestEffort', 'a-b'),
    ],
    [
      '/',
      '/kubepods.slice',
      '/kubepods.slice/kubepods-burstable.slice',
      '/kubepods.slice/kubepods-poda_b.slice',
      '/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-poda_b.slice',
    ],
  );
  t.is(new CgroupNames({ root: '/my-pods', driver: 'systemd' }).pods(), '/my_pods.slice/my_pods-kubepods.slice');
  t.is(
    new CgroupNames({ root: '/a.slice/a-b.slice', driver: 'systemd' }).pods(),
    '/a.slice/a-b.slice/a-b-kubepods.slice',
    'slices have their full names already',
  );
});
