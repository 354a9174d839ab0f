// Process of its own: many planes, one after the other.
import { ControllerRevision, DaemonSet, Node, Pod, StatefulSet } from '@keelson/kinds';
import test from 'ava';
import { nodeOf } from '../src/daemonset/daemon-pods.ts';
import { daemonSetController } from '../src/daemonset/daemon-set-controller.ts';
import { statefulSetController } from '../src/statefulset/stateful-set-controller.ts';
import { runUntilKilled } from './support/killed-controllers.ts';
import { Random, seed } from './support/random.ts';
import { type Limits, RolloutLimits } from './support/rollout-limits.ts';
import { template, WorkloadPlane } from './support/workload-plane.ts';

const kills = Number(process.env['KEELSON_ROLLOUT_KILLS'] ?? 200);
const imageOf = ({ spec }: Pod) => spec.containers?.[0]?.image ?? '';

test('daemon sets and stateful sets keep their limits through random changes and kills, and converge', async (t) => {
  t.timeout(120_000 + kills * 600);
  const random = new Random(seed);
  const workloads = await WorkloadPlane.start(t, {
    controllers: [daemonSetController, statefulSetController],
    nodeOf: (pod) => nodeOf(pod) ?? 'node',
  });
  const nodes = new Set<string>();
  let replicas = 3;
  let version = 0;
  const daemons = new RolloutLimits('app=agent');
  const members = new RolloutLimits('app=db');
  for (const limits of [daemons, members]) {
    limits.start(workloads.plane.api);
    t.teardown(() => limits.stop());
  }
  const ofNodes = (): Limits => ({ most: nodes.size, leastAvailable: Math.max(0, nodes.size - 2) });
  const ofReplicas = (): Limits => ({ most: replicas, leastAvailable: Math.max(0, replicas - 1) });
  const addNode = async () => {
    const name = `node-${random.below(1e9)}`;
    nodes.add(name);
    daemons.willApply(ofNodes());
    await workloads.plane.client(Node).create({ metadata: { name } });
  };
  const templateOf = (app: string) => template({ app }, `v${version}`);
  const lose = async (pod: Pod | undefined) => {
    const name = pod?.metadata?.name;
    if (name === undefined) return;
    (name.startsWith('db') ? members : daemons).willFail(name);
    if (random.below(2) === 0)
      await workloads
        .objects(Pod)
        .delete(name)
        .catch(() => undefined);
    else await workloads.setStatus(name, { phase: 'Failed' }).catch(() => undefined);
  };
  const actions = {
    roll: async () => {
      version = random.below(4);
      await workloads.objects(DaemonSet).patch('agent', 'merge', { spec: { template: templateOf('agent') } });
      await workloads.objects(StatefulSet).patch('db', 'merge', { spec: { template: templateOf('db') } });
    },
    scale: async () => {
      replicas = random.below(5);
      members.willApply(ofReplicas());
      await workloads.objects(StatefulSet).patch('db', 'merge', { spec: { replicas } });
    },
    addNode,
    removeNode: async () => {
      const name = random.pick([...nodes]);
      if (nodes.size < 2) return;
      nodes.delete(name);
      daemons.willApply(ofNodes());
      await workloads.plane.client(Node).delete(name);
      for (const pod of await workloads.list(Pod)) if (nodeOf(pod) === name) await lose(pod);
    },
    lose: async () => lose(random.pick([...(await workloads.activePods()), undefined])),
  };
  /** The pods as the model has them: one of each ordinal, and one on each node, of the present template. */
  const isExpected = async () => {
    const pods = (await workloads.activePods()).map((pod) => {
      const isMember = pod.metadata?.labels?.['app'] === 'db';
      return `${isMember ? pod.metadata?.name : `agent on ${nodeOf(pod)}`} ${imageOf(pod)}`;
    });
    const ordinals = Array.from({ length: replicas }, (_, i) => `db-${i}`);
    const expected = [...ordinals, ...[...nodes].map((name) => `agent on ${name}`)].map((pod) => `${pod} v${version}`);
    return pods.sort().join() === expected.sort().join();
  };
  const isComplete = async () => {
    const set = await workloads.objects(StatefulSet).get('db');
    const daemon = await workloads.objects(DaemonSet).get('agent');
    const { status = {} as NonNullable<StatefulSet['status']> } = set;
    const of = daemon.status;
    return (
      (await isExpected()) &&
      status.observedGeneration === set.metadata?.generation &&
      of?.observedGeneration === daemon.metadata?.generation &&
      [status.replicas, status.availableReplicas, status.updatedReplicas].every((n = 0) => n === replicas) &&
      [of?.desiredNumberScheduled, of?.numberAvailable, of?.updatedNumberScheduled].every((n = 0) => n === nodes.size)
    );
  };
  const converges = async () => {
    const deadline = performance.now() + 60_000;
    while (!(await isComplete())) {
      if (performance.now() > deadline) {
        const state = [await workloads.objects(StatefulSet).get('db'), await workloads.objects(DaemonSet).get('agent')];
        const pods = (await workloads.activePods()).map(({ metadata }) => metadata?.name);
        throw new Error(`seed ${seed}: ${JSON.stringify([replicas, [...nodes], pods, state])}`);
      }
      workloads.clock.advance(500);
      await new Promise((next) => setTimeout(next, 1));
    }
    await daemons.completed(ofNodes());
    await members.completed(ofReplicas());
  };

  members.willApply(ofReplicas());
  for (let i = 0; i < 3; i += 1) await addNode();
  const selectorOf = (app: string) => ({ selector: { matchLabels: { app } }, template: templateOf(app) });
  const rollingUpdate = { maxUnavailable: 2, maxSurge: 0 };
  await workloads.objects(DaemonSet).create({
    metadata: { name: 'agent' },
    spec: { ...selectorOf('agent'), updateStrategy: { type: 'RollingUpdate', rollingUpdate } },
  });
  await workloads.objects(StatefulSet).create({
    metadata: { name: 'db' },
    spec: { ...selectorOf('db'), serviceName: 'db', replicas },
  });
  await converges();
  const names = Object.keys(actions) as (keyof typeof actions)[];
  for (let kill = 0; kill < kills; kill += 1) {
    await workloads.stopControllers();
    if (kill % 4 === 0) await actions[random.pick(names)]();
    await runUntilKilled(workloads, random, isComplete);
    if (kill % 40 !== 39) continue;
    await workloads.stopControllers();
    await workloads.startControllers();
    await converges();
  }
  await workloads.stopControllers();
  await workloads.startControllers();
  await converges();
  await Promise.all([daemons.stop(), members.stop()]);
  t.deepEqual([...daemons.violations, ...members.violations], [], `seed ${seed}`);
  const revisions = await workloads.list(ControllerRevision);
  const keys = revisions.map(({ metadata, data }) => `${metadata?.ownerReferences?.[0]?.kind} ${JSON.stringify(data)}`);
  t.is(new Set(keys).size, keys.length, 'one revision per template');
});
