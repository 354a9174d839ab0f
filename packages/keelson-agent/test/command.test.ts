import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Pod } from '@keelson/kinds';
import { freePort, temporaryDirectory, until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';

const binary = fileURLToPath(new URL('../../dist/bundle/keelson-agent.js', import.meta.url));

interface Command {
  readonly child: ChildProcess;
  readonly ended: Promise<{ code: number | null; stdout: string; stderr: string }>;
  stderr(): string;
}

function run(t: ExecutionContext, words: readonly string[], env: Record<string, string> = {}): Command {
  // Chains and disk usage of this machine do not affect the test; a later argument takes precedence.
  const child = spawn(process.execPath, [binary, '--make-iptables-util-chains=false', '--eviction-hard=', ...words], {
    // What the machine has does not decide what is tested.
    env: { ...process.env, KEELSON_AGENT_RUNTIME: 'process', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => {
    stdout += String(chunk);
  });
  child.stderr.on('data', (chunk) => {
    stderr += String(chunk);
  });
  const ended = new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) =>
    child.once('close', (code) => resolve({ code, stdout, stderr })),
  );
  t.teardown(() => child.kill('SIGKILL'));
  return { child, ended, stderr: () => stderr };
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}

// The process runtime needs it.
const onLinux = process.platform === 'linux' ? test : test.skip;

test('--version prints one line, --version=raw prints all fields, and both exit with code 0', async (t) => {
  const line = await run(t, ['--version', '--no-such-thing=1'].slice(0, 1)).ended;
  t.deepEqual([line.code, line.stdout, line.stderr], [0, 'keelson-agent v0.1.0\n', '']);
  const raw = await run(t, ['--version=raw']).ended;
  t.is(JSON.parse(raw.stdout).name, 'keelson-agent');
});

test('--help prints every option and exits with code 0', async (t) => {
  const { code, stdout } = await run(t, ['--help']).ended;
  t.is(code, 0);
  t.true(stdout.includes('--pod-manifest-path string (default none)'));
});

for (const [words, message] of [
  [['--pod-manifest-pth=/x'], 'keelson-agent: unknown option --pod-manifest-pth; did you mean --pod-manifest-path?\n'],
  [['--sync-frequency=0'], 'keelson-agent: --sync-frequency must be longer than 0\n'],
] as const) {
  test(`a usage error (${words.join(' ')}): one sentence and exit code 2`, async (t) => {
    const directory = await temporaryDirectory(t);
    const { code, stdout, stderr } = await run(t, [...words, '--fail-swap-on=false', `--root-dir=${directory}`]).ended;
    t.deepEqual([code, stdout, stderr], [2, '', message]);
  });
}

test('--config: an error in the file is a usage error that names the file', async (t) => {
  const directory = await temporaryDirectory(t);
  const file = join(directory, 'agent.yaml');
  await writeFile(file, 'apiVersion: agentconfig/v1alpha1\nkind: AgentConfiguration\nmaxPod: 3\n');
  const { code, stderr } = await run(t, [`--config=${file}`, '--feature-gates=AgentConfigFile=true']).ended;
  t.deepEqual([code, stderr], [2, `keelson-agent: --config ${file}: unknown key maxPod; did you mean maxPods?\n`]);
});

test('--bootstrap-clusterconfig: a missing bootstrap file without a config file is one sentence and exit code 2', async (t) => {
  const directory = await temporaryDirectory(t);
  const [file, config] = [join(directory, 'bootstrap'), join(directory, 'clusterconfig')];
  const words = [
    `--root-dir=${directory}`,
    `--clusterconfig=${config}`,
    `--bootstrap-clusterconfig=${file}`,
    '--fail-swap-on=false',
  ];
  const { code, stderr } = await run(t, words, { KEELSON_AGENT_SYSCTL_ROOT: directory }).ended;
  t.is(code, 2);
  t.true(stderr.endsWith(`keelson-agent: --bootstrap-clusterconfig: cannot read the client config ${file}\n`), stderr);
});

onLinux(
  'without an API server: a manifest starts a pod, and SIGTERM ends the agent but not the container',
  async (t) => {
    t.timeout(60_000);
    const directory = await temporaryDirectory(t);
    const manifests = join(directory, 'manifests');
    await mkdir(manifests);
    const port = await freePort();
    const words = [
      `--pod-manifest-path=${manifests}`,
      `--root-dir=${directory}/root`,
      `--cert-dir=${directory}/pki`,
      '--address=127.0.0.1',
      '--port=0',
      `--read-only-port=${port}`,
      '--healthz-port=0',
      '--stats-port=0',
      '--hostname-override=n1',
      '--fail-swap-on=false',
    ];
    const env = { KEELSON_AGENT_LOG_ROOT: join(directory, 'log') };
    const pods = async (): Promise<Pod[]> => {
      const answer = await fetch(`http://127.0.0.1:${port}/pods`).catch(() => undefined);
      return answer === undefined ? [] : (((await answer.json()) as { items: Pod[] }).items ?? []);
    };
    const running = () => until(async () => (await pods()).find(({ status }) => status?.phase === 'Running'));
    const first = run(t, words, env);
    await writeFile(
      join(manifests, 'web.yaml'),
      `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  containers:
  # Doubled: the agent takes one away, as it does for variables.
  - {name: main, image: host, command: [sh, -c, "echo $$$$ > ${directory}/pid; exec sleep 300"]}
`,
    );
    const before = await running();
    const pid = await until(async () => Number(await readFile(join(directory, 'pid'), 'utf8')) || undefined);
    t.teardown(() => {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // Ended, as it should be.
      }
    });
    first.child.kill('SIGTERM');
    t.is((await first.ended).code, 0, first.stderr());
    t.notThrows(() => process.kill(pid, 0), 'the container runs on');
    const second = run(t, words, env);
    const after = await running();
    t.is(after.metadata?.uid, before.metadata?.uid);
    t.is(after.status?.containerStatuses?.[0]?.restartCount, 0);
    await rm(join(manifests, 'web.yaml'));
    await until(async () => (await pods()).length === 0);
    // The pod is no longer wanted at once; its container gets its time to end.
    await until(async () => !isAlive(pid));
    await until(async () => (await readdir(join(directory, 'root', 'runtime', 'containers'))).length === 0);
    second.child.kill('SIGTERM');
    t.is((await second.ended).code, 0, second.stderr());
  },
);

