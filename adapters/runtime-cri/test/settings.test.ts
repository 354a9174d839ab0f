import { mkdir, mkdtemp, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SharedContainerd, testsOn } from './support/shared-containerd.ts';

const test = testsOn(await SharedContainerd.open());

test('host name, name servers and sysctls are those of the pod', async (t, shared) => {
  const sandboxId = await shared.sandbox({
    hostname: 'pod-host',
    dns: { servers: ['192.0.2.53'], searches: ['example.test'], options: ['ndots:3'] },
    sysctls: { 'net.ipv4.ip_local_port_range': '40000 40100' },
  });
  const id = await shared.started('sleep 1000', {}, sandboxId);
  t.is(await shared.output(id, 'hostname'), 'pod-host\n');
  const resolv = await shared.output(id, 'cat /etc/resolv.conf');
  for (const line of ['nameserver 192.0.2.53', 'search example.test', 'options ndots:3'])
    t.true(resolv.includes(line), resolv);
  t.regex(await shared.output(id, 'cat /proc/sys/net/ipv4/ip_local_port_range'), /40000\s+40100/);
});

test('namespaces are the requested ones, and the sandbox records them', async (t, shared) => {
  const { runtime } = shared.engine;
  const node = { network: 'node', pid: 'node', ipc: 'node' } as const;
  const onNode = await shared.sandbox({ securityContext: { namespaces: node } });
  const status = await runtime.podSandboxStatus(onNode);
  t.deepEqual(status.namespaces, node);
  t.is(status.ips.length, 1);
  // A container without namespaces has those of its sandbox, also when another process created the sandbox.
  const other = await shared.another({ nodeIp: '192.0.2.7' });
  t.deepEqual((await other.runtime.podSandboxStatus(onNode)).ips, ['192.0.2.7']);
  await other.runtime[Symbol.asyncDispose]();
  const id = await shared.started('sleep 1000', {}, onNode);
  const own = async (name: string) => (await shared.output(id, `readlink /proc/self/ns/${name}`)).trim();
  for (const name of ['net', 'pid', 'ipc']) t.is(await own(name), await readlink(`/proc/self/ns/${name}`), name);
  const apart = await shared.started('sleep 1000', {
    securityContext: { namespaces: { network: 'pod', pid: 'container', ipc: 'pod' } },
  });
  t.is(await shared.output(apart, 'readlink /proc/1/exe'), '/bin/busybox\n');
  t.regex(await shared.output(apart, 'cat /proc/1/cmdline'), /sleep/);
});

test('an ordinary container cannot read or change the kernel, a privileged one can read it', async (t, shared) => {
  const ordinary = await shared.started('sleep 1000');
  t.is(await shared.output(ordinary, 'head -c 1 /proc/timer_list | wc -c'), '0\n');
  t.is(await shared.output(ordinary, 'echo 0 2>/dev/null > /proc/sys/kernel/panic || echo refused'), 'refused\n');
  const sandboxId = await shared.sandbox({ securityContext: { privileged: true } });
  const privileged = await shared.started('sleep 1000', { securityContext: { privileged: true } }, sandboxId);
  t.is(await shared.output(privileged, 'head -c 1 /proc/timer_list | wc -c'), '1\n');
});

test('capabilities, users, groups and a read-only root file system are applied', async (t, shared) => {
  const id = await shared.started('sleep 1000', {
    securityContext: {
      ...{
        runAsUser: 1234,
        runAsGroup: 4321,
        supplementalGroups: [77, 88],
        readonlyRootfs: true,
        noNewPrivileges: true,
      },
      capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE'] },
    },
  });
  t.is(await shared.output(id, 'id -u; id -g; id -G'), '1234\n4321\n4321 77 88\n');
  t.is(await shared.output(id, 'touch /tmp/x 2>/dev/null || echo refused'), 'refused\n');
  const status = await shared.output(id, 'cat /proc/self/status');
  t.regex(status, /NoNewPrivs:\t1/);
  t.regex(status, /CapBnd:\t0000000000000400/);
  const named = await shared.started('sleep 1000', { securityContext: { runAsUsername: 'app' } });
  t.is(await shared.output(named, 'id -u'), '4242\n');
});

test('seccomp profiles are those of the runtime, of a file, or none', async (t, shared) => {
  const folder = await mkdtemp('/tmp/keelson-cri-seccomp-');
  t.teardown(() => rm(folder, { recursive: true }));
  const localhostRef = join(folder, 'no-mkdir.json');
  const refusal = { names: ['mkdir', 'mkdirat'], action: 'SCMP_ACT_ERRNO' };
  await writeFile(localhostRef, JSON.stringify({ defaultAction: 'SCMP_ACT_ALLOW', syscalls: [refusal] }));
  const seen = async (seccomp: { type: 'runtimeDefault' | 'unconfined' | 'localhost'; localhostRef?: string }) => {
    const id = await shared.started('sleep 1000', { securityContext: { seccomp } });
    return shared.output(id, 'grep -o "Seccomp:.*" /proc/self/status; mkdir /tmp/made 2>/dev/null || echo refused');
  };
  t.is(await seen({ type: 'unconfined' }), 'Seccomp:\t0\n');
  t.is(await seen({ type: 'runtimeDefault' }), 'Seccomp:\t2\n');
  t.is(await seen({ type: 'localhost', localhostRef }), 'Seccomp:\t2\nrefused\n');
});

