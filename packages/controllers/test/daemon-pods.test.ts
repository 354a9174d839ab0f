import type { coreV1, DaemonSet, Node, Pod } from '@keelson/kinds';
import test from 'ava';
import { daemonPodFor, fitOf, isUpdated, nodeOf, surgeOf, unavailableOf } from '../src/daemonset/daemon-pods.ts';
import { FailedPodBackoff } from '../src/daemonset/failed-pod-backoff.ts';
import { byAssignmentAndAge, NodePods } from '../src/daemonset/node-pods.ts';

function daemonSet(spec: Partial<coreV1.PodSpec> = {}, more: object = {}): DaemonSet {
  const template = { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'c', image: 'i' }], ...spec } };
  return {
    metadata: { name: 'd', uid: 'd', annotations: { 'deprecated.daemonset.template.generation': '3' } },
    spec: { selector: { matchLabels: { app: 'a' } }, template, ...more },
  };
}

const node = (name: string, labels: Record<string, string> = {}, taints: coreV1.Taint[] = []): Node => ({
  ...{ metadata: { name, labels }, spec: { taints } },
});
const affinity = (...nodeSelectorTerms: coreV1.NodeSelectorTerm[]) => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
});
const named = (name: string, operator = 'In') => ({
  matchFields: [{ key: 'metadata.name', operator, values: [name] }],
});
const pod = (name: string, spec: Partial<coreV1.PodSpec> = {}, more: Partial<Pod> = {}): Pod => ({
  ...{ metadata: { name }, spec: { containers: [], ...spec }, ...more },
});

for (const [title, spec, labels, taints, shouldRun, mayStay] of [
  ['of any label', {}, {}, [], true, true],
  ['with the selected label', { nodeSelector: { a: '1' } }, { a: '1' }, [], true, true],
  ['with another value of the selected label', { nodeSelector: { a: '1' } }, { a: '2' }, [], false, false],
  ['with the name of the template', { nodeName: 'n' }, {}, [], true, true],
  ['with another name than that of the template', { nodeName: 'other' }, {}, [], false, false],
  ['that one of the terms selects', affinity(named('x'), named('n')), {}, [], true, true],
  ['that no term selects', affinity(named('x')), {}, [], false, false],
  ['with a taint against new pods', {}, {}, [{ key: 'a', effect: 'NoSchedule' }], false, true],
  ['with a taint against all pods', {}, {}, [{ key: 'a', effect: 'NoExecute' }], false, false],
  ['with a taint that pods avoid if possible', {}, {}, [{ key: 'a', effect: 'PreferNoSchedule' }], true, true],
  [
    'with a tolerated taint',
    { tolerations: [{ key: 'a', operator: 'Exists' }] },
    {},
    [{ key: 'a', effect: 'NoExecute' }],
    true,
    true,
  ],
  ['without network', {}, {}, [{ key: 'node.kubernetes.io/network-unavailable', effect: 'NoSchedule' }], false, true],
  [
    'without network, for pods in the network of the host',
    { hostNetwork: true },
    {},
    [{ key: 'node.kubernetes.io/network-unavailable', effect: 'NoSchedule' }],
    true,
    true,
  ],
] as [string, Partial<coreV1.PodSpec>, Record<string, string>, coreV1.Taint[], boolean, boolean][]) {
  test(`a node ${title}: a daemon pod ${shouldRun ? 'runs' : 'does not run'}, and ${mayStay ? 'stays' : 'leaves'}`, (t) => {
    t.deepEqual(fitOf(daemonSet(spec), node('n', labels, taints)), { shouldRun, mayStay });
  });
}

test('a daemon pod keeps the affinity and the tolerations of the template, except the required nodes', (t) => {
  const preferred = [{ weight: 1, preference: named('x') }];
  const set = daemonSet({
    affinity: {
      podAffinity: {},
      nodeAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: preferred,
        requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [named('x')] },
      },
    },
    tolerations: [
      { key: 'own', operator: 'Exists' },
      { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoSchedule' },
      { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' },
    ],
  });
  const made = daemonPodFor(set, 'n', 'hash');
  t.deepEqual(made.spec.affinity, {
    podAffinity: {},
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: preferred,
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [named('n')] },
    },
  });
  const tolerations = made.spec.tolerations?.map(({ key, effect }) => `${key?.split('/').at(-1)} ${effect ?? ''}`);
  t.deepEqual(tolerations?.slice(0, 3), ['own ', 'not-ready NoSchedule', 'not-ready NoExecute']);
  t.is(tolerations?.length, 8, 'each toleration once');
  t.deepEqual(made.metadata?.labels, {
    app: 'a',
    'pod-template-generation': '3',
    'controller-revision-hash': 'hash',
  });
});

