import { execFile } from 'node:child_process';
import { mkdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createCniNetwork } from '@keelson/container-network';
import { isRuntimeError } from '@keelson/container-runtime';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import test from 'ava';
import { openEngine } from './support/engine-harness.ts';
import { exec, sandbox, started, until } from './support/pods.ts';
import { closePodmanAfterwards, engineTest, podman } from './support/shared-podman.ts';

const run = promisify(execFile);
const idle = 'sleep 1000';

closePodmanAfterwards();

engineTest('host name, name servers and sysctls of a pod apply to every container', async (t, opened) => {
  const dns = {
    servers: ['192.0.2.53', '192.0.2.54'],
    searches: ['test.svc.cluster.local', 'cluster.local'],
    options: ['ndots:5'],
  };
  const id = await sandbox(opened, {
    hostname: 'web-0',
    dns,
    sysctls: { 'net.ipv4.ip_unprivileged_port_start': '81' },
  });
  const container = await started(opened, id, idle);
  const text = await exec(
    opened,
    container,
    'hostname; cat /etc/resolv.conf /proc/sys/net/ipv4/ip_unprivileged_port_start',
  );
  t.is(
    text,
    'web-0\nnameserver 192.0.2.53\nnameserver 192.0.2.54\nsearch test.svc.cluster.local cluster.local\noptions ndots:5\n81\n',
  );
  const [ip = ''] = (await opened.engine.runtime.podSandboxStatus(id)).ips;
  t.regex(await exec(opened, container, 'cat /etc/hosts'), new RegExp(`^${ip.replaceAll('.', '\\.')}\\s.*web-0`, 'm'));
});

engineTest(
  'containers of a pod share network and IPC namespaces, and the PID namespace only on request',
  async (t, opened) => {
    const namespaces = async (pid: 'pod' | 'container') => {
      const id = await sandbox(opened, { securityContext: { namespaces: { network: 'pod', ipc: 'pod', pid } } });
      const both = await Promise.all([started(opened, id, idle), started(opened, id, idle)]);
      const links = 'for n in net ipc pid; do readlink /proc/self/ns/$n; done';
      const [one = [], two = []] = await Promise.all(
        both.map(async (each) => (await exec(opened, each, links)).trim().split('\n')),
      );
      return one.map((name, position) => name === two[position]);
    };
    t.deepEqual(await namespaces('container'), [true, true, false]);
    t.deepEqual(await namespaces('pod'), [true, true, true]);
  },
);

engineTest(
  'a pod with the host network has the address of the node',
  async (t, opened) => {
    const id = await sandbox(opened, {
      ...{ hostname: 'ignored', dns: { servers: ['192.0.2.53'], searches: [], options: [] } },
      securityContext: { namespaces: { network: 'node', ipc: 'node', pid: 'node' } },
    });
    t.deepEqual((await opened.engine.runtime.podSandboxStatus(id)).ips, ['192.0.2.1']);
    const container = await started(opened, id, idle);
    const text = await exec(opened, container, 'readlink /proc/self/ns/pid; cat /etc/resolv.conf');
    t.is(text, `${readlinkSync('/proc/self/ns/pid')}\nnameserver 192.0.2.53\n`);
  },
  { nodeIp: '192.0.2.1' },
);

engineTest(
  'ports are forwarded into the pod, also to loopback listeners, with half-closed connections',
  async (t, opened) => {
    const id = await sandbox(opened);
    await started(opened, id, 'while :; do nc -l -p 7000 -e sh -c "read x; echo got \\$x; cat"; done');
    const { portForward } = opened.engine.runtime.streaming;
    const stream = await until(() => portForward?.(id, 7000).catch(() => undefined) ?? Promise.resolve(undefined));
    stream.end('hello\nmore');
    let text = '';
    for await (const chunk of stream) text += String(chunk);
    t.is(text, 'got hello\nmore');
    await started(opened, id, 'httpd -f -p 127.0.0.1:7002');
    const loopback = await until(() => portForward?.(id, 7002).catch(() => undefined) ?? Promise.resolve(undefined));
    loopback.end('GET /nothing HTTP/1.0\r\n\r\n');
    for await (const chunk of loopback) text += String(chunk);
    t.regex(text, /HTTP\/1.. 404/);
    await t.throwsAsync(async () => portForward?.(id, 7001), { code: 'Unavailable' });
  },
);

