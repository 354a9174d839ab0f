import type { Pod } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test from 'ava';
import { ClusterState } from '../src/cluster/cluster-state.ts';
import { podInfoOf } from '../src/cluster/pod-info.ts';
import { type LocalPod, localCluster, pod, preemption } from './support/local-cluster.ts';
import { fitsByModel } from './support/model.ts';
import { RandomCluster, randomOf } from './support/random-cluster.ts';
import { type NodeParts, startTestCluster } from './support/test-cluster.ts';

const small: NodeParts = { allocatable: { cpu: '1' } };
const half = (node: string, more: LocalPod = {}): LocalPod => ({ node, requests: { cpu: '500m' }, ...more });
const important: LocalPod = { priority: 10, requests: { cpu: '800m' } };
const budget = (app: string, allowed: number, disrupted: string[] = []) => ({
  namespace: 'default',
  matches: (labels: Readonly<Record<string, string>>) => labels['app'] === app,
  allowed,
  disrupted: new Set(disrupted),
});

interface Case {
  readonly title: string;
  readonly nodes: Record<string, NodeParts>;
  readonly others: Record<string, LocalPod>;
  readonly pod?: LocalPod;
  readonly budgets?: Record<string, ReturnType<typeof budget>>;
  /** Node and victims, or the message. */
  readonly expected: readonly [string, ...string[]];
}

const cases: Case[] = [
  {
    title: 'pods of lower priority are preempted, and pods that fit beside the new one are kept',
    nodes: { n1: small },
    others: { a: half('n1', { priority: 1 }), b: { node: 'n1', requests: { cpu: '200m' } } },
    expected: ['n1', 'a'],
  },
  {
    title: 'pods of the same priority are not preempted',
    nodes: { n1: small },
    others: { a: half('n1', { priority: 10 }) },
    expected: ['0/1 nodes are available: 1 No preemption victims found for incoming pod.'],
  },
  {
    title: 'preemption does not consider nodes that reject the pod for other reasons',
    nodes: { n1: { ...small, spec: { unschedulable: true } }, n2: { allocatable: { cpu: '500m' } } },
    others: { a: half('n1'), b: half('n2') },
    expected: ['0/2 nodes are available: 2 Preemption is not helpful for scheduling.'],
  },
  {
    title: 'a node remains unsuitable when pods of higher priority use its resources',
    nodes: { n1: small },
    others: { a: half('n1', { priority: 20 }), b: half('n1') },
    expected: ['0/1 nodes are available: 1 Insufficient cpu.'],
  },
  {
    title: 'preemptionPolicy Never is respected',
    nodes: { n1: small },
    others: { a: half('n1') },
    pod: { ...important, spec: { preemptionPolicy: 'Never' } },
    expected: ['not eligible due to preemptionPolicy=Never.'],
  },
  {
    title: 'no more pods are preempted while victims on the nominated node are terminating',
    nodes: { n1: small, n2: small },
    others: { a: half('n1', { deleting: true }), b: half('n2') },
    pod: { ...important, nominatedNodeName: 'n1' },
    expected: ['not eligible due to a terminating pod on the nominated node.'],
  },
  {
    title: 'the node with the fewest violations of PodDisruptionBudgets is chosen',
    nodes: { n1: small, n2: small },
    others: { a: half('n1', { labels: { app: 'web' } }), b: half('n2', { priority: 5 }) },
    budgets: { web: budget('web', 0) },
    expected: ['n2', 'b'],
  },
  {
    title: 'a pod whose disruption is already counted violates no PodDisruptionBudget',
    nodes: { n1: small, n2: small },
    others: { a: half('n1', { labels: { app: 'web' } }), b: half('n2', { priority: 5 }) },
    budgets: { web: budget('web', 0, ['a']) },
    expected: ['n1', 'a'],
  },
  {
    title: 'pods that a PodDisruptionBudget protects are kept before others',
    nodes: { n1: { allocatable: { cpu: '1200m' } } },
    others: { a: { node: 'n1', requests: { cpu: '400m' }, labels: { app: 'web' } }, b: half('n1', { priority: 5 }) },
    budgets: { web: budget('web', 0) },
    expected: ['n1', 'b'],
  },
  {
    title: 'the node whose victim of highest priority has the lowest priority is chosen',
    nodes: { n1: small, n2: small },
    others: { a: half('n1', { priority: 5 }), b: half('n2', { priority: 4 }) },
    expected: ['n2', 'b'],
  },
  {
    title: 'with equal priorities the node with the fewest victims is chosen',
    nodes: { n1: small, n2: small },
    others: { a: half('n1'), b: half('n1'), c: half('n2') },
    expected: ['n2', 'c'],
  },
  {
    title: 'with equal victims the node whose victims started last is chosen',
    nodes: { n1: small, n2: small },
    others: {
      a: half('n1', { startedAt: '2026-01-01T00:00:00Z' }),
      b: half('n2', { startedAt: '2026-01-02T00:00:00Z' }),
    },
    expected: ['n2', 'b'],
  },
  {
    title: 'a pod that uses a required host port is preempted',
    nodes: { n1: {} },
    others: { a: { node: 'n1', ports: [{ containerPort: 80, hostPort: 80 }] }, b: { node: 'n1' } },
    pod: { priority: 10, ports: [{ containerPort: 80, hostPort: 80 }] },
    expected: ['n1', 'a'],
  },
  {
    title: 'pods with anti-affinity to the new pod are preempted',
    nodes: { n1: {} },
    others: {
      a: {
        node: 'n1',
        spec: {
          affinity: {
            podAntiAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: [
                { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'web' } } },
              ],
            },
          },
        },
      },
      b: { node: 'n1' },
    },
    pod: { priority: 10, labels: { app: 'web' } },
    expected: ['n1', 'a'],
  },
];

