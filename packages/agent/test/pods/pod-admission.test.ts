import type { Pod } from '@keelson/kinds';
import test from 'ava';
import {
  configurationRejection,
  permanentRejection,
  podCapacity,
  type SysctlOffer,
  sysctlRejection,
} from '../../src/pods/pod-admission.ts';
import { startBench, testConfig, testPod } from '../support/bench.ts';

const runtime = (sysctls: boolean, podNetwork: boolean) => ({ name: 'r', capabilities: { sysctls, podNetwork } });
const open: SysctlOffer = { allowedUnsafeSysctls: ['net.core.*', 'kernel.msgmax'], runtime: runtime(true, true) };

const withSysctl = (name: string, spec: Partial<Pod['spec']> = {}): Pod =>
  testPod('p', { ...spec, securityContext: { sysctls: [{ name, value: '1' }] } });

const sysctls: readonly (readonly [string, Pod, SysctlOffer, string | undefined])[] = [
  ['a safe one', withSysctl('net.ipv4.tcp_syncookies'), open, undefined],
  ['written with slashes', withSysctl('net/ipv4/tcp_syncookies'), open, undefined],
  ['allowed by prefix', withSysctl('net.core.somaxconn'), open, undefined],
  ['allowed by name', withSysctl('kernel.msgmax'), open, undefined],
  ['longer than an allowed name', withSysctl('kernel.msgmaxx'), open, 'is not allowed on this node'],
  ['not allowed', withSysctl('vm.swappiness'), open, 'is not allowed on this node'],
  ['of IPC, with host IPC', withSysctl('kernel.msgmax', { hostIPC: true }), open, 'is not allowed with host IPC'],
  ['of IPC, with host network', withSysctl('kernel.msgmax', { hostNetwork: true }), open, undefined],
  ['of the network, with host IPC', withSysctl('net.core.x', { hostIPC: true }), open, undefined],
  [
    'of the network, with host network',
    withSysctl('net.core.x', { hostNetwork: true }),
    open,
    'is not allowed with host network',
  ],
  [
    'of the network, where pods have none',
    withSysctl('net.core.x'),
    { ...open, runtime: runtime(true, false) },
    'is not allowed: pods of this node have no network of their own',
  ],
  [
    'of IPC, where pods have no network',
    withSysctl('kernel.msgmax'),
    { ...open, runtime: runtime(true, false) },
    undefined,
  ],
  [
    'a runtime that sets none',
    withSysctl('kernel.msgmax'),
    { ...open, runtime: runtime(false, true) },
    'cannot be set: the runtime "r" of this node sets none',
  ],
];

for (const [title, pod, offer, expected] of sysctls)
  test(`sysctl ${title}: ${expected ?? 'accepted'}`, (t) => {
    const name = pod.spec.securityContext?.sysctls?.[0]?.name;
    t.is(sysctlRejection(pod, offer)?.message, expected && `sysctl "${name}" ${expected}`);
  });

const config = testConfig('/root', {
  sources: { ...testConfig('/root').sources, hostNetwork: ['file'], hostPid: ['api'], hostIpc: [] },
});

const specs: readonly (readonly [string, Partial<Pod['spec']>, string | undefined])[] = [
  ['nothing of the host', {}, undefined],
  ['the host network, from an allowed source', { hostNetwork: true }, undefined],
  ['the host PIDs, from another source', { hostPID: true }, 'pod may not use host PID'],
  ['the host IPC, without any allowed source', { hostIPC: true }, 'pod may not use host IPC'],
  [
    'privileges',
    { containers: [{ name: 'main', image: 'a', securityContext: { privileged: true } }] },
    'pod may not have privileged containers',
  ],
];

for (const [title, spec, message] of specs)
  test(`a pod from a file with ${title}: ${message ?? 'accepted'}`, (t) => {
    const rejection = configurationRejection(testPod('p', spec), config);
    t.deepEqual(rejection, message && { phase: 'Pending', reason: 'Forbidden', message });
  });

const main = { name: 'main', image: 'a' };
const unsupported: readonly (readonly [string | undefined, Partial<Pod['spec']>])[] = [
  [undefined, { os: { name: 'linux' }, resourceClaims: [], hostUsers: true }],
  ['block devices', { initContainers: [{ ...main, volumeDevices: [{ name: 'v', devicePath: '/d' }] }] }],
  ['runtime classes', { runtimeClassName: 'kata' }],
  ['resource claims', { resourceClaims: [{ name: 'c' }] }],
  ['user namespaces', { hostUsers: false }],
  ['operating system windows', { os: { name: 'windows' } }],
];

for (const [lacking, spec] of unsupported)
  test(`a pod that needs ${lacking ?? 'nothing in particular'} is ${lacking ? 'rejected' : 'accepted'}`, (t) => {
    const message = lacking && `this agent does not support ${lacking}`;
    const verdict = permanentRejection(testPod('p', spec), 0, { ...open, maxPods: 1 });
    t.deepEqual(verdict, message && { phase: 'Failed', reason: 'UnsupportedPod', message });
  });

test('a node accepts as many pods as its limits permit', (t) => {
  const verdict = (others: number) => permanentRejection(testPod('p'), others, { ...open, maxPods: 2 });
  t.is(verdict(1), undefined);
  t.like(verdict(2), {
    reason: 'OutOfpods',
    message: "Node didn't have enough capacity: pods, requested: 1, used: 2, capacity: 2",
  });
  t.deepEqual(
    [
      podCapacity({ maxPods: 110, podsPerCore: 0, allowPrivileged: false }, 4),
      podCapacity({ maxPods: 110, podsPerCore: 10, allowPrivileged: false }, 4),
    ],
    [110, 40],
  );
  t.is(podCapacity({ maxPods: 30, podsPerCore: 10, allowPrivileged: false }, 4), 30);
});

test('only pods with a running container count as running', async (t) => {
  const bench = await startBench(t);
  const [web, done] = [testPod('web'), testPod('done', { restartPolicy: 'Never' })];
  bench.pods.put(web, done);
  await bench.until(() => bench.status(web).phase === 'Running' && bench.status(done).phase === 'Running');
  const ended = [...bench.world.containers.values()].find(({ snapshot }) =>
    [...bench.world.sandboxes.values()].some(
      (one) => one.snapshot.id === snapshot.sandboxId && one.snapshot.metadata.name === 'done',
    ),
  );
  bench.world.exit(ended?.snapshot.id ?? '', 0);
  await bench.until(() => bench.status(done).phase === 'Succeeded');
  const running = await bench.agent.state.runningPods();
  t.deepEqual(
    running.map(({ metadata, spec }) => [metadata?.name, metadata?.uid, spec.containers]),
    [['web', web.metadata?.uid, [{ name: 'main', image: 'fake:app:1' }]]],
  );
});
