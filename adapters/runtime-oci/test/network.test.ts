import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createBridgeNetwork } from '@keelson/container-network';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import { installPrograms } from '@keelson/test-support';
import anyTest from 'ava';
import { benchTest } from './support/bench.ts';
import { image, missing } from './support/busybox-image.ts';

const absent = [
  ...missing,
  ...installPrograms(['iptables', 'ip'], ['iptables', 'iproute2', 'containernetworking-plugins']),
];

if (absent.length > 0)
  anyTest.skip(`pods with a network of their own [not run, there is no ${absent.join(', ')}]`, () => {});
else {
  // The node of this network is a namespace that the test creates: the network of the host does not change.
  const folder = mkdtempSync('/tmp/keelson-oci-network-');
  const node = join(folder, 'node');
  writeFileSync(node, '');
  execFileSync('unshare', [`--net=${node}`, 'ip', 'link', 'set', 'lo', 'up']);
  const inNode = ['nsenter', `--net=${node}`];
  const network = createBridgeNetwork({
    ...{ binDirs: ['/usr/lib/cni', '/opt/cni/bin'], stateDirectory: join(folder, 'network'), launch: inNode },
    ...{
      clock: systemClock,
      logger: silentLogger,
      podCidr: '10.79.0.0/24',
      bridge: 'kbr0',
      hairpinMode: 'none' as const,
    },
  });
  const test = benchTest({ network });
  test.after.always('the network is removed', () => {
    execFileSync('umount', [node]);
    rmSync(folder, { recursive: true });
  });

  test('a pod has an address, a name and a loopback interface of its own', async (t) => {
    const { context, run } = t.context;
    t.true(context.runtime.capabilities.podNetwork && context.runtime.capabilities.hostPorts);
    const logDirectory = await context.scratch();
    const id = await context.sandbox({ hostname: 'my-pod', logDirectory });
    const status = await context.runtime.podSandboxStatus(id);
    t.is(status.namespaces.network, 'pod');
    t.regex(status.ips[0] ?? '', /^10\.79\.0\.\d+$/);
    const { text } = await run(
      'hostname; cat /etc/hostname; ip -o addr show lo | grep -c inet; ip -o -4 addr show eth0',
      {},
      { hostname: 'other' },
    );
    t.regex(text, /^other\nother\n[12]\n.*10\.79\.0\.\d+\/24/);
  });

  test('a pod can use the host network', async (t) => {
    const { context } = t.context;
    const namespaces = { network: 'node', pid: 'container', ipc: 'pod' } as const;
    const id = await context.sandbox({ securityContext: { namespaces } });
    const status = await context.runtime.podSandboxStatus(id);
    t.deepEqual([status.namespaces.network, status.ips], ['node', ['192.0.2.1']]);
  });

  test('pods connect to each other, and each has its own sysctls', async (t) => {
    const { context, run } = t.context;
    const sandboxId = await context.sandbox({ sysctls: { 'net.ipv4.ip_unprivileged_port_start': '80' } });
    const server = await context.started(
      { image, command: ['nc', '-ll', '-p', '81', '-e', 'echo', 'hello'] },
      { securityContext: { runAsUser: 1000 } },
      sandboxId,
    );
    t.is(await context.exec(server, ['cat', '/proc/sys/net/ipv4/ip_unprivileged_port_start']), '80\n');
    const [address] = (await context.runtime.podSandboxStatus(sandboxId)).ips;
    const { text } = await run(
      `until nc ${address} 81 < /dev/null; do sleep 0.1; done; cat /proc/sys/net/ipv4/ip_unprivileged_port_start`,
    );
    t.is(text, 'hello\n1024');
  });

  test('port-forward reaches a process that listens on the loopback interface of the pod, and fails for other ports', async (t) => {
    const { context } = t.context;
    const sandboxId = await context.sandbox();
    const web = { image, command: ['httpd', '-f', '-h', '/', '-p', '127.0.0.1:8080'] };
    const id = await context.started(web, {}, sandboxId);
    await context.until('the server listens', async () =>
      (await context.exec(id, ['cat', '/proc/net/tcp'])).includes(':1F90'),
    );
    const stream = await context.runtime.streaming.portForward?.(sandboxId, 8080);
    t.truthy(stream);
    if (!stream) return;
    let text = '';
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    stream.write('GET /suite-file HTTP/1.0\r\n');
    stream.end('\r\n');
    await new Promise((resolve) => stream.once('close', resolve));
    t.regex(text, /^HTTP\/1\.[01] 200 OK\r\n[\s\S]*\r\n\r\noriginal\n$/);
    await t.throwsAsync(context.runtime.streaming.portForward?.(sandboxId, 9) ?? Promise.resolve(), {
      code: 'Unavailable',
    });
  });

  test('addresses remain after the runtime ends, and are released when the pod stops', async (t) => {
    const { opened } = t.context;
    const { createOciRuntime } = await import('../src/index.ts');
    const stateDirectory = join(opened.folder, 'second-state');
    // Two runtimes share a network: neither may remove the addresses of the other.
    const shared = { ...network, sweep: async () => {} };
    const options = {
      stateDirectory,
      network: shared,
      ...(opened.options.cgroups && { cgroups: opened.options.cgroups }),
    };
    const first = await createOciRuntime(options);
    const config = { metadata: { name: 'p', namespace: 'd', uid: 'u', attempt: 0 } };
    const id = await first.runtime.runPodSandbox(config);
    const { ips } = await first.runtime.podSandboxStatus(id);
    await first.runtime[Symbol.asyncDispose]();
    const second = await createOciRuntime(options);
    t.deepEqual((await second.runtime.podSandboxStatus(id)).ips, ips);
    await second.runtime.stopPodSandbox(id);
    t.deepEqual((await second.runtime.podSandboxStatus(id)).ips, []);
    await second.runtime.removePodSandbox(id);
    await second.runtime[Symbol.asyncDispose]();
  });
}