engineTest('a host port is forwarded to the container port', async (t, opened) => {
  const id = await sandbox(opened, { portMappings: [{ protocol: 'TCP', containerPort: 80, hostPort: 18080 }] });
  await started(opened, id, 'while :; do echo hello | nc -l -p 80; done');
  const [program, ...enter] = opened.podman.enter;
  const connect = () => run(program, [...enter, 'busybox', 'nc', '-w', '5', '127.0.0.1', '18080']);
  t.is(await until(async () => (await connect().catch(() => ({ stdout: '' }))).stdout || undefined), 'hello\n');
});

engineTest('security settings are applied', async (t, opened) => {
  const id = await sandbox(opened, { securityContext: { privileged: true } });
  const profile = join(opened.folder, 'seccomp.json');
  await writeFile(
    profile,
    JSON.stringify({
      defaultAction: 'SCMP_ACT_ALLOW',
      syscalls: [{ names: ['mkdir', 'mkdirat'], action: 'SCMP_ACT_ERRNO' }],
    }),
  );
  const runWith = async (securityContext: object, script: string, more: object = {}) =>
    exec(opened, await started(opened, id, idle, { securityContext, ...more }), script);
  const bounding = 'grep CapBnd /proc/self/status | cut -f 2';
  t.is(await runWith({ capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] } }, bounding), '0000000000001000\n');
  t.regex(await runWith({ privileged: true }, bounding), /^000001ff/);
  t.regex(await runWith({ readonlyRootfs: true }, 'touch /x'), /Read-only file system/);
  t.regex(
    await runWith({ seccomp: { type: 'localhost', localhostRef: profile } }, 'mkdir /tmp/x'),
    /Operation not permitted/,
  );
  t.is(await runWith({ seccomp: { type: 'unconfined' } }, 'grep Seccomp: /proc/self/status | cut -f 2'), '0\n');
  t.is(await runWith({ runAsUser: 4242, runAsGroup: 5 }, 'id -u; id -g'), '4242\n5\n');
  t.is(await runWith({ runAsGroup: 5 }, 'id -u; id -g'), '0\n5\n');
  const devices = [{ hostPath: '/dev/null', containerPath: '/dev/keelson', permissions: 'rw' }];
  t.is(await runWith({}, 'echo x > /dev/keelson && echo written', { devices }), 'written\n');
  const missing = started(opened, id, idle, {
    securityContext: { seccomp: { type: 'localhost', localhostRef: '/no/such' } },
  });
  await t.throwsAsync(missing, { code: 'InvalidArgument' });
});

engineTest('resource limits are applied by the kernel, at the start and after an update', async (t, opened) => {
  const { runtime } = opened.engine;
  const resources = {
    cpuShares: 512,
    cpuQuotaUs: 50_000,
    cpuPeriodUs: 100_000,
    memoryLimitBytes: 64 * 1024 * 1024,
    oomScoreAdjust: -998,
  };
  const id = await started(opened, await sandbox(opened), idle, { resources });
  const files = async () => {
    const { pid } = await runtime.containerStatus(id);
    const groups = await readFile(`/proc/${pid}/cgroup`, 'utf8');
    const read = async (controller: string, file: string) => {
      const path = new RegExp(`^\\d+:(?:.*,)?${controller}(?:,.*)?:(.*)$`, 'm').exec(groups)?.[1];
      return path === undefined
        ? undefined
        : (await readFile(join('/sys/fs/cgroup', controller, path, file), 'utf8')).trim();
    };
    return [await read('cpu', 'cpu.shares'), await read('memory', 'memory.limit_in_bytes')];
  };
  const before = await files();
  if (before[0] === undefined) {
    t.pass('no controllers of version 1 on this machine');
    return;
  }
  t.deepEqual(before, ['512', String(64 * 1024 * 1024)]);
  await runtime.updateContainerResources?.(id, { cpuShares: 128, memoryLimitBytes: 32 * 1024 * 1024 });
  t.deepEqual(await files(), ['128', String(32 * 1024 * 1024)]);
  const { cpuShares, cpuQuotaUs, memoryLimitBytes } = (await runtime.containerStatus(id)).resources;
  t.deepEqual([cpuShares, cpuQuotaUs, memoryLimitBytes], [128, 50_000, 32 * 1024 * 1024]);
});

