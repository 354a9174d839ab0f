import { readFile, readlink, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { benchTest } from './support/bench.ts';
import { shell } from './support/oci-harness.ts';

const test = benchTest();
const own = { network: 'pod', pid: 'container', ipc: 'pod' } as const;

test('without a network plugin a pod has the network and host name of the host, and its status reports this', async (t) => {
  const { context, run } = t.context;
  const id = await context.sandbox({ hostname: 'ignored' });
  const status = await context.runtime.podSandboxStatus(id);
  t.deepEqual([status.namespaces.network, status.ips], ['node', ['192.0.2.1']]);
  t.is((await run('hostname')).text, hostname());
});

test('a container is the first process of its own PID namespace, and sees no others', async (t) => {
  t.is((await t.context.run('echo $$; ls -d /proc/[0-9]* | wc -l')).text.split(/\s+/)[0], '1');
});

test('containers share the IPC namespace of their pod, not that of other pods', async (t) => {
  const { context } = t.context;
  const { runtime } = context;
  const [one, two] = [await context.sandbox(), await context.sandbox()];
  const [a, b, c] = [
    await context.started({ kind: 'run' }, {}, one),
    await context.started({ kind: 'run' }, {}, one),
    await context.started({ kind: 'run' }, {}, two),
  ];
  await context.exec(a, ['/bin/sh', '-c', 'echo shared > /dev/shm/f']);
  t.is(await context.exec(b, ['cat', '/dev/shm/f']), 'shared\n');
  t.not((await runtime.execSync(c, { command: ['cat', '/dev/shm/f'] })).exitCode, 0);
  t.is(
    await context.exec(a, ['readlink', '/proc/self/ns/ipc']),
    await context.exec(b, ['readlink', '/proc/self/ns/ipc']),
  );
  t.not(
    await context.exec(a, ['readlink', '/proc/self/ns/ipc']),
    await context.exec(c, ['readlink', '/proc/self/ns/ipc']),
  );
});

test('host namespaces are used on request', async (t) => {
  const namespaces = { network: 'node', pid: 'node', ipc: 'node' } as const;
  const securityContext = { namespaces };
  const { text } = await t.context.run(
    'for name in pid ipc net; do readlink /proc/self/ns/$name; done',
    { securityContext },
    { securityContext },
  );
  t.deepEqual(
    text.split('\n'),
    await Promise.all(['pid', 'ipc', 'net'].map((name) => readlink(`/proc/self/ns/${name}`))),
  );
});

test('containers with a shared PID namespace see each other, and none outlives its own first process', async (t) => {
  const { context } = t.context;
  const { runtime } = context;
  const securityContext = { namespaces: { ...own, pid: 'pod' } as const };
  const sandboxId = await context.sandbox({ securityContext });
  const watcher = await context.started({ kind: 'run' }, { securityContext }, sandboxId);
  const script = 'setsid sh -c "trap \\"\\" TERM; while :; do sleep 0.1; done" marker & sleep 0.2; exit 3';
  const other = await context.started(context.script(script), { securityContext }, sandboxId);
  t.is((await context.waitFor(other, 'exited')).exitCode, 3);
  const listed = await context.exec(watcher, ['ps', '-o', 'pid,args']);
  t.regex(listed, /^ +1 .*holder/m);
  t.notRegex(listed, /marker/, 'its child processes were killed');
  t.is((await runtime.containerStatus(watcher)).state, 'running');
  // The root of the first process contains nothing of the host.
  t.is(await context.exec(watcher, ['/bin/sh', '-c', 'ls /proc/1/root/etc 2>/dev/null || echo nothing']), 'nothing\n');
});

test('a container cannot share a PID namespace that its pod does not have', async (t) => {
  const { context } = t.context;
  const securityContext = { namespaces: { ...own, pid: 'pod' } as const };
  await t.throwsAsync(context.create(await context.sandbox(), { kind: 'run' }, { securityContext }), {
    code: 'InvalidArgument',
  });
});

test('with the host PID namespace, child processes of the first process end with it', async (t) => {
  const { context } = t.context;
  const securityContext = { namespaces: { ...own, pid: 'node' } as const };
  const script = 'setsid sh -c "while :; do sleep 0.1; done" marker-of-leftover & sleep 0.1; exit 4';
  const id = await context.started(
    context.script(script),
    { securityContext },
    await context.sandbox({ securityContext }),
  );
  t.is((await context.waitFor(id, 'exited')).exitCode, 4);
  const watcher = await context.started(
    { kind: 'run' },
    { securityContext },
    await context.sandbox({ securityContext }),
  );
  t.notRegex(await context.exec(watcher, ['ps', '-o', 'args']), /marker-of-leftover/);
});

test('sysctls of the pod are set in its namespaces, others are rejected', async (t) => {
  const { context, run } = t.context;
  const sysctls = { 'kernel.shmmax': '123456', 'kernel.msgmax': '4096' };
  t.is((await run('cat /proc/sys/kernel/shmmax /proc/sys/kernel/msgmax', {}, { sysctls })).text, '123456\n4096');
  t.not((await readFile('/proc/sys/kernel/shmmax', 'utf8')).trim(), '123456');
  for (const name of ['vm.swappiness', 'kernel.hostname', 'net.ipv4.ip_forward', 'kernel.shm/../../vm/swappiness'])
    await t.throwsAsync(context.sandbox({ sysctls: { [name]: '1' } }), { code: 'InvalidArgument' }, name);
  await t.throwsAsync(context.sandbox({ sysctls: { 'kernel.shmmax': 'nonsense' } }), { code: 'Internal' });
});

test('resolv.conf contains the DNS settings of the pod, by default those of the host', async (t) => {
  const dns = { servers: ['192.0.2.53', '2001:db8::53'], searches: ['a.test', 'b.test'], options: ['ndots:5'] };
  const { text } = await t.context.run('cat /etc/resolv.conf', {}, { dns });
  t.is(text, 'nameserver 192.0.2.53\nnameserver 2001:db8::53\nsearch a.test b.test\noptions ndots:5');
  t.is((await t.context.run('cat /etc/resolv.conf')).text, (await readFile('/etc/resolv.conf', 'utf8')).trim());
  await t.throwsAsync(t.context.context.sandbox({ dns: { ...dns, servers: ['192.0.2.53\nnameserver 192.0.2.54'] } }), {
    code: 'InvalidArgument',
  });
});

test('a mount of the container replaces a file of the pod', async (t) => {
  const { context, run } = t.context;
  const hostPath = join(await context.scratch(), 'hosts');
  await writeFile(hostPath, 'managed\n');
  t.is((await run('cat /etc/hosts', { mounts: [{ hostPath, containerPath: '/etc/hosts' }] })).text, 'managed');
});

test('a pod whose first process was killed rejects new containers, and can be removed', async (t) => {
  const { context, opened } = t.context;
  const securityContext = { namespaces: { ...own, pid: 'pod' } as const };
  const id = await context.sandbox({ securityContext });
  const pid = Number(await readFile(join(opened.folder, 'state/pods', id, 'holder/pid'), 'utf8'));
  process.kill(pid, 'SIGKILL');
  await t.throwsAsync(
    context.create(id, shell('true')).then((container) => context.runtime.startContainer(container)),
    { code: 'StartFailed' },
  );
  await context.runtime.removePodSandbox(id);
  await t.throwsAsync(context.runtime.podSandboxStatus(id), { code: 'NotFound' });
});