for (const { title, nodes, others, pod: subject = important, budgets = {}, expected } of cases)
  test(title, (t) => {
    const cluster = localCluster(nodes, others);
    for (const [name, one] of Object.entries(budgets)) cluster.budgets.set(name, one);
    const before = cluster.nodes.map(({ requested, pods }) => [{ ...requested }, [...pods.keys()].sort()]);
    t.deepEqual(preemption(pod('subject', subject), cluster), expected);
    t.deepEqual(
      cluster.nodes.map(({ requested, pods }) => [{ ...requested }, [...pods.keys()].sort()]),
      before,
    );
  });

test('after the deletion of the victims the pod passes all filters', (t) => {
  const first = Number(process.env['KEELSON_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
  const namespaces = { default: { team: 'a' }, other: { team: 'b' } };
  let found = 0;
  for (let seed = first; seed < first + 300; seed += 1) {
    const random = new RandomCluster(randomOf(seed));
    const cluster = new ClusterState();
    for (const [name, labels] of Object.entries(namespaces)) cluster.setNamespace(name, labels);
    const nodes = ['n1', 'n2', 'n3'].map((name) => random.node(name));
    for (const node of nodes) cluster.setNode(node.metadata?.name ?? '', node);
    const pods: Pod[] = [];
    for (let count = 0; count < 12; count += 1) {
      const one = random.pod();
      one.spec.nodeName = random.pick('n1', 'n2', 'n3');
      one.spec.priority = random.pick(0, 1, 20);
      pods.push(one);
      cluster.observe(podInfoOf(one));
    }
    const subject = random.pod();
    subject.spec.priority = 10;
    const [nodeName, ...victims] = preemption(podInfoOf(subject), cluster);
    const node = nodes.find(({ metadata }) => metadata?.name === nodeName);
    if (node === undefined) continue;
    found += 1;
    const left = pods.filter(({ metadata }) => !victims.includes(metadata?.name ?? ''));
    t.true(victims.length > 0);
    t.true(
      fitsByModel(subject, node, { nodes, pods: left, namespaces }),
      `KEELSON_TEST_SEED=${seed} ${nodeName} without ${victims}`,
    );
    for (const { metadata, spec } of pods)
      if (victims.includes(metadata?.name ?? '')) t.true(spec.nodeName === nodeName && (spec.priority ?? 0) < 10);
  }
  t.true(found > 30, `${found} preemptions`);
});

test('a preemption deletes the victims with a condition and events, and nominates the node', async (t) => {
  const cluster = await startTestCluster(t);
  await cluster.addNode('n1', small);
  await cluster.startScheduler();
  await cluster.addPod('victim', { requests: { cpu: '800m' }, finalizers: ['example.com/hold'] });
  await cluster.assigned('victim');
  await cluster.addPod('important', { requests: { cpu: '800m' }, spec: { priority: 10 } });
  const uid = (await cluster.pods.get('important')).metadata?.uid;
  const victim = await until(async () => {
    const found = await cluster.pods.get('victim');
    return found.metadata?.deletionTimestamp === undefined ? undefined : found;
  });
  t.like(
    victim.status?.conditions?.find(({ type }) => type === 'DisruptionTarget'),
    {
      status: 'True',
      reason: 'PreemptionByScheduler',
      message: 'default-scheduler: preempting to accommodate a higher priority pod',
    },
  );
  t.is(await cluster.event('victim', 'Preempted'), `Preempted by pod ${uid} on node n1`);
  const waiting = await until(async () => {
    const found = await cluster.pods.get('important');
    return found.status?.nominatedNodeName === 'n1' ? found : undefined;
  });
  t.is(waiting.spec.nodeName, undefined);
  const { message } = await cluster.rejected('important');
  t.is(message, '0/1 nodes are available: 1 Insufficient cpu.');
  // A pod of lower priority does not take the place that becomes free.
  await cluster.addPod('late', { requests: { cpu: '800m' } });
  await cluster.rejected('late');
  await cluster.pods.patch('victim', 'merge', { metadata: { finalizers: null } });
  await cluster.pods.delete('victim', { gracePeriodSeconds: 0 }).catch(() => {});
  const node = await until(async () => {
    cluster.clock.advance(1_000);
    return (await cluster.pods.get('important')).spec.nodeName;
  });
  t.is(node, 'n1');
  t.is((await cluster.pods.get('late')).spec.nodeName, undefined);
});

test('when no preemption helps, the event reports it', async (t) => {
  const cluster = await startTestCluster(t);
  await cluster.addNode('n1', small);
  await cluster.startScheduler();
  await cluster.addPod('first', { requests: { cpu: '800m' } });
  await cluster.assigned('first');
  await cluster.addPod('second', { requests: { cpu: '800m' } });
  const expected =
    '0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: ' +
    '1 No preemption victims found for incoming pod.';
  t.is((await cluster.rejected('second')).message, expected);
  t.is(await cluster.event('second', 'FailedScheduling'), expected);
});
