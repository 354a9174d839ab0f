import test from 'ava';
import { podInfoOf } from '../src/cluster/pod-info.ts';
import { PlacementAlgorithm } from '../src/placement/placement.ts';
import type { Filter } from '../src/plugins/plugin.ts';
import { type LocalPod, localCluster, place, pod, scoresOf } from './support/local-cluster.ts';
import { type NodeParts, podOf } from './support/test-cluster.ts';

interface Case {
  readonly title: string;
  readonly score: string;
  readonly nodes: Record<string, NodeParts>;
  readonly others?: Record<string, LocalPod>;
  readonly pod: LocalPod;
  readonly expected: Record<string, number>;
}

const size = (cpu: string, memory: string): NodeParts => ({ allocatable: { cpu, memory } });
const zone = (name: string): NodeParts => ({ labels: { zone: name } });
const mebibytes = 1024 * 1024;
const web = { labels: { app: 'web' } };
const term = (weight: number) => ({
  weight,
  podAffinityTerm: { topologyKey: 'zone', labelSelector: { matchLabels: { app: 'web' } } },
});
const prefers = (kind: 'podAffinity' | 'podAntiAffinity', weight: number): LocalPod => ({
  spec: { affinity: { [kind]: { preferredDuringSchedulingIgnoredDuringExecution: [term(weight)] } } },
});

const cases: Case[] = [
  {
    title: 'free CPU and memory have equal weight',
    score: 'NodeResourcesFit',
    nodes: { n1: size('4', '8Gi'), n2: size('2', '8Gi') },
    others: { a: { node: 'n1', requests: { cpu: '1', memory: '2Gi' } } },
    pod: { requests: { cpu: '1', memory: '2Gi' } },
    expected: { n1: 50, n2: 62 },
  },
  {
    title: 'containers without requests are assumed to need 100m and 200 MiB',
    score: 'NodeResourcesFit',
    nodes: { n1: size('1', '2000Mi'), n2: size('1', '2000Mi') },
    others: { a: { node: 'n1' } },
    pod: {},
    expected: { n1: 80, n2: 90 },
  },
  {
    title: 'balanced usage of CPU and memory is preferred',
    score: 'NodeResourcesBalancedAllocation',
    nodes: { n1: size('4', '4Gi'), n2: size('4', '2Gi') },
    pod: { requests: { cpu: '1', memory: '1Gi' } },
    expected: { n1: 100, n2: 87 },
  },
  {
    title: 'pods without requests have no preference for balanced usage',
    score: 'NodeResourcesBalancedAllocation',
    nodes: { n1: size('4', '4Gi'), n2: size('4', '2Gi') },
    pod: {},
    expected: { n1: 0, n2: 0 },
  },
  {
    title: 'weights of matching node preferences are added',
    score: 'NodeAffinity',
    nodes: { n1: zone('a'), n2: zone('b'), n3: {} },
    pod: {
      spec: {
        affinity: {
          nodeAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [
              { weight: 30, preference: { matchExpressions: [{ key: 'zone', operator: 'Exists' }] } },
              { weight: 30, preference: { matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] } },
            ],
          },
        },
      },
    },
    expected: { n1: 100, n2: 50, n3: 0 },
  },
  {
    title: 'untolerated taints of effect PreferNoSchedule lower the score',
    score: 'TaintToleration',
    nodes: {
      n1: { spec: { taints: ['a', 'b'].map((key) => ({ key, effect: 'PreferNoSchedule' })) } },
      n2: { spec: { taints: ['a', 'c'].map((key) => ({ key, effect: 'PreferNoSchedule' })) } },
      n3: {},
    },
    pod: { spec: { tolerations: [{ key: 'c', operator: 'Exists' }] } },
    expected: { n1: 0, n2: 50, n3: 100 },
  },
  {
    title: 'large images that are present raise the score, less when few nodes have them',
    score: 'ImageLocality',
    nodes: {
      n1: { images: [{ names: ['app:1'], sizeBytes: 1000 * mebibytes }] },
      n2: {},
    },
    pod: {},
    expected: { n1: 48, n2: 0 },
  },
  {
    title: 'preferred affinity to pods raises the score',
    score: 'InterPodAffinity',
    nodes: { n1: zone('a'), n2: zone('b'), n3: zone('c') },
    others: { a: { ...web, node: 'n1' }, b: { ...web, node: 'n1' }, c: { ...web, node: 'n2' } },
    pod: prefers('podAffinity', 10),
    expected: { n1: 100, n2: 50, n3: 0 },
  },
  {
    title: 'preferred anti-affinity to pods lowers the score',
    score: 'InterPodAffinity',
    nodes: { n1: zone('a'), n2: zone('b') },
    others: { a: { ...web, node: 'n1' } },
    pod: prefers('podAntiAffinity', 10),
    expected: { n1: 0, n2: 100 },
  },
  {
    title: 'preferences of assigned pods apply to new pods',
    score: 'InterPodAffinity',
    nodes: { n1: zone('a'), n2: zone('b') },
    others: { a: { ...prefers('podAffinity', 10), node: 'n2' } },
    pod: web,
    expected: { n1: 0, n2: 100 },
  },
  {
    title: 'soft topology spread constraints prefer domains with fewer pods',
    score: 'PodTopologySpread',
    nodes: { n1: zone('a'), n2: zone('b'), n3: {} },
    others: { a: { ...web, node: 'n1' }, b: { ...web, node: 'n1' }, c: { ...web, node: 'n2' } },
    pod: {
      ...web,
      spec: {
        topologySpreadConstraints: [
          {
            maxSkew: 1,
            topologyKey: 'zone',
            whenUnsatisfiable: 'ScheduleAnyway',
            labelSelector: { matchLabels: { app: 'web' } },
          },
        ],
      },
    },
    expected: { n1: 33, n2: 100, n3: 0 },
  },
  {
    title: 'pods of one owner are distributed over nodes without any constraint',
    score: 'PodTopologySpread',
    nodes: { n1: {}, n2: {} },
    others: { a: { node: 'n1', ownerUid: 'o' }, b: { node: 'n1', ownerUid: 'o' }, c: { node: 'n2', ownerUid: 'x' } },
    pod: { ownerUid: 'o' },
    expected: { n1: 40, n2: 100 },
  },
];