test('requested devices and mounts are available, with their permissions', async (t, shared) => {
  const folder = await mkdtemp('/tmp/keelson-cri-mounts-');
  t.teardown(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, 'data'));
  await writeFile(join(folder, 'data', 'file'), 'given');
  const data = { hostPath: join(folder, 'data'), containerPath: '/data', readonly: true };
  const devices = [{ hostPath: '/dev/null', containerPath: '/dev/keelson-null', permissions: 'rw' }];
  const id = await shared.started('sleep 1000', { mounts: [data], devices });
  t.is(await shared.output(id, 'cat /data/file; touch /data/x 2>/dev/null || echo " refused"'), 'given refused\n');
  t.is(await shared.output(id, 'echo x > /dev/keelson-null && ls /dev/keelson-null'), '/dev/keelson-null\n');
  t.deepEqual(
    (await shared.engine.runtime.containerStatus(id)).mounts.filter(({ containerPath }) => containerPath === '/data'),
    [data],
  );
});

test('later mounts propagate to a container where the host mount is shared, and are rejected where it is not', async (t, shared) => {
  const mounts = [{ hostPath: '/tmp', containerPath: '/slave', propagation: 'hostToContainer' }] as const;
  const machine = await readFile('/proc/self/mountinfo', 'utf8');
  const ofTmp = machine.split('\n').findLast((line) => / (\/tmp|\/) [^ ]+ /.test(line.split(' ').slice(3).join(' ')));
  if (/ (shared|master):/.test(ofTmp ?? '')) {
    const id = await shared.started('sleep 1000', { mounts });
    t.regex(await shared.output(id, 'grep " /slave " /proc/self/mountinfo'), / master:\d+ /);
  } else {
    await t.throwsAsync(shared.started('true', { mounts }), { code: 'Unsupported', message: /shared or slave/ });
  }
});

test('resource limits are set at the start, updated later, and reported by the status', async (t, shared) => {
  const { runtime } = shared.engine;
  const resources = {
    memoryLimitBytes: 64 << 20,
    cpuShares: 512,
    cpuPeriodUs: 100_000,
    cpuQuotaUs: 50_000,
    oomScoreAdjust: 321,
  };
  const id = await shared.started('sleep 1000', { resources });
  t.like((await runtime.containerStatus(id)).resources, resources);
  t.is(await shared.output(id, 'cat /proc/1/oom_score_adj >/dev/null; cat /proc/self/oom_score_adj'), '321\n');
  await runtime.updateContainerResources?.(id, { memoryLimitBytes: 96 << 20, cpuShares: 256, cpusetCpus: '0' });
  t.like((await runtime.containerStatus(id)).resources, {
    memoryLimitBytes: 96 << 20,
    cpuShares: 256,
    cpusetCpus: '0',
  });
  t.regex(await shared.output(id, 'cat /proc/self/status'), /Cpus_allowed_list:\t0\n/);
});

test('the stop signal of the configuration is also sent by a runtime that did not start the container', async (t, shared) => {
  const id = await shared.started(`trap 'exit 6' USR1; : > /tmp/ready; while :; do sleep 0.05; done`, {
    stopSignal: 'USR1',
  });
  t.is(await shared.output(id, 'while [ ! -e /tmp/ready ]; do sleep 0.02; done; echo ready'), 'ready\n');
  const other = await shared.another();
  await other.runtime.stopContainer(id, { gracePeriodMs: 10_000 });
  await other.runtime[Symbol.asyncDispose]();
  t.is((await shared.ended(id)).exitCode, 6);
});

test('internal annotations of the adapter are not visible to callers', async (t, shared) => {
  const { runtime } = shared.engine;
  const sandboxId = await shared.sandbox({ annotations: { a: 'b' } });
  const id = await shared.started('sleep 1000', { annotations: { c: 'd' } }, sandboxId);
  t.deepEqual((await runtime.podSandboxStatus(sandboxId)).annotations, { a: 'b' });
  t.deepEqual((await runtime.listPodSandboxes({ id: sandboxId }))[0]?.annotations, { a: 'b' });
  t.deepEqual((await runtime.containerStatus(id)).annotations, { c: 'd' });
  t.deepEqual((await runtime.listContainers({ id }))[0]?.annotations, { c: 'd' });
  t.deepEqual((await runtime.listContainerStats({ id }))[0]?.annotations, { c: 'd' });
});

test('the pod CIDR is passed to the daemon', async (t, shared) => {
  await t.notThrowsAsync(async () => shared.engine.runtime.updateConfig?.({ podCidr: '198.18.0.0/24' }));
});