engineTest('later mounts appear only in containers with mount propagation', async (t, opened) => {
  const shared = join(opened.folder, 'shared');
  await mkdir(join(shared, 'later'), { recursive: true });
  const [program, ...enter] = opened.podman.enter;
  const outside = (script: string) => run(program, [...enter, 'sh', '-c', script]);
  await outside(`mount --bind ${shared} ${shared} && mount --make-rshared ${shared}`);
  const id = await sandbox(opened);
  const mount = { hostPath: shared, containerPath: '/mnt' };
  const follower = await started(opened, id, idle, { mounts: [{ ...mount, propagation: 'hostToContainer' }] });
  const isolated = await started(opened, id, idle, { mounts: [mount] });
  await outside(`mount -t tmpfs tmpfs ${shared}/later && touch ${shared}/later/seen`);
  t.is(await exec(opened, follower, 'ls /mnt/later'), 'seen\n');
  t.is(await exec(opened, isolated, 'ls /mnt/later'), '');
  await opened.engine.runtime.removePodSandbox(id);
  await outside(`umount ${shared}/later; umount ${shared}`);
});

engineTest(
  'terminals of commands and attached clients have a size and transmit input and output',
  async (t, opened) => {
    const { streaming } = opened.engine.runtime;
    const id = await started(opened, await sandbox(opened), 'while read -r line; do echo "got $line"; done', {
      tty: true,
      stdin: true,
    });
    const request = { stdin: true, stdout: true, stderr: false, tty: true };
    // The size is sent over another connection than the input, so the command waits for it.
    const script = 'until [ "$(stty size)" = "40 120" ]; do sleep 0.05; done; read x; stty size; exit 3';
    const command = await streaming.exec?.(id, { ...request, command: ['/bin/sh', '-c', script] });
    command?.resize?.({ width: 120, height: 40 });
    const text = collect(command?.stdout);
    command?.stdin?.write('go\n');
    t.deepEqual(await command?.ended, { exitCode: 3 });
    t.regex(await text, /40 120/);
    const attached = await streaming.attach?.(id, request);
    attached?.resize?.({ width: 100, height: 30 });
    const answer = new Promise((resolve) => {
      let seen = '';
      attached?.stdout?.on('data', (chunk) => {
        seen += String(chunk);
        if (seen.includes('got hello')) resolve(seen);
      });
    });
    attached?.stdin?.write('hello\n');
    t.regex(String(await answer), /got hello\r\n/);
    attached?.close();
  },
);

engineTest('a failed start of a container is also reported by the next runtime', async (t, opened) => {
  const { runtime } = opened.engine;
  const config = {
    metadata: { name: 'bad', attempt: 0 },
    image: opened.podman.busyboxImage,
    command: ['/no/such/program'],
  };
  const id = await runtime.createContainer(await sandbox(opened), config);
  await t.throwsAsync(runtime.startContainer(id), { code: 'StartFailed', message: /no such file/ });
  const status = await runtime.containerStatus(id);
  t.like(status, { state: 'exited', reason: 'StartError', exitCode: 128 });
  const next = await openEngine(opened.podman, opened.options, opened.folder);
  t.deepEqual(await next.engine.runtime.containerStatus(id), status);
  await next.engine.runtime[Symbol.asyncDispose]();
});

