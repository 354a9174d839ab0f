import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ContainerConfig, PodSandboxConfig } from '@keelson/container-runtime';
import type { Container, coreV1, Pod } from '@keelson/kinds';
import test, { type ExecutionContext } from 'ava';
import { AgentPaths } from '../../../src/base/agent-paths.ts';
import type { SubPaths } from '../../../src/machine/volumes/sub-path.ts';
import { VolumeProblem } from '../../../src/machine/volumes/volume-problem.ts';
import { containerMounts, linuxResources, type MountFacts } from '../../../src/pods/containers/container-config.ts';
import { ContainerConfigError } from '../../../src/pods/environment/container-environment.ts';
import { sandboxConfig } from '../../../src/pods/start-preparation.ts';
import { startBench, testPod } from '../../support/bench.ts';

test('a container is created with its specification, in the sandbox of its pod', async (t) => {
  const started: { config: ContainerConfig; sandbox: PodSandboxConfig }[] = [];
  const bench = await startBench(t, {
    script: ({ config, sandbox }) => {
      started.push({ config, sandbox });
      return {};
    },
  });
  const main: Container = {
    name: 'main',
    image: 'app:1',
    command: ['run', '$(WHERE)'],
    args: ['--at=$(WHERE)', '$(NONE)'],
    workingDir: '/work',
    env: [{ name: 'WHERE', value: 'here' }],
    stdin: true,
    stdinOnce: true,
    tty: true,
    terminationMessagePath: '/dev/end',
    lifecycle: { stopSignal: 'SIGUSR1', preStop: { exec: { command: ['bye'] } } },
    ports: [
      { containerPort: 80, hostPort: 8080, hostIP: '127.0.0.1' },
      { containerPort: 53, hostPort: 5353, protocol: 'UDP' },
      { containerPort: 81 },
    ],
    volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }],
  };
  const pod = testPod('web', {
    containers: [main],
    hostAliases: [{ ip: '192.0.2.7', hostnames: ['seven', 'sept'] }],
    volumes: [{ name: 'scratch', emptyDir: {} }],
    securityContext: { sysctls: [{ name: 'kernel.shm_rmid_forced', value: '1' }] },
  });
  pod.metadata!.labels = { app: 'web' };
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  const { uid = '' } = pod.metadata ?? {};
  const directory = join(bench.rootDir, 'agent/pods', uid);
  const [{ config, sandbox } = assertStarted()] = started;
  const { env = [], annotations = {}, ...rest } = config;
  t.deepEqual(
    env.find(({ name }) => name === 'WHERE'),
    { name: 'WHERE', value: 'here' },
  );
  t.deepEqual(rest as object, {
    metadata: { name: 'main', attempt: 0 },
    image: rest.image,
    command: ['run', 'here'],
    args: ['--at=here', '$(NONE)'],
    workingDir: '/work',
    mounts: [
      { containerPath: '/scratch', hostPath: join(directory, 'volumes/kubernetes.io~empty-dir/scratch') },
      { containerPath: '/etc/hosts', hostPath: join(directory, 'etc-hosts') },
      { containerPath: '/dev/end', hostPath: join(directory, 'containers/main_0.termination-log') },
    ],
    labels: {
      'io.kubernetes.pod.name': 'web',
      'io.kubernetes.pod.namespace': 'default',
      'io.kubernetes.pod.uid': uid,
      'io.kubernetes.container.name': 'main',
    },
    logPath: 'main_0.log',
    ...{ stdin: true, stdinOnce: true, tty: true, stopSignal: 'SIGUSR1' },
    resources: { cpuShares: 2, oomScoreAdjust: 1000 },
    securityContext: { namespaces: { network: 'pod', pid: 'container', ipc: 'pod' } },
  });
  t.true(Object.values(annotations).includes('{"exec":{"command":["bye"]}}'), 'the hook that the next agent runs');
  t.like(sandbox, {
    metadata: { name: 'web', namespace: 'default', uid, attempt: 0 },
    hostname: 'web',
    logDirectory: join(bench.rootDir, 'log/pods', uid),
    portMappings: [
      { protocol: 'TCP', containerPort: 80, hostPort: 8080, hostIp: '127.0.0.1' },
      { protocol: 'UDP', containerPort: 53, hostPort: 5353 },
    ],
    labels: { app: 'web', 'io.kubernetes.pod.name': 'web' },
    sysctls: { 'kernel.shm_rmid_forced': '1' },
    securityContext: { namespaces: { network: 'pod', pid: 'container', ipc: 'pod' } },
  });
  t.is((await stat(join(directory, 'containers/main_0.termination-log'))).mode & 0o777, 0o666);
  t.regex(await readFile(join(directory, 'etc-hosts'), 'utf8'), /\tweb\n\n# .*HostAliases.\n192.0.2.7\tseven\tsept\n$/);
});

