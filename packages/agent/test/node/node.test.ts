import { FakeClock } from '@keelson/core/runtime';
import test from 'ava';
import { withNamedAddress } from '../../src/node/named-address.ts';
import { NodeAddressError, nodeIps } from '../../src/node/node-addresses.ts';
import { newNode, reconcilePatch } from '../../src/node/node-object.ts';
import { nodeAllocatable, nodeCapacity } from '../../src/node/node-resources.ts';
import { nodeConditions } from '../../src/node/node-status.ts';
import { configurationRejection, permanentRejection, podCapacity } from '../../src/pods/pod-admission.ts';
import { machine, startBench, testConfig, testPod, wordsConfig } from '../support/bench.ts';

const config = testConfig('/x');

test('the address of the node is one of its own addresses, and neither loopback nor multicast', (t) => {
  const here = { addresses: ['192.0.2.1', '2001:db8::1', '192.0.2.2'] };
  t.deepEqual(nodeIps(undefined, here), ['192.0.2.1', '2001:db8::1']);
  t.deepEqual(nodeIps('192.0.2.2', here), ['192.0.2.2']);
  t.deepEqual(nodeIps(undefined, { addresses: [] }), []);
  for (const ip of ['127.0.0.1', '::1', '224.0.0.1', 'ff02::1', '203.0.113.1', 'word']) {
    t.throws(() => nodeIps(ip, here), { instanceOf: NodeAddressError }, ip);
  }
});

test('without --node-ip the address of the host name is preferred when the machine has it', async (t) => {
  const addresses = ['192.0.2.1', '2001:db8::1', '192.0.2.2'];
  const clock = new FakeClock();
  const firstOf = async (name: string, find?: () => Promise<readonly string[]>) =>
    nodeIps(undefined, await withNamedAddress({ ...machine, addresses }, name, clock, find))[0];
  t.is(await firstOf('n', async () => ['127.0.1.1', '192.0.2.2']), '192.0.2.2');
  t.is(await firstOf('n', async () => ['203.0.113.1']), '192.0.2.1');
  t.is(await firstOf('192.0.2.2'), '192.0.2.2', 'the name is the address');
  t.is(await firstOf('n', () => Promise.reject(new Error('ENOTFOUND'))), '192.0.2.1');
  const silent = firstOf('n', () => new Promise(() => {}));
  clock.advance(2_000);
  t.is(await silent, '192.0.2.1');
});

test('allocatable resources are the capacity minus the reservations, and never negative', (t) => {
  const capacity = nodeCapacity(machine, 110);
  t.deepEqual(capacity, { cpu: '4', memory: '8388608Ki', pods: '110' });
  t.deepEqual(nodeAllocatable(capacity, { cpu: '500m', memory: '1Gi' }, { cpu: '250m' }), {
    cpu: '3250m',
    memory: '7Gi',
    pods: '110',
  });
  t.is(nodeAllocatable(capacity, { cpu: '9' })['cpu'], '0');
  t.is(podCapacity({ maxPods: 110, podsPerCore: 10, allowPrivileged: false }, 4), 40);
  t.is(podCapacity({ maxPods: 30, podsPerCore: 10, allowPrivileged: false }, 4), 30);
});

test('Ready is the last condition, and transition times change only with the status', (t) => {
  const first = nodeConditions({ problems: [], pressure: new Set(), before: [], nowMs: 0 });
  t.is(first.at(-1)?.type, 'Ready');
  const later = nodeConditions({
    problems: ['container runtime is down'],
    pressure: new Set(),
    before: first,
    nowMs: 60_000,
  });
  t.is(later.at(-1)?.status, 'False');
  t.is(later.at(-1)?.lastTransitionTime, '1970-01-01T00:01:00Z');
  t.is(later[0]?.lastTransitionTime, '1970-01-01T00:00:00Z');
  t.is(later[0]?.lastHeartbeatTime, '1970-01-01T00:01:00Z');
});

test('the labels of the agent are restored on an existing node, and changes of other labels are kept', (t) => {
  const node = newNode('node-1', 'amd64', config.node, {});
  t.is(node.metadata?.labels?.['zone'], 'a');
  t.is(reconcilePatch(node, 'node-1', 'amd64', config.node), undefined);
  const changed = { ...node, metadata: { ...node.metadata, labels: { zone: 'b', 'kubernetes.io/hostname': 'other' } } };
  const patch = reconcilePatch(changed, 'node-1', 'amd64', config.node) as {
    metadata: { labels: Record<string, string> };
  };
  t.is(patch.metadata.labels['kubernetes.io/hostname'], 'node-1');
  t.false('zone' in patch.metadata.labels);
});

const runtimeWith = (capabilities: { readonly sysctls?: boolean; readonly podNetwork?: boolean } = {}) => ({
  name: 'test',
  capabilities: { sysctls: true, podNetwork: true, ...capabilities },
});