engineTest('containers of other owners are neither listed nor changed', async (t, opened) => {
  const id = await sandbox(opened);
  const other = await openEngine(opened.podman);
  t.teardown(() => other.dispose());
  t.deepEqual(await other.engine.runtime.listPodSandboxes(), []);
  t.is((await opened.engine.runtime.podSandboxStatus(id)).state, 'ready');
});

if (podman !== undefined) {
  const place = join(podman.folder, 'cni');
  mkdirSync(join(place, 'net.d'), { recursive: true });
  const bridge = { type: 'bridge', bridge: 'keelson0', isGateway: true };
  const ipam = { type: 'host-local', dataDir: join(place, 'ipam'), ranges: [[{ subnet: '10.99.0.0/24' }]] };
  const list = { cniVersion: '0.4.0', name: 'test', plugins: [{ ...bridge, ipam }] };
  writeFileSync(join(place, 'net.d', '10-test.conflist'), JSON.stringify(list));
  const network = createCniNetwork({
    ...{ binDirs: ['/usr/lib/cni'], confDir: join(place, 'net.d'), stateDirectory: join(place, 'state') },
    ...{ clock: systemClock, logger: silentLogger, launch: podman.enter },
  });
  engineTest(
    'a network plugin configures the network of sandboxes, and releases it when they stop',
    async (t, opened) => {
      const { runtime } = opened.engine;
      t.true((await runtime.status()).conditions.every(({ status }) => status));
      const id = await sandbox(opened);
      const { ips } = await runtime.podSandboxStatus(id);
      t.regex(ips[0] ?? '', /^10\.99\.0\.\d+$/);
      const container = await started(opened, id, idle);
      t.true((await exec(opened, container, 'ip -4 -o address show dev eth0')).includes(` ${ips[0]}/24`));
      const next = await openEngine(opened.podman, opened.options, opened.folder);
      t.deepEqual((await next.engine.runtime.podSandboxStatus(id)).ips, ips);
      await next.engine.runtime[Symbol.asyncDispose]();
      await runtime.stopPodSandbox(id);
      t.deepEqual((await runtime.podSandboxStatus(id)).ips, []);
      const leases = () => run('ls', [join(place, 'ipam', 'test')]).then(({ stdout }) => stdout);
      t.false((await leases()).includes(ips[0] ?? ''));
    },
    { network },
  );
}

test('a server that is no engine, or an engine that is too old, is rejected', async (t) => {
  const { createServer } = await import('node:http');
  const { mkdtemp, rm } = await import('node:fs/promises');
  const { createEngineRuntime } = await import('../src/index.ts');
  const folder = await mkdtemp('/tmp/keelson-engine-');
  t.teardown(() => rm(folder, { recursive: true }));
  const options = { endpoint: `unix://${folder}/s`, infraImage: 'pause', stateDirectory: join(folder, 'state') };
  await t.throwsAsync(createEngineRuntime({ ...options, endpoint: 'tcp://127.0.0.1:1' }), { code: 'InvalidArgument' });
  let headers: Record<string, string> = { 'api-version': '1.24' };
  const server = createServer((_request, response) => response.writeHead(200, headers).end('OK')).listen(`${folder}/s`);
  t.teardown(() => server.close());
  await t.throwsAsync(createEngineRuntime(options), { code: 'Unsupported', message: /1\.24/ });
  headers = {};
  t.true(isRuntimeError(await t.throwsAsync(createEngineRuntime(options)), 'Unsupported'));
});

async function collect(stream: AsyncIterable<unknown> | undefined): Promise<string> {
  let text = '';
  for await (const chunk of stream ?? []) text += String(chunk);
  return text;
}