test('a pod belongs to the node on which it runs, or for which it was created', (t) => {
  t.is(nodeOf(pod('a', { nodeName: 'n', ...affinity(named('x')) })), 'n');
  t.is(nodeOf(pod('a', affinity({}, named('n')))), 'n');
  t.is(nodeOf(pod('a', affinity(named('n', 'NotIn')))), undefined);
  t.is(
    nodeOf(pod('a', affinity({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['a', 'b'] }] }))),
    undefined,
  );
  t.is(nodeOf(pod('a', affinity({ matchFields: [{ key: 'other', operator: 'In', values: ['n'] }] }))), undefined);
  t.is(nodeOf(pod('a')), undefined);
});

test('a pod is of the present template by the hash of the revision or by the generation of the template', (t) => {
  const labelled = (labels: Record<string, string>) => pod('a', {}, { metadata: { name: 'a', labels } });
  t.true(isUpdated(labelled({ 'controller-revision-hash': 'h' }), daemonSet(), 'h'));
  t.false(isUpdated(labelled({ 'controller-revision-hash': 'x' }), daemonSet(), 'h'));
  t.true(isUpdated(labelled({ 'pod-template-generation': '3' }), daemonSet(), 'h'));
  t.false(isUpdated(labelled({ 'pod-template-generation': '2' }), daemonSet(), 'h'));
  const plain = { ...daemonSet(), metadata: { name: 'd' } };
  t.false(isUpdated(labelled({}), plain, 'h'));
});

for (const [title, strategy, surge, unavailable] of [
  ['OnDelete', { type: 'OnDelete' }, 0, 1],
  ['without limits', { type: 'RollingUpdate' }, 0, 1],
  ['numbers', { type: 'RollingUpdate', rollingUpdate: { maxSurge: 2, maxUnavailable: 0 } }, 2, 0],
  ['percentages, rounded up', { type: 'RollingUpdate', rollingUpdate: { maxSurge: '1%', maxUnavailable: '0%' } }, 1, 0],
  ['a percentage of nodes', { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: '21%' } }, 0, 3],
] as [string, object, number, number][]) {
  test(`limits of an update, ${title}: a surge of ${surge}, ${unavailable} unavailable of 10 nodes`, (t) => {
    const set = daemonSet({}, { updateStrategy: strategy });
    t.deepEqual([surgeOf(set, 10), unavailableOf(set, 10)], [surge, unavailable]);
  });
}

test('pods are grouped by node; ended pods in deletion are left out, and nodes that are gone are kept apart', (t) => {
  const ended = { metadata: { name: 'c', deletionTimestamp: 'x' }, status: { phase: 'Failed' } };
  const pods = [
    pod('a', { nodeName: 'n' }),
    pod('b', { nodeName: 'n' }, { status: { phase: 'Failed' } }),
    pod('c', { nodeName: 'n' }, ended),
    pod('d', { nodeName: 'm' }, { metadata: { name: 'd', deletionTimestamp: 'x' } }),
    pod('e', affinity(named('gone'))),
    pod('f'),
  ];
  const { existing, gone } = new NodePods(daemonSet(), [node('n'), node('m'), node('empty')], pods);
  const shown = (entries: NodePods['existing']) =>
    entries.map(({ name, pods: on, fit }) => `${name} ${on.map(({ metadata }) => metadata?.name)} ${fit.shouldRun}`);
  t.deepEqual(shown(existing), ['n a,b true', 'm d true', 'empty  true']);
  t.deepEqual(shown(gone), ['gone e false']);
});

test('of several pods on a node the assigned ones come first, then the oldest', (t) => {
  const made = (name: string, second: number, nodeName = '') =>
    pod(name, nodeName === '' ? {} : { nodeName }, {
      metadata: { name, creationTimestamp: `2026-01-01T00:00:0${second}Z` },
    });
  const pods = [made('d', 1), made('c', 3, 'n'), made('b', 2, 'n'), made('a', 2, 'n')];
  t.deepEqual(
    [...pods].sort(byAssignmentAndAge).map(({ metadata }) => metadata?.name),
    ['a', 'b', 'c', 'd'],
  );
  t.deepEqual(
    [...pods]
      .reverse()
      .sort(byAssignmentAndAge)
      .map(({ metadata }) => metadata?.name),
    ['a', 'b', 'c', 'd'],
  );
});

test('the pause before a failed pod is replaced doubles up to 15 minutes, and is reset after 30 minutes', (t) => {
  const backoff = new FailedPodBackoff();
  t.is(backoff.wait('a', 0), 0);
  let now = 0;
  const pauses = Array.from({ length: 12 }, () => {
    backoff.deleted('a', now);
    const pause = backoff.wait('a', now);
    t.is(backoff.wait('a', now + 400), pause - 400);
    now += pause;
    return pause / 1000;
  });
  t.deepEqual(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]);
  t.deepEqual([backoff.wait('a', now), backoff.wait('b', now)], [0, 0]);
  backoff.deleted('a', now + 900_000);
  t.is(backoff.wait('a', now + 900_000), 900_000, '30 minutes have not passed since the last deletion');
  backoff.deleted('a', now + 900_000 + 1_800_001);
  t.is(backoff.wait('a', now + 900_000 + 1_800_001), 1000);
});