for (const { title, score, nodes, others, pod: subject, expected } of cases)
  test(`${score}: ${title}`, (t) => {
    t.deepEqual(scoresOf(score, pod('subject', subject), localCluster(nodes, others)), expected);
  });

test('of nodes with equal scores the random function chooses one', (t) => {
  const cluster = localCluster({ n1: {}, n2: {}, n3: {} });
  const chosen = new Set<string>();
  for (const values of [
    [0.9, 0.9],
    [0.1, 0.9],
    [0.1, 0.1],
  ]) {
    const left = [...values];
    chosen.add(place(pod('subject'), cluster, () => left.shift() ?? 0));
  }
  t.deepEqual([...chosen].sort(), ['n1', 'n2', 'n3']);
});

test('in large clusters only some of the nodes are examined, and the next pod continues after them', (t) => {
  const nodes = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`n${at}`, {}]));
  const cluster = localCluster(nodes);
  const seen = new Set<string>();
  const counting = {
    name: 'Counting',
    prepare: () => ({
      check: ({ name }: { readonly name: string }) => {
        seen.add(name);
        return undefined;
      },
    }),
  };
  const algorithm = localAlgorithm(counting);
  for (const expected of [144, 288, 300]) {
    algorithm.place(podInfoOf(podOf('subject')), cluster);
    t.is(seen.size, expected);
  }
});

function localAlgorithm(filter: Filter): PlacementAlgorithm {
  return new PlacementAlgorithm({ filters: [filter], scores: [], percentageOfNodesToScore: 0, random: () => 0 });
}
