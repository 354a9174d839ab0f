import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createHttpClient, kubeconfigAccess, loadKubeconfig } from '@keelson/client';
import { systemClock } from '@keelson/core/runtime';
import { Node, Pod } from '@keelson/kinds';
import { freePort } from '@keelson/test-support';
import { eventually } from '@keelson/testing';
import test, { type ExecutionContext } from 'ava';
import { AgentMachine, type AgentProcess, waitingPod } from '../../src/agent-process.ts';
import { startKeelson, temporaryDirectory } from '../../src/keelson-process.ts';

const waitMs = 60_000;
const names = Array.from({ length: 20 }, (_, i) => `p${i}`);

const within = <T>(agent: AgentProcess, probe: () => Promise<T | undefined | false>) =>
  eventually(probe, waitMs).catch((error: Error) => {
    throw new Error(`${error.message}; output of the agent: ${agent.stderr()}`, { cause: error.cause });
  });

const pidIn = async (path: string) => Number(await readFile(path, 'utf8').catch(() => '0'));
const restarts = (pod: Pod | undefined) => pod?.status?.containerStatuses?.[0]?.restartCount;

async function machine(t: ExecutionContext, nodeName: string, words: readonly string[] = []): Promise<AgentMachine> {
  t.timeout(180_000);
  const made = await AgentMachine.create(await temporaryDirectory(), nodeName, words);
  t.teardown(() => made.clear());
  return made;
}

// The process runtime needs it.
const onLinux = process.platform === 'linux' ? test : test.skip;

onLinux(
  'kill -9 of the agent: the next one adopts all twenty pods, restarts none, and reports containers that ended',
  async (t) => {
    const here = await machine(t, 'n1');
    const pidFile = (name: string) => join(here.dir, `${name}.pid`);
    const first = here.start();
    for (const name of names) await here.drop(`${name}.json`, JSON.stringify(waitingPod(name, pidFile(name))));
    // Besides valid manifests: invalid YAML, another kind, a missing image, an invalid name, another file.
    await here.drop('a-broken.yaml', '{metadata: [');
    await here.drop('b-other.json', JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c' } }));
    await here.drop('c-name.json', JSON.stringify(waitingPod('Not_A_Name', pidFile('never'))));
    await here.drop('d-bytes.json', '\u0000\u0001');
    const noImage = { name: 'main', image: 'no.such/image:1', imagePullPolicy: 'Never' };
    await here.drop(
      'e-image.json',
      JSON.stringify(waitingPod('image', pidFile('never'), { containers: [noImage] } as never)),
    );
    const running = async (agent: AgentProcess) =>
      (await agent.pods()).filter(({ status }) => status?.phase === 'Running');
    await within(first, async () => (await running(first)).length === names.length);
    const pidsOf = () => Promise.all(names.map((name) => pidIn(pidFile(name))));
    const before = await within(first, async () => {
      const pids = await pidsOf();
      return pids.every((pid) => pid > 0) && pids;
    });
    await within(first, async () => {
      const bad = (await first.pods()).find(({ metadata }) => metadata?.name === 'image-n1');
      return bad?.status?.containerStatuses?.[0]?.state?.waiting?.reason === 'ErrImageNeverPull';
    });
    for (const name of ['a-broken', 'b-other', 'c-name', 'd-bytes']) {
      await within(first, async () => first.stderr().includes(name));
    }

    await first.kill();
    for (const pid of before) t.true(process.kill(pid, 0), 'containers outlive their agent');
    process.kill(before[3] ?? 0, 'SIGKILL');
    const second = here.start();
    const named = async (name: string) => (await second.pods()).find(({ metadata }) => metadata?.name === `${name}-n1`);
    await within(second, async () => restarts(await named('p3')) === 1);
    await within(second, async () => (await running(second)).length === names.length);
    t.is((await named('p3'))?.status?.containerStatuses?.[0]?.lastState?.terminated?.exitCode, 137);
    const after = await within(second, async () => {
      const pids = await pidsOf();
      return pids[3] !== before[3] && pids;
    });
    const others = (pids: readonly number[]) => pids.filter((_, i) => i !== 3);
    t.deepEqual(others(after), others(before));
    for (const name of names.filter((one) => one !== 'p3')) t.is(restarts(await named(name)), 0, name);
  },
);

onLinux(
  'against keelson serve: pods outlive the agent and the server, and their status in the API is updated afterwards',
  async (t) => {
    const data = await temporaryDirectory();
    const listen = ['--listen', `127.0.0.1:${await freePort()}`, '--log-level', 'error'];
    let server = await startKeelson(data, listen);
    t.teardown(() => server.kill());
    const config = join(await temporaryDirectory(), 'clusterconfig');
    await writeFile(config, await readFile(server.kubeconfig));
    const here = await machine(t, 'n2', [`--clusterconfig=${config}`, '--node-status-update-frequency=1s']);
    const { options } = await kubeconfigAccess(await loadKubeconfig({ path: config }), { clock: systemClock });
    const client = createHttpClient(options);
    t.teardown(() => client.close());
    const pidFile = (name: string) => join(here.dir, `${name}.pid`);
    const first = here.start();
    const nodeReady = async () => {
      const node = await client.resource(Node).get('n2');
      return node.status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
    };
    await within(first, nodeReady);
    const pods = client.resource(Pod).namespace('default');
    const bound = names.slice(0, 5);
    for (const name of bound) await pods.create(waitingPod(name, pidFile(name), { nodeName: 'n2' }));
    const phase = async (name: string) => (await pods.get(name)).status?.phase;
    for (const name of bound) await within(first, async () => (await phase(name)) === 'Running');
    const pidOf = (name: string) => within(first, async () => (await pidIn(pidFile(name))) || undefined);
    const pids = new Map(await Promise.all(bound.map(async (name) => [name, await pidOf(name)] as const)));

    await first.kill();
    process.kill(pids.get('p1') ?? 0, 'SIGKILL');
    const second = here.start();
    await within(second, async () => restarts(await pods.get('p1')) === 1 && (await phase('p1')) === 'Running');

    await server.kill();
    // Only the agent reconciles its pods: an ended container is restarted.
    process.kill(pids.get('p2') ?? 0, 'SIGKILL');
    await within(second, async () => {
      const pid = await pidIn(pidFile('p2'));
      return pid > 0 && pid !== pids.get('p2');
    });
    server = await startKeelson(data, listen);
    await within(second, async () => restarts(await pods.get('p2')) === 1 && (await phase('p2')) === 'Running');
    await within(second, nodeReady);
    for (const name of ['p0', 'p3', 'p4']) {
      t.is(restarts(await pods.get(name)), 0);
      t.is(await pidIn(pidFile(name)), pids.get(name) ?? 0);
    }
    for (const name of bound) await pods.delete(name);
    await within(second, async () => (await pods.list()).items.length === 0);
    for (const name of ['p0', 'p3', 'p4']) t.throws(() => process.kill(pids.get(name) ?? 0, 0), { code: 'ESRCH' });
    t.is(await second.stop(), 0, second.stderr());
  },
);