onLinux('--runonce starts the pods of manifests and exits with 0 when they run, with 1 when one fails', async (t) => {
  t.timeout(60_000);
  const pod = (name: string, script: string) =>
    `{apiVersion: v1, kind: Pod, metadata: {name: ${name}}, spec: {hostNetwork: true, restartPolicy: Never, containers: [{name: c, image: host, command: [sh, -c, "${script}"]}]}}\n`;
  for (const [script, expected] of [
    ['echo done', 0],
    ['exit 3', 1],
  ] as const) {
    const directory = await temporaryDirectory(t);
    const path = join(directory, 'pod.yaml');
    await writeFile(path, pod('job', script));
    const { code, stderr } = await run(
      t,
      [
        '--runonce',
        `--pod-manifest-path=${path}`,
        `--root-dir=${directory}/root`,
        '--hostname-override=n1',
        '--fail-swap-on=false',
      ],
      { KEELSON_AGENT_LOG_ROOT: join(directory, 'log') },
    ).ended;
    t.is(code, expected, stderr);
    // The monitor of a container waits until its output is stored, which never happens after the directory was removed.
    const states = join(directory, 'root', 'runtime', 'run');
    await until(async () => (await readdir(states)).some((name) => name.endsWith('.logged')));
    for (const name of (await readdir(states)).filter((one) => one.endsWith('.monitor'))) {
      const monitor = Number((await readFile(join(states, name), 'utf8')).split(' ')[0]);
      if (isAlive(monitor)) process.kill(monitor, 'SIGKILL');
    }
    if (expected === 1) t.regex(stderr, /--runonce: the pod default\/job-n1 failed/);
  }
});
