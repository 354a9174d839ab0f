import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import test, { type ExecutionContext } from 'ava';
import childAdapter from '../src/own-runtime.ts';

const agent = fileURLToPath(
  new URL('./dist/src/bin/keelson-agent.js', import.meta.resolve('keelson-agent/package.json')),
);
const adapter = fileURLToPath(new URL('../src/own-runtime.js', import.meta.url));

interface Agent {
  readonly child: ChildProcess;
  readonly folder: string;
  readonly ended: Promise<number | null>;
  stderr(): string;
}

/** The command with this runtime, which only its configuration names. */
async function start(t: ExecutionContext, options: object): Promise<Agent> {
  const folder = await mkdtemp(join(tmpdir(), 'own-runtime-'));
  await mkdir(join(folder, 'manifests'));
  const args = [
    `--pod-manifest-path=${join(folder, 'manifests')}`,
    '--file-check-frequency=1s',
    `--root-dir=${join(folder, 'root')}`,
    `--cert-dir=${join(folder, 'pki')}`,
    '--hostname-override=n1',
    '--enable-server=false',
    '--read-only-port=0',
    '--healthz-port=0',
    '--stats-port=0',
    '--fail-swap-on=false',
    '--make-iptables-util-chains=false',
    '--eviction-hard=',
  ];
  const env = {
    ...process.env,
    KEELSON_AGENT_RUNTIME: adapter,
    KEELSON_AGENT_RUNTIME_OPTIONS: JSON.stringify(options),
    KEELSON_AGENT_LOG_ROOT: join(folder, 'log'),
  };
  const child = spawn(process.execPath, [agent, ...args], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let stderr = '';
  child.stderr?.on('data', (chunk) => {
    stderr += String(chunk);
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  t.teardown(async () => {
    child.kill('SIGTERM');
    await ended;
    await rm(folder, { recursive: true, force: true });
  });
  return { child, folder, ended, stderr: () => stderr };
}

/** Polls until the probe returns a value; as long as the test may take. */
async function eventually<T>(probe: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const value = await probe();
    if (value !== undefined) return value;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** The text of a container's log. */
function logOf(folder: string, container: string): Promise<string> {
  return eventually(async () => {
    const files = await readdir(join(folder, 'log'), { recursive: true }).catch((): string[] => []);
    const file = files.find((name) => name.endsWith(`/${container}_0.log`));
    const text = file === undefined ? '' : await readFile(join(folder, 'log', file), 'utf8').catch(() => '');
    return text === '' ? undefined : text;
  });
}

/** In commands of pods `$$` stands for one `$`. */
const pod = (script: string) => `apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: host
    command: [/bin/sh, -c, '${script}']
`;

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

const onLinux = process.platform === 'linux' ? test : test.skip;

onLinux('keelson-agent runs pods with this runtime, which only the configuration names', async (t) => {
  t.timeout(90_000);
  const { child, folder, ended, stderr } = await start(t, { environment: { GREETING: 'hello' } });
  await writeFile(join(folder, 'manifests', 'web.yaml'), pod('echo $GREETING $$$$; exec sleep 600'));
  const [, pid] = /stdout F hello (\d+)\n/.exec(await logOf(folder, 'main')) ?? [];
  t.true(isAlive(Number(pid)), stderr());
  t.regex(stderr(), /"runtime":"[^"]*own-runtime\.js".*"msg":"runtime selected"/);
  child.kill('SIGTERM');
  t.is(await ended, 0, stderr());
  t.false(isAlive(Number(pid)), 'this runtime declares that containers end with the agent');
});

onLinux('containers of a killed agent are ended by the next one', async (t) => {
  t.timeout(90_000);
  const { child, folder, ended } = await start(t, {});
  await writeFile(join(folder, 'manifests', 'web.yaml'), pod('echo pid $$$$; exec sleep 600'));
  const [, pid] = /stdout F pid (\d+)\n/.exec(await logOf(folder, 'main')) ?? [];
  child.kill('SIGKILL');
  await ended;
  t.true(isAlive(Number(pid)));
  const { runtime } = await childAdapter.open(
    {},
    {
      nodeName: 'n1',
      stateDirectory: join(folder, 'root', 'runtime-child'),
      imageDirectories: [],
      clock: systemClock,
      logger: silentLogger,
    },
  );
  await eventually(async () => (isAlive(Number(pid)) ? undefined : true));
  await runtime[Symbol.asyncDispose]();
});

onLinux('an unknown option of the runtime ends the agent with exit code 2 and one sentence', async (t) => {
  const { ended, stderr } = await start(t, { shards: 1 });
  t.is(await ended, 2);
  const last = stderr().trim().split('\n').at(-1);
  t.is(
    last,
    'keelson-agent: KEELSON_AGENT_RUNTIME_OPTIONS: the runtime child has no option shards; its options are: environment',
  );
});