test('pods of sources without permission to use the namespaces of the node are rejected temporarily', (t) => {
  const sources = { ...config.sources, hostNetwork: ['api'] as const, hostPid: [], hostIpc: ['file'] as const };
  const limits = { ...config.limits };
  t.is(configurationRejection(testPod('a', { hostNetwork: true }), { sources, limits })?.reason, 'Forbidden');
  t.is(
    configurationRejection(testPod('a', { hostNetwork: true }, { 'kubernetes.io/config.source': 'api' }), {
      sources,
      limits,
    }),
    undefined,
  );
  t.is(
    configurationRejection(testPod('a', { hostPID: true }), { sources, limits })?.message,
    'pod may not use host PID',
  );
  t.is(configurationRejection(testPod('a', { hostIPC: true }), { sources, limits }), undefined);
  const offer = { maxPods: 2, allowedUnsafeSysctls: [], runtime: runtimeWith() };
  t.is(permanentRejection(testPod('a'), 1, offer), undefined);
  t.is(permanentRejection(testPod('a'), 2, offer)?.reason, 'OutOfpods');
});

for (const [names, words, spec, message] of [
  [['kernel.shm_rmid_forced', 'net.ipv4.tcp_syncookies'], [], {}, undefined],
  [['net/ipv4/ip_local_port_range'], [], {}, undefined],
  [['kernel.msgmax'], [], {}, 'sysctl "kernel.msgmax" is not allowed on this node'],
  [
    ['net.ipv4.tcp_syncookies', 'net.core.somaxconn'],
    [],
    {},
    'sysctl "net.core.somaxconn" is not allowed on this node',
  ],
  [['kernel.msgmax', 'net.core.somaxconn'], ['kernel.msg*', 'net.core.somaxconn'], {}, undefined],
  [['kernel.shm_rmid_forced'], [], { hostIPC: true }, 'sysctl "kernel.shm_rmid_forced" is not allowed with host IPC'],
  [
    ['net.core.somaxconn'],
    ['net.*'],
    { hostNetwork: true },
    'sysctl "net.core.somaxconn" is not allowed with host network',
  ],
  [['net.core.somaxconn'], ['net.*'], { hostIPC: true }, undefined],
] as const) {
  const given =
    words.length === 0
      ? 'without --experimental-allowed-unsafe-sysctls'
      : `--experimental-allowed-unsafe-sysctls=${words.join(',')}`;
  test(`${given}: ${names.join(' and ')} ${message ?? 'may be set'}`, (t) => {
    const { allowedUnsafeSysctls } = wordsConfig(
      '/x',
      words.length === 0 ? [] : [`--experimental-allowed-unsafe-sysctls=${words.join(',')}`],
    );
    const pod = testPod('a', { ...spec, securityContext: { sysctls: names.map((name) => ({ name, value: '1' })) } });
    const verdict = permanentRejection(pod, 0, { maxPods: 1, allowedUnsafeSysctls, runtime: runtimeWith() });
    t.is(verdict?.message, message);
    t.is(verdict?.reason, message && 'SysctlForbidden');
  });
}

for (const [title, name, capabilities, reason, message] of [
  [
    'a sysctl of the network on a node whose pods have no network of their own is forbidden, as with host network',
    'net.ipv4.tcp_syncookies',
    { podNetwork: false },
    'SysctlForbidden',
    'sysctl "net.ipv4.tcp_syncookies" is not allowed: pods of this node have no network of their own',
  ],
  [
    'a sysctl of the IPC namespace needs no network',
    'kernel.shm_rmid_forced',
    { podNetwork: false },
    undefined,
    undefined,
  ],
  [
    'a sysctl on a runtime that sets none is unsupported',
    'kernel.shm_rmid_forced',
    { sysctls: false },
    'SysctlUnsupported',
    'sysctl "kernel.shm_rmid_forced" cannot be set: the runtime "test" of this node sets none',
  ],
] as const) {
  test(title, (t) => {
    const pod = testPod('a', { securityContext: { sysctls: [{ name, value: '1' }] } });
    const verdict = permanentRejection(pod, 0, {
      maxPods: 1,
      allowedUnsafeSysctls: [],
      runtime: runtimeWith(capabilities),
    });
    t.deepEqual([verdict?.reason, verdict?.message], [reason, message]);
  });
}

test('a permanently rejected pod has an event and a status with the reason', async (t) => {
  const bench = await startBench(t, { runtime: { podNetwork: false } });
  const pod = testPod('web', { securityContext: { sysctls: [{ name: 'net.ipv4.tcp_syncookies', value: '0' }] } });
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Failed');
  const message = 'sysctl "net.ipv4.tcp_syncookies" is not allowed: pods of this node have no network of their own';
  t.like(bench.status(pod), { reason: 'SysctlForbidden', message });
  t.is(bench.status(pod).containerStatuses, undefined, 'no container seems to be created');
  t.deepEqual(
    bench.events.filter((event) => event.pod === 'web'),
    [{ type: 'Warning', reason: 'SysctlForbidden', message, pod: 'web' }],
  );
});
