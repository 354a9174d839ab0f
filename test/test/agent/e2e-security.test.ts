import { readFileSync, readlinkSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { coreV1, Pod } from '@keelson/kinds';
import { eventually } from '@keelson/testing';
import test from 'ava';
import { sharedStage, shell, stay, waitMs } from '../../src/agent-scenarios/stage.ts';
import { openOciEngine } from '../../src/real-engines.ts';

const entryImage = 'registry.test/entry:1';

const stage = sharedStage('pods in containers of an OCI binary', {
  programs: ['runc'],
  packages: ['runc'],
  words: ['--allow-privileged', '--experimental-allowed-unsafe-sysctls=kernel.msg*'],
  images: [
    {
      reference: entryImage,
      config: { Entrypoint: ['/bin/echo', 'entry'], Cmd: ['word', 'of', 'image'], Env: ['PATH=/bin'] },
    },
  ],
  open: openOciEngine,
});

type Spec = Partial<Pod['spec']>;

/** The output of a pod that ends by itself. */
interface Printed {
  readonly title: string;
  readonly spec: Spec;
  readonly prints: string;
}

const alone = (script: string, more: Partial<coreV1.Container> = {}, spec: Spec = {}): Spec => ({
  ...spec,
  containers: [shell(script, more)],
});
const secured = (script: string, securityContext: coreV1.SecurityContext, spec: Spec = {}) =>
  alone(script, { securityContext }, spec);
const image = (more: Partial<coreV1.Container>): Spec => ({
  containers: [{ name: 'main', image: entryImage, imagePullPolicy: 'IfNotPresent', ...more }],
});
const effective = "grep CapEff /proc/self/status | tr -d '\\t'";
const noNewPrivileges = "grep NoNewPrivs /proc/self/status | tr -d '\\t'";
const privilege = 'mount -t tmpfs none /tmp 2>/dev/null && echo mounted || echo refused';

const printed: readonly Printed[] = [
  {
    title: 'command: without command and arguments those of the image are used',
    spec: image({}),
    prints: 'entry word of image\n',
  },
  {
    title: 'command: arguments replace those of the image',
    spec: image({ args: ['a', 'b'] }),
    prints: 'entry a b\n',
  },
  {
    title: 'command: a command replaces that of the image and its arguments',
    spec: image({ command: ['/bin/echo', 'own'] }),
    prints: 'own\n',
  },
  {
    title: 'command: command and arguments replace those of the image',
    spec: image({ command: ['/bin/echo', 'own'], args: ['c'] }),
    prints: 'own c\n',
  },
  { title: 'security: user 0', spec: secured('id -u', { runAsUser: 0 }), prints: '0\n' },
  {
    title: 'security: another user and group, with supplemental groups',
    spec: secured(
      'id -u; id -g; id -G',
      { runAsUser: 65_534, runAsGroup: 1234 },
      { securityContext: { supplementalGroups: [4343] } },
    ),
    prints: '65534\n1234\n1234 4343\n',
  },
  {
    title: 'security: a read-only root file system',
    spec: secured('(echo x > /new) 2>/dev/null && echo written || echo refused', { readOnlyRootFilesystem: true }),
    prints: 'refused\n',
  },
  {
    title: 'security: a writable root file system',
    spec: secured('(echo x > /new) 2>/dev/null && echo written || echo refused', { readOnlyRootFilesystem: false }),
    prints: 'written\n',
  },
  {
    title: 'security: no new privileges with allowPrivilegeEscalation false',
    spec: secured(noNewPrivileges, { allowPrivilegeEscalation: false, runAsUser: 1000 }),
    prints: 'NoNewPrivs:1\n',
  },
  {
    title: 'security: new privileges by default',
    spec: secured(noNewPrivileges, { runAsUser: 1000 }),
    prints: 'NoNewPrivs:0\n',
  },
  {
    title: 'security: capabilities are added and dropped',
    spec: secured(effective, { capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE', 'CHOWN'] } }),
    prints: 'CapEff:0000000000000401\n',
  },
  {
    title: 'security: the host PID namespace on request',
    spec: alone('test -d /proc/$PID && echo seen || echo hidden', {}, { hostPID: true }),
    prints: 'seen\n',
  },
  {
    title: 'security: a PID namespace of its own by default',
    spec: alone('test -d /proc/$PID && echo seen || echo hidden; echo $$$$'),
    prints: 'hidden\n1\n',
  },
  {
    title: 'privileged: a privileged container may mount',
    spec: secured(privilege, { privileged: true }),
    prints: 'mounted\n',
  },
  { title: 'privileged: an ordinary container may not mount', spec: alone(privilege), prints: 'refused\n' },
  {
    title: 'sysctl: a safe one is set in the pod',
    spec: alone(
      'cat /proc/sys/kernel/shm_rmid_forced',
      {},
      {
        securityContext: { sysctls: [{ name: 'kernel.shm_rmid_forced', value: '1' }] },
      },
    ),
    prints: '1\n',
  },
  {
    title: 'sysctl: an unsafe one is set when the node allows it',
    spec: alone(
      'cat /proc/sys/kernel/msgmax',
      {},
      { securityContext: { sysctls: [{ name: 'kernel.msgmax', value: '10081' }] } },
    ),
    prints: '10081\n',
  },
];

if (stage !== undefined) {
  for (const [index, { title, spec, prints }] of printed.entries()) {
    test(title, async (t) => {
      t.timeout(2 * waitMs);
      const here = await stage();
      const name = `prints-${index}`;
      // The process of the host that the containers search for.
      const env = [{ name: 'PID', value: String(process.pid) }];
      const containers = spec.containers?.map((container) => ({ ...container, env }));
      await here.create(name, {
        restartPolicy: 'Never',
        hostNetwork: true,
        ...spec,
        ...(containers && { containers }),
      });
      await here.reaches(name, 'Succeeded');
      t.is(await here.log(name), prints);
    });
  }

  for (const [shareProcessNamespace, expected] of [
    [true, 'seen\n'],
    [false, 'hidden\n'],
    [undefined, 'hidden\n'],
  ] as const) {
    const word = shareProcessNamespace === undefined ? 'unset' : String(shareProcessNamespace);
    test(`security: visibility of processes of other containers, shareProcessNamespace: ${word}`, async (t) => {
      t.timeout(2 * waitMs);
      const here = await stage();
      const name = `pids-${shareProcessNamespace ?? 'default'}`;
      await here.create(name, {
        hostNetwork: true,
        ...(shareProcessNamespace !== undefined && { shareProcessNamespace }),
        containers: [shell(stay), shell(`: the-neighbour; ${stay}`, { name: 'neighbour' })],
      });
      await here.reaches(name, 'Running');
      const script = 'cat /proc/[0-9]*/cmdline | tr "\\0" "\\n" | grep -q "^: the-neigh" && echo seen || echo hidden';
      t.is(await here.inside(name, script), expected);
    });
  }

  test('sysctl: a pod with an unsafe one that is not allowed is rejected, and nothing is started', async (t) => {
    t.timeout(2 * waitMs);
    const here = await stage();
    const sysctls = [{ name: 'kernel.shmmax', value: '10082' }];
    await here.create('unsafe', { securityContext: { sysctls }, containers: [shell(stay)] });
    const { status } = await here.reaches('unsafe', 'Failed');
    t.is(status?.reason, 'SysctlForbidden');
    t.true((status?.containerStatuses ?? []).every(({ containerID }) => !containerID));
  });

  test('sysctl: invalid names are rejected by the API', async (t) => {
    t.timeout(2 * waitMs);
    const here = await stage();
    for (const name of ['foo-', 'kernel.shmmax ', 'Kernel.SHM', '']) {
      const refused = here.create('invalid', {
        securityContext: { sysctls: [{ name, value: '1' }] },
        containers: [shell(stay)],
      });
      await t.throwsAsync(refused, { message: /sysctls\[0\]\.name/ }, name);
    }
  });

  test('security: the IPC namespace of the host is used only with hostIPC', async (t) => {
    t.timeout(2 * waitMs);
    const here = await stage();
    for (const hostIPC of [true, false]) {
      const name = `ipc-${hostIPC}`;
      await here.create(name, { hostNetwork: true, hostIPC, containers: [shell(stay)] });
      await here.reaches(name, 'Running');
      const own = readlinkSync('/proc/self/ns/ipc');
      t.is((await here.inside(name, 'readlink /proc/self/ns/ipc')).trim() === own, hostIPC);
    }
  });

  test('CPU and memory usage of a running container is within the expected range', async (t) => {
    t.timeout(2 * waitMs);
    const here = await stage();
    const since = Date.now();
    const script = `word=$(head -c 8000000 /dev/zero | tr '\\0' x); : > /tmp/held; ${stay}`;
    await here.create('measured', { hostNetwork: true, containers: [shell(script)] });
    await here.reaches('measured', 'Running');
    await eventually(async () => (await here.inside('measured', 'ls /tmp')).includes('held'), waitMs);
    const found = await eventually(async () => {
      const pod = (await here.node.agent.state.usage()).find(({ name }) => name === 'measured');
      const main = pod?.containers.find(({ name }) => name === 'main');
      return main !== undefined && main.memoryWorkingSetBytes > 8_000_000 ? main : undefined;
    }, waitMs);
    t.true(found.memoryWorkingSetBytes < 256 << 20, `${found.memoryWorkingSetBytes} bytes`);
    const mostNanoSeconds = (Date.now() - since) * 1_000_000 * availableParallelism();
    t.true(found.cpuNanoSeconds > 0 && found.cpuNanoSeconds <= mostNanoSeconds, `${found.cpuNanoSeconds} ns`);
    t.true(Math.abs(found.timeMs - Date.now()) < waitMs);
    t.true(found.startTimeMs >= since - 1000 && found.startTimeMs <= found.timeMs);
  });

  test('hosts file: written by the agent, mounted by the container, or with the lines of the host', async (t) => {
    t.timeout(2 * waitMs);
    const here = await stage();
    const own = { name: 'own', mountPath: '/etc/hosts', subPath: 'hosts' };
    await here.create('hosts', {
      hostAliases: [{ ip: '192.0.2.9', hostnames: ['far'] }],
      volumes: [{ name: 'own', emptyDir: {} }],
      initContainers: [
        shell('echo mine > /own/hosts', { name: 'a', volumeMounts: [{ name: 'own', mountPath: '/own' }] }),
      ],
      containers: [shell(stay), shell(stay, { name: 'other', volumeMounts: [own] })],
    });
    await here.create('hosts-of-machine', { hostNetwork: true, containers: [shell(stay)] });
    await here.reaches('hosts', 'Running');
    await here.reaches('hosts-of-machine', 'Running');
    const managed = await here.inside('hosts', 'cat /etc/hosts');
    t.regex(managed, /^# Kubernetes-managed hosts file\.\n/);
    t.regex(managed, /\n192\.0\.2\.1\thosts\n/);
    t.regex(managed, /\n192\.0\.2\.9\tfar\n/);
    t.is(await here.inside('hosts', 'cat /etc/hosts', 'other'), 'mine\n');
    const machine = readFileSync('/etc/hosts', 'utf8').trim().split('\n').at(-1) ?? '';
    const copied = await here.inside('hosts-of-machine', 'cat /etc/hosts');
    t.true(copied.includes(machine));
    t.notRegex(copied, /\thosts-of-machine\n/);
  });
}
