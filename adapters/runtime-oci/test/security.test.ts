import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ownCapabilities } from '../src/bundle/capabilities.ts';
import { defaultProfile } from '../src/bundle/seccomp.ts';
import { benchTest } from './support/bench.ts';
import { userImage } from './support/busybox-image.ts';

const test = benchTest();
const effective = "grep CapEff /proc/self/status | tr -d '\\t'";
const privileged = { securityContext: { privileged: true } };

test('a container has the default capabilities, with added and without dropped ones', async (t) => {
  const { run } = t.context;
  t.is((await run(effective)).text, 'CapEff:00000000a80425fb');
  const capabilities = { drop: ['ALL'], add: ['NET_BIND_SERVICE', 'CAP_CHOWN'] };
  t.is((await run(effective, { securityContext: { capabilities } })).text, 'CapEff:0000000000000401');
});

test('unknown capabilities, and those that the runtime itself lacks, are rejected', async (t) => {
  const { context } = t.context;
  const sandboxId = await context.sandbox();
  const add = (name: string) =>
    context.create(sandboxId, { kind: 'run' }, { securityContext: { capabilities: { add: [name] } } });
  await t.throwsAsync(add('NO_SUCH'), { code: 'InvalidArgument' });
  await t.notThrowsAsync(add('ALL'));
});

test('a user other than root has no capabilities', async (t) => {
  t.is((await t.context.run(effective, { securityContext: { runAsUser: 1000 } })).text, 'CapEff:0000000000000000');
});

test('user, groups, environment, working directory and command are taken from the image and its files', async (t) => {
  const { run } = t.context;
  const text = 'id -u; id -g; pwd; echo $FROM_IMAGE $HOME';
  t.is(
    (await run(text, { image: userImage, command: ['/bin/sh', '-c', text] })).text,
    '4242\n4343\n/home\nyes /home/app',
  );
  t.is((await run('', { image: userImage, command: [] })).text, '4242');
  t.is((await run('id -u; id -g', { securityContext: { runAsUsername: 'app' } })).text, '4242\n4343');
});

test('a read-only root cannot be written, except its own file systems', async (t) => {
  const { text } = await t.context.run(
    'cat /suite-file; echo x > /new || echo refused; echo y > /dev/shm/z && echo written',
    {
      securityContext: { readonlyRootfs: true },
    },
  );
  t.regex(text, /^original\nrefused\nwritten/);
});

test('kernel settings are read-only, and files that expose the host are masked', async (t) => {
  const { text } = await t.context.run(
    'echo 1 > /proc/sys/vm/swappiness || echo refused; wc -c < /proc/interrupts; ls /sys/firmware | wc -l',
  );
  t.regex(text, /^refused\n0\n0/);
});

test('masked and read-only paths of a container replace those of the runtime', async (t) => {
  const script =
    'wc -c < /proc/version; test $(wc -c < /proc/interrupts) -gt 0 && echo visible; (echo 1 > /proc/1/oom_score_adj) 2> /dev/null || echo refused';
  const securityContext = { maskedPaths: ['/proc/version'], readonlyPaths: ['/proc/1'] };
  t.is((await t.context.run(script, { securityContext })).text, '0\nvisible\nrefused');
});

test('a privileged container has devices, all capabilities and a writable /sys, and requires a privileged pod', async (t) => {
  const { context, run } = t.context;
  const script =
    'ls /dev | wc -l; test -w /proc/sys/vm/swappiness && echo writable; mount -t tmpfs none /home && echo mounted';
  const { text } = await run(script, privileged, privileged);
  const [devices = '0', ...rest] = text.split('\n');
  t.true(Number(devices) > 20, devices);
  t.deepEqual(rest, ['writable', 'mounted']);
  await t.throwsAsync(context.create(await context.sandbox(), { kind: 'run' }, privileged), {
    code: 'InvalidArgument',
  });
});

