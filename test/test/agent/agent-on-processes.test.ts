import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createProcessRuntime } from '@keelson/runtime-process';
import { eventually } from '@keelson/testing';
import test, { type ExecutionContext } from 'ava';
import { type AgentNode, scratchDirectory, startAgentNode } from '../../src/agent-node.ts';

interface Machine {
  readonly dir: string;
  readonly manifests: string;
  /** Starts an agent; the one before is left as a killed one leaves things. */
  begin(): Promise<AgentNode>;
}

async function machine(t: ExecutionContext): Promise<Machine> {
  t.timeout(60_000);
  const { dir, remove } = await scratchDirectory();
  const manifests = join(dir, 'manifests');
  await mkdir(manifests);
  let last: AgentNode | undefined;
  let left: () => Promise<number> = async () => 0;
  const begin = async () => {
    const engine = await createProcessRuntime({ stateDirectory: join(dir, 'runtime'), nodeIp: '192.0.2.1' });
    const words = [`--pod-manifest-path=${manifests}`, '--file-check-frequency=200ms'];
    const node = await startAgentNode({ name: 'alone', engine, words, dir });
    last = node;
    left = async () => (await engine.runtime.listPodSandboxes()).length;
    return { ...node, stop: () => node.stop().then(() => engine.runtime[Symbol.asyncDispose]()) };
  };
  t.teardown(async () => {
    for (const name of await readdir(manifests)) await rm(join(manifests, name));
    // Monitors of containers end with their sandboxes, and need their files until then.
    await eventually(async () => (await left()) === 0);
    await last?.stop();
    await remove();
  });
  return { dir, manifests, begin };
}

/** In commands of pods `$$` stands for one `$`. */
const manifest = (name: string, script: string): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      hostNetwork: true,
      hostPID: true,
      terminationGracePeriodSeconds: 5,
      containers: [{ name: 'main', image: 'host', imagePullPolicy: 'Never', command: ['/bin/sh', '-c', script] }],
    },
  });

async function drop({ manifests }: Machine, name: string, script: string): Promise<void> {
  await writeFile(join(manifests, `.${name}`), manifest(name, script));
  await rename(join(manifests, `.${name}`), join(manifests, `${name}.json`));
}

const pid = (path: string) => eventually(async () => Number(await readFile(path, 'utf8')) || undefined);
const find = (node: AgentNode, name: string) =>
  node.agent.state.pods().find(({ metadata }) => metadata?.name === `${name}-alone`);

test('a manifest runs as a process, which is restarted when killed and terminated gracefully with its file', async (t) => {
  const here = await machine(t);
  const node = await here.begin();
  const file = join(here.dir, 'pid');
  const bye = join(here.dir, 'bye');
  await drop(here, 'web', `trap 'echo bye > ${bye}; exit 0' TERM; echo $$$$ > ${file}; while :; do sleep 0.1; done`);
  await eventually(() => find(node, 'web')?.status?.phase === 'Running');
  const first = await pid(file);
  t.true((await readFile(`/proc/${first}/cmdline`, 'utf8')).includes(file), 'the number is that of the process');
  process.kill(first, 'SIGKILL');
  await eventually(() => find(node, 'web')?.status?.containerStatuses?.[0]?.restartCount === 1);
  await eventually(async () => (await pid(file)) !== first);
  t.is(find(node, 'web')?.status?.containerStatuses?.[0]?.lastState?.terminated?.exitCode, 137);
  await rm(join(here.manifests, 'web.json'));
  await eventually(async () => (await readFile(bye, 'utf8')) === 'bye\n');
  await eventually(async () => (await node.agent.state.runningPods()).length === 0);
});

test('an edited manifest replaces the pod', async (t) => {
  const here = await machine(t);
  const node = await here.begin();
  const file = join(here.dir, 'word');
  await drop(here, 'web', `echo one > ${file}; exec sleep 600`);
  await eventually(async () => (await readFile(file, 'utf8')) === 'one\n');
  await eventually(() => find(node, 'web')?.status?.phase === 'Running');
  const uid = find(node, 'web')?.metadata?.uid;
  await drop(here, 'web', `echo two > ${file}; exec sleep 600`);
  await eventually(async () => (await readFile(file, 'utf8')) === 'two\n');
  t.not(find(node, 'web')?.metadata?.uid, uid);
  await eventually(async () => (await node.agent.state.runningPods()).length === 1);
});

test('twenty pods outlive their agent: the next agent adopts all and restarts none', async (t) => {
  const here = await machine(t);
  const node = await here.begin();
  const names = Array.from({ length: 20 }, (_, i) => `p${i}`);
  for (const name of names) await drop(here, name, `echo $$$$ > ${join(here.dir, name)}; exec sleep 600`);
  await eventually(() => names.every((name) => find(node, name)?.status?.phase === 'Running'), 40_000);
  const before = await Promise.all(names.map((name) => pid(join(here.dir, name))));
  await node.stop();
  const next = await here.begin();
  await eventually(() => names.every((name) => find(next, name)?.status?.phase === 'Running'), 40_000);
  t.true(names.every((name) => find(next, name)?.status?.containerStatuses?.[0]?.restartCount === 0));
  t.deepEqual(await Promise.all(names.map((name) => pid(join(here.dir, name)))), before);
  for (const id of before) t.true(process.kill(id, 0));
});
