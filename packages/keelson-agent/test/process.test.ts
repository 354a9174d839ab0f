import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryDirectory, until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';

const binary = fileURLToPath(new URL('../../dist/bundle/keelson-agent.js', import.meta.url));
const onLinux = process.platform === 'linux' ? test : test.skip;
const waitMs = 30_000;

interface Command {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  stderr(): string;
  /** Waits for a line of the log. */
  logged(word: string): Promise<unknown>;
}

/** The real command, with servers on ports of the system's choice, and settings of a kernel that is none. */
async function run(t: ExecutionContext, words: readonly string[], env: Record<string, string> = {}): Promise<Command> {
  t.timeout(90_000);
  const directory = await temporaryDirectory(t);
  const common = [
    '--enable-server=false',
    '--read-only-port=0',
    '--healthz-port=0',
    '--stats-port=0',
    '--hostname-override=n1',
    '--fail-swap-on=false',
    '--make-iptables-util-chains=false',
    // How full this machine is decides nothing.
    '--eviction-hard=',
    `--root-dir=${directory}/root`,
    `--cert-dir=${directory}/pki`,
  ];
  const child = spawn(process.execPath, [binary, ...common, ...words], {
    env: {
      ...process.env,
      KEELSON_AGENT_LOG_ROOT: join(directory, 'log'),
      KEELSON_AGENT_RUNTIME: 'process',
      KEELSON_AGENT_SYSCTL_ROOT: join(directory, 'no-sysctl'),
      ...env,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.on('data', (chunk) => (stderr += String(chunk)));
  const ended = once(child, 'close').then(([code]) => code as number | null);
  let over = false;
  void ended.then(() => (over = true));
  t.teardown(() => child.kill('SIGKILL'));
  const logged = async (word: string) => {
    await until(() => stderr.includes(word) || over, word, waitMs);
    if (!stderr.includes(word)) throw new Error(`the command ended: ${stderr}`);
  };
  return { child, ended, stderr: () => stderr, logged };
}

onLinux('--max-open-files and --oom-score-adj become the limits of the process', async (t) => {
  const { child, ended, logged } = await run(t, ['--max-open-files=1500', '--oom-score-adj=321']);
  await logged('agent started');
  t.regex(await readFile(`/proc/${child.pid}/limits`, 'utf8'), /^Max open files\s+1500\s+1500\s/m);
  t.is((await readFile(`/proc/${child.pid}/oom_score_adj`, 'utf8')).trim(), '321');
  child.kill('SIGTERM');
  t.is(await ended, 0);
});

onLinux(
  '--lock-file: a second agent waits for the first; with --exit-on-lock-contention the first exits',
  async (t) => {
    const lock = `--lock-file=${join(await temporaryDirectory(t), 'lock')}`;
    const first = await run(t, [lock, '--exit-on-lock-contention']);
    await first.logged('agent started');
    const second = await run(t, [lock]);
    t.is(await first.ended, 0, first.stderr());
    t.regex(first.stderr(), /another process waits for the lock file/);
    await second.logged('agent started');
    const third = await run(t, [lock]);
    // Waits, and ends on request.
    await until(() => third.child.pid !== undefined);
    await waits(third.child.pid ?? 0);
    third.child.kill('SIGTERM');
    t.is(await third.ended, 0);
    t.false(third.stderr().includes('agent started'));
    second.child.kill('SIGTERM');
    t.is(await second.ended, 0, 'without the option it was not disturbed');
  },
);

/** Waits until a child of the process is waiting for a lock. */
async function waits(pid: number): Promise<void> {
  for (;;) {
    const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')).trim().split(' ');
    const locks = await readFile('/proc/locks', 'utf8');
    if (children.some((child) => child !== '' && new RegExp(`-> FLOCK .* ${child} `).test(locks))) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Makes the process throw an uncaught error, some time after the agent started. */
const fault = `--import data:text/javascript,${encodeURIComponent(
  `import fs from 'node:fs';
   const { writeSync } = fs;
   fs.writeSync = (file, text, ...rest) => {
     if (String(text).includes('agent started')) setTimeout(() => { throw new Error('made up') }, 1);
     return writeSync(file, text, ...rest);
   };`,
)}`;

onLinux(
  'an uncaught error is logged and the agent continues; with --really-crash-for-testing the process ends',
  async (t) => {
    const goesOn = await run(t, [], { NODE_OPTIONS: fault });
    await goesOn.logged('made up');
    t.regex(goesOn.stderr(), /"level":"error".*"err":"made up"/);
    goesOn.child.kill('SIGTERM');
    t.is(await goesOn.ended, 0, goesOn.stderr());
    const crashes = await run(t, ['--really-crash-for-testing'], { NODE_OPTIONS: fault });
    const code = await crashes.ended;
    t.true(code !== 0 && crashes.stderr().includes('Error: made up'), `${code}: ${crashes.stderr()}`);
  },
);

onLinux(
  '--protect-kernel-defaults: with different kernel settings the command exits with 1, without it they are set',
  async (t) => {
    const root = join(await temporaryDirectory(t), 'sysctl');
    await mkdir(join(root, 'vm'), { recursive: true });
    await writeFile(join(root, 'vm/overcommit_memory'), '0\n');
    const env = { KEELSON_AGENT_SYSCTL_ROOT: root };
    const refuses = await run(t, ['--protect-kernel-defaults'], env);
    t.is(await refuses.ended, 1);
    t.regex(
      refuses.stderr(),
      /--protect-kernel-defaults: settings of the kernel differ: vm.overcommit_memory is 0, not 1/,
    );
    const sets = await run(t, [], env);
    await sets.logged('agent started');
    t.is(await readFile(join(root, 'vm/overcommit_memory'), 'utf8'), '1');
    t.regex(sets.stderr(), /"name":"vm.overcommit_memory","from":"0","to":"1","msg":"a kernel setting was changed"/);
    sets.child.kill('SIGTERM');
    t.is(await sets.ended, 0);
    t.is(await readFile(join(root, 'vm/overcommit_memory'), 'utf8'), '0', 'restored when the agent ends');
  },
);

onLinux('without cgroups an agent starts with one warning, and fails when --cgroups-per-qos was given', async (t) => {
  const env = { KEELSON_AGENT_CGROUP_ROOT: '/nonexistent' };
  const first = await run(t, [], env);
  await first.logged('agent started');
  t.is(first.stderr().split('--cgroups-per-qos=false --enforce-node-allocatable=').length, 2, first.stderr());
  const second = await run(t, ['--cgroups-per-qos'], env);
  t.is(await second.ended, 1);
  t.regex(
    second.stderr(),
    /--cgroups-per-qos: cgroups cannot be used here: there is no cgroup hierarchy with cpu and memory at/,
  );
});

onLinux('cgroups of pods are created below KEELSON_AGENT_CGROUP_ROOT', async (t) => {
  const root = await temporaryDirectory(t);
  for (const name of ['cpu', 'memory']) {
    await mkdir(join(root, name));
    await writeFile(join(root, name, 'cgroup.procs'), '');
  }
  const { child, logged, ended } = await run(t, ['--cgroup-driver=systemd'], { KEELSON_AGENT_CGROUP_ROOT: root });
  await logged('agent started');
  for (const name of ['cpu', 'memory']) {
    const made = await readdir(join(root, name, 'kubepods.slice'));
    t.deepEqual(made.sort(), ['kubepods-besteffort.slice', 'kubepods-burstable.slice']);
  }
  child.kill('SIGTERM');
  t.is(await ended, 0);
});