function assertStarted(): never {
  throw new Error('nothing was started');
}

test('a pod in the network of the node has its own host aliases and no mapped ports', (t) => {
  const facts = {
    isolatePids: true,
    seccompRoot: '',
    logDirectory: '/l',
    dns: { servers: [], searches: [], options: [] },
  };
  const privileged = {
    name: 'main',
    securityContext: { privileged: true },
    ports: [{ containerPort: 1, hostPort: 1 }],
  };
  const { hostname, portMappings, securityContext, cgroupParent } = sandboxConfig(
    testPod('p', { hostNetwork: true, containers: [privileged] }),
    2,
    { ...facts, cgroupParent: '/group' },
  );
  t.deepEqual([hostname, portMappings, cgroupParent], [undefined, undefined, '/group']);
  t.like(securityContext, { privileged: true, namespaces: { network: 'node' } });
});

const gigabyte = 2 ** 30;
for (const [title, requests, limits, expected] of [
  ['no requests', {}, {}, { cpuShares: 2, oomScoreAdjust: 1000 }],
  ['a quarter of the memory', { memory: '1Gi' }, {}, { cpuShares: 2, oomScoreAdjust: 750 }],
  ['all of the memory', { memory: '4Gi' }, {}, { cpuShares: 2, oomScoreAdjust: 3 }],
  ['very little memory', { memory: '1' }, {}, { cpuShares: 2, oomScoreAdjust: 999 }],
  ['CPU only', { cpu: '250m' }, {}, { cpuShares: 256, oomScoreAdjust: 999 }],
  ['more CPU than shares can express', { cpu: '1000' }, {}, { cpuShares: 262_144, oomScoreAdjust: 999 }],
  ['the least CPU', {}, { cpu: '1m' }, { cpuShares: 2, cpuPeriodUs: 100_000, cpuQuotaUs: 1000, oomScoreAdjust: 999 }],
  [
    'limits equal to requests',
    { cpu: '2', memory: '1Gi' },
    { cpu: '2', memory: '1Gi' },
    { cpuShares: 2048, cpuPeriodUs: 100_000, cpuQuotaUs: 200_000, memoryLimitBytes: gigabyte, oomScoreAdjust: -997 },
  ],
] as const) {
  test(`resources of a container with ${title}`, (t) => {
    const container: Container = { name: 'main', resources: { requests, limits } };
    const facts = { cpuCfsQuota: true, machineMemoryBytes: 4 * gigabyte };
    t.deepEqual(linuxResources(testPod('p', { containers: [container] }), container, facts) as object, expected);
  });
}

