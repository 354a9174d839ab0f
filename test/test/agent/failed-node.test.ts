import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FakeClock } from '@keelson/core/runtime';
import { Node, Pod } from '@keelson/kinds';
import { createFakeRuntime, FakeWorld } from '@keelson/runtime-fake';
import { eventually } from '@keelson/testing';
import test from 'ava';
import { createControlPlane, writeKubeconfig } from 'keelson';
import { scratchDirectory, startAgentNode } from '../../src/agent-node.ts';
import { AgentMachine, waitingPod } from '../../src/agent-process.ts';
import { temporaryDirectory } from '../../src/keelson-process.ts';
import { findKubectl, Kubectl } from '../../src/kubectl.ts';

const command = process.platform === 'linux' ? findKubectl() : undefined;
const waitMs = 90_000;

(command === undefined ? test.skip : test)(
  'a node whose agent stops is NotReady, its pods are replaced on another node, and it is Ready again when the agent continues',
  async (t) => {
    t.timeout(5 * waitMs);
    const clock = new FakeClock(Date.now());
    const { dir, remove } = await scratchDirectory();
    t.teardown(remove);
    const plane = await createControlPlane({ clock, controllers: ['*'] });
    t.teardown(() => plane.close());
    const { url } = await plane.listen();
    const kubeconfig = await writeKubeconfig(dir, { url, credentials: undefined });
    const kubectl = new Kubectl(command ?? '', kubeconfig, dir);

    let last = performance.now();
    /** Waits while the clock of the plane advances: as that of the machine, or by steps. */
    const during = <T>(probe: () => Promise<T | undefined | false>, stepMs?: number) =>
      eventually(async () => {
        const now = performance.now();
        clock.advance(stepMs ?? Math.round(now - last));
        last = now;
        return probe();
      }, waitMs);
    const output = async (...words: string[]) => (await kubectl.run(words)).trim();
    const readyOf = async (name: string) =>
      (await plane.client(Node).get(name)).status?.conditions?.find(({ type }) => type === 'Ready')?.status;

    const machine = await AgentMachine.create(await temporaryDirectory(), 'n1', [`--clusterconfig=${kubeconfig}`]);
    t.teardown(() => machine.clear());
    const agent = machine.start();
    t.teardown(() => agent.kill());
    await during(async () => (await readyOf('n1')) === 'True');
    const pidFile = join(dir, 'pid');
    const toleration = { operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 20 };
    const tolerations = ['unreachable', 'not-ready'].map((key) => ({
      ...toleration,
      key: `node.kubernetes.io/${key}`,
    }));
    const { spec } = waitingPod('web', pidFile, { tolerations });
    const labels = { app: 'web' };
    const web = { replicas: 1, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } };
    const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' }, spec: web };
    await kubectl.run(['apply', '-f', '-'], { input: JSON.stringify(deployment) });
    const pods = plane.client(Pod).namespace('default');
    const podsOn = async (node: string) => (await pods.list({ fieldSelector: `spec.nodeName=${node}` })).items;
    const runsOn = async (node: string) => {
      const phases = (await podsOn(node)).map(({ status }) => status?.phase);
      return phases.length === 1 && phases[0] === 'Running';
    };
    await during(() => runsOn('n1'));
    const pid = Number(await during(() => readFile(pidFile, 'utf8').catch(() => undefined)));
    const lost = (await podsOn('n1'))[0]?.metadata.name ?? '';

    // The other node uses the clock of the plane, so that it stays Ready however fast that advances.
    const world = new FakeWorld({ images: ['host'] });
    const other = await startAgentNode({
      ...{ name: 'n2', dir, clock, api: plane.api, engine: createFakeRuntime(world) },
    });
    t.teardown(() => other.stop());
    await during(async () => (await readyOf('n2')) === 'True');
    process.kill(agent.pid, 'SIGSTOP');

    await during(async () => (await readyOf('n1')) === 'Unknown', 1_000);
    const shown = await output('get', 'node', 'n1', '--no-headers');
    t.regex(shown, /^n1\s+NotReady\s/);
    const described = await output('describe', 'node', 'n1');
    for (const type of ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'])
      t.regex(
        described,
        new RegExp(`${type}\\s+Unknown\\s.*NodeStatusUnknown\\s+Kubelet stopped posting node status.`),
      );
    await during(() => runsOn('n2'), 1_000);
    t.regex(await output('get', 'pod', lost, '--no-headers'), /\sTerminating\s/);
    const { taints } = JSON.parse(await output('get', 'node', 'n1', '-o', 'jsonpath={.spec}')) as {
      taints: readonly { key: string; effect: string }[];
    };
    const unreachable = taints.filter(({ key }) => key === 'node.kubernetes.io/unreachable');
    t.deepEqual(unreachable.map(({ effect }) => effect).sort(), ['NoExecute', 'NoSchedule']);
    t.regex(await output('describe', 'pod', lost), /TaintManagerEviction\s.*Marking for deletion Pod default\//);
    t.regex(await output('describe', 'node', 'n1'), /NodeNotReady\s.*Node n1 status is now: NodeNotReady/);
    t.true(process.kill(pid, 0), 'the processes of a stopped agent continue');

    process.kill(agent.pid, 'SIGCONT');
    await during(async () => (await readyOf('n1')) === 'True');
    await during(async () => (await podsOn('n1')).length === 0);
    t.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
    await during(async () => /^Taints:\s+<none>$/m.test(await output('describe', 'node', 'n1')));
    t.regex(await output('get', 'deployment', 'web', '--no-headers'), /^web\s+1\/1\s/);
    t.is(await agent.stop(), 0, agent.stderr());
  },
);