test('only requested devices are available, with their names and permissions', async (t) => {
  const { context, run } = t.context;
  const device = { hostPath: '/dev/kmsg', containerPath: '/dev/nothing-else', permissions: 'w' };
  const script = `true > /dev/nothing-else && echo opened; head -c 1 /dev/nothing-else || echo refused
    mknod /tmp/mem c 1 1; cat /tmp/mem || echo forbidden`;
  const { text } = await run(script, { devices: [device] });
  t.regex(text, /^opened\nrefused\nforbidden/);
  const sandboxId = await context.sandbox();
  for (const bad of [
    { ...device, hostPath: '/dev/no-such' },
    { ...device, permissions: 'x' },
  ])
    await t.throwsAsync(context.create(sandboxId, { kind: 'run' }, { devices: [bad] }), { code: 'InvalidArgument' });
});

test('the default seccomp profile permits a shell and blocks administrative system calls', async (t) => {
  const seccomp = { type: 'runtimeDefault' } as const;
  const script =
    "grep Seccomp: /proc/self/status | tr -d '\\t'; unshare -U true || echo refused; sleep 0.01; ls / > /dev/null && echo works";
  const { text } = await t.context.run(script, { securityContext: { seccomp } });
  t.regex(text, /^Seccomp:2\nrefused\nworks/);
  t.regex((await t.context.run("grep Seccomp: /proc/self/status | tr -d '\\t'")).text, /^Seccomp:0/);
});

test('a seccomp profile from a file is applied with its conditions; an invalid file is rejected', async (t) => {
  const { context, run } = t.context;
  const folder = await context.scratch();
  const path = join(folder, 'profile.json');
  const forbid = (name: string, more: object = {}) => ({ names: [name], action: 'SCMP_ACT_ERRNO', ...more });
  const syscalls = [
    forbid('mkdir', { includes: { caps: ['CAP_CHOWN'] } }),
    forbid('mkdirat', { includes: { caps: ['CAP_CHOWN'] } }),
    forbid('rmdir', { includes: { caps: ['CAP_SYS_ADMIN'] } }),
    forbid('unlinkat', { excludes: { caps: ['CAP_CHOWN'] } }),
  ];
  const archMap = [{ architecture: 'SCMP_ARCH_X86_64', subArchitectures: ['SCMP_ARCH_X86'] }];
  await writeFile(path, JSON.stringify({ defaultAction: 'SCMP_ACT_ALLOW', archMap, syscalls }));
  const seccomp = { type: 'localhost', localhostRef: path } as const;
  const { text } = await run('mkdir /tmp/a || echo refused; rmdir /home && echo removed', {
    securityContext: { seccomp },
  });
  t.regex(text, /^refused\nremoved/);
  const attempt = (localhostRef: string) =>
    context
      .sandbox()
      .then((id) =>
        context.create(id, { kind: 'run' }, { securityContext: { seccomp: { type: 'localhost', localhostRef } } }),
      );
  await t.throwsAsync(attempt(join(folder, 'missing.json')), { code: 'InvalidArgument' });
});

test('capabilities permit the system calls that they are for', (t) => {
  const names = (capabilities: string[]) => {
    const { syscalls } = defaultProfile(capabilities, 'x64') as { syscalls: { names: string[]; action: string }[] };
    return syscalls.filter(({ action }) => action === 'SCMP_ACT_ALLOW').flatMap((rule) => rule.names);
  };
  t.false(names([]).includes('mount'));
  t.true(names(['CAP_SYS_ADMIN']).includes('mount'));
  t.false(names([]).includes('reboot'));
  t.true(names([]).includes('clone') && !names([]).includes('clone3'));
  t.true(names(['CAP_SYS_ADMIN']).includes('clone3'));
});

test('resource limits are applied, and a score below the permitted one is raised to it', async (t) => {
  const resources = { pidsLimit: 5, oomScoreAdjust: -900, cpuShares: 256 };
  const script = 'cat /proc/self/oom_score_adj; for i in 1 2 3 4 5 6 7 8; do sleep 1 & done; wait';
  const { text } = await t.context.run(script, { resources });
  const own = Number(readFileSync('/proc/self/oom_score_adj', 'utf8'));
  const expected = ownCapabilities().includes('SYS_RESOURCE') ? -900 : Math.max(-900, own);
  t.regex(text, new RegExp(`^${expected}\\n.*[Cc]annot fork`, 's'));
});