async function mountFacts(t: ExecutionContext, changes: Partial<MountFacts> = {}): Promise<MountFacts> {
  const directory = await mkdtemp(join(tmpdir(), 'keelson-mounts-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const subPaths = {
    provide: async (place: string, within: string) =>
      within === 'exact' ? { hostPath: `/fd/${within}`, exact: true } : { hostPath: `${place}/${within}` },
  } as unknown as SubPaths;
  return {
    paths: new AgentPaths(directory, join(directory, 'log')),
    volumes: new Map(['v', 'kube-api-access-x'].map((name) => [name, `/host/${name}`])),
    subPaths,
    variables: new Map([['ID', 'seven']]),
    ...{ attempt: 0, canMount: true, canMountExactly: true, readonlyMounts: true, propagation: true, hosts: 'h' },
    ...changes,
  };
}

async function mounted(
  t: ExecutionContext,
  mount: Partial<coreV1.VolumeMount>,
  volume: Partial<coreV1.Volume> = {},
  changes: Partial<MountFacts> = {},
) {
  const container: Container = { name: 'main', volumeMounts: [{ name: 'v', mountPath: '/v', ...mount }] };
  const pod = testPod('p', { containers: [container], volumes: [{ name: 'v', ...volume }] } as Partial<Pod['spec']>);
  const { mounts } = await containerMounts(pod, container, await mountFacts(t, changes));
  return mounts.find(({ containerPath }) => containerPath === (mount.mountPath ?? '/v'));
}

for (const [title, mount, volume, changes, expected] of [
  ['its volume', {}, { emptyDir: {} }, {}, {}],
  ['readOnly of the mount', { readOnly: true }, {}, {}, { readonly: true }],
  ['readOnly of the claim', {}, { persistentVolumeClaim: { claimName: 'c', readOnly: true } }, {}, { readonly: true }],
  ['a claim that is writable', {}, { persistentVolumeClaim: { claimName: 'c' } }, {}, {}],
  ['a secret read-only', {}, { secret: { secretName: 's' } }, {}, { readonly: true }],
  ['a config map read-only', {}, { configMap: { name: 'm' } }, {}, { readonly: true }],
  ['pod fields read-only', {}, { downwardAPI: {} }, {}, { readonly: true }],
  ['projected files read-only', {}, { projected: {} }, {}, { readonly: true }],
  ['a writable secret when the runtime has no read-only mounts', {}, { secret: {} }, { readonlyMounts: false }, {}],
  ['a sub path', { subPath: 'a/b' }, {}, {}, { hostPath: '/host/v/a/b' }],
  ['a sub path with a variable', { subPathExpr: 'x-$(ID)' }, {}, {}, { hostPath: '/host/v/x-seven' }],
  ['propagation from the host', { mountPropagation: 'HostToContainer' }, {}, {}, { propagation: 'hostToContainer' }],
  ['propagation in both directions', { mountPropagation: 'Bidirectional' }, {}, {}, { propagation: 'bidirectional' }],
  ['no propagation for None', { mountPropagation: 'None' }, {}, {}, {}],
  ['no propagation on this node', { mountPropagation: 'Bidirectional' }, {}, { propagation: false }, {}],
  ['a hosts file of its own', { mountPath: '/etc/hosts' }, {}, {}, { containerPath: '/etc/hosts' }],
] as const satisfies readonly (readonly [
  string,
  Partial<coreV1.VolumeMount>,
  Partial<coreV1.Volume>,
  Partial<MountFacts>,
  object,
])[]) {
  test(`a mount has ${title}`, async (t) => {
    t.deepEqual((await mounted(t, mount, volume, changes)) as object, {
      containerPath: '/v',
      hostPath: '/host/v',
      ...expected,
    });
  });
}

test('invalid mounts are rejected with their name', async (t) => {
  const problem = (mount: Partial<coreV1.VolumeMount>, changes: Partial<MountFacts> = {}) =>
    t.throwsAsync(mounted(t, mount, {}, changes));
  const missing = await problem({ name: 'w' });
  t.true(missing instanceof ContainerConfigError);
  t.is(missing.message, 'cannot find volume "w" to mount into container "main"');
  const exact = await problem({ subPath: 'exact' }, { canMountExactly: false });
  t.true(exact instanceof VolumeProblem);
  t.is(exact.message, 'subPath "exact" needs a mount, and this node cannot mount');
  await t.notThrowsAsync(mounted(t, { subPath: 'exact' }));
  const device: Container = { name: 'main', volumeDevices: [{ name: 'v', devicePath: '/dev/v' }] };
  await t.throwsAsync(containerMounts(testPod('p'), device, await mountFacts(t)), {
    message: 'block devices are not supported by this agent',
  });
});

test('without mounts a container gets the directory of its service account files, and no termination message file', async (t) => {
  const accountPath = '/var/run/secrets/kubernetes.io/serviceaccount';
  const container: Container = {
    name: 'main',
    terminationMessagePath: '/dev/end',
    volumeMounts: [
      { name: 'kube-api-access-x', mountPath: accountPath },
      { name: 'v', mountPath: '/v' },
    ],
  };
  const without = await containerMounts(testPod('p'), container, await mountFacts(t, { canMount: false }));
  t.deepEqual(without as object, {
    mounts: [{ containerPath: '/v', hostPath: '/host/v' }],
    messageFile: undefined,
    accountDirectory: '/host/kube-api-access-x',
  });
  const facts = await mountFacts(t);
  const taken = { ...container, volumeMounts: [{ name: 'v', mountPath: '/dev/end' }] };
  const own = await containerMounts(testPod('p'), taken, facts);
  t.is(own.messageFile, undefined, 'the container has a volume there');
  const pod = testPod('p');
  const { messageFile = '' } = await containerMounts(pod, container, facts);
  await writeFile(messageFile, 'old');
  await containerMounts(pod, container, facts);
  t.is(await readFile(messageFile, 'utf8'), '', 'each start begins with an empty message');
});
