import type { ApiClient } from '@keelson/core';
import type { DaemonSet, Node, Pod } from '@keelson/kinds';
import test from 'ava';
import { nodeOf } from '../src/daemonset/daemon-pods.ts';
import { FailedPodBackoff } from '../src/daemonset/failed-pod-backoff.ts';
import { managePods } from '../src/daemonset/manage-pods.ts';
import { NodePods } from '../src/daemonset/node-pods.ts';
import { rollOut } from '../src/daemonset/rolling-update.ts';
import { runOverObjects } from './support/run-over-objects.ts';

/** A pod named `NODE-VERSION`, of which version 2 is the present one. */
interface Placed {
  readonly ready?: boolean;
  readonly phase?: string;
  readonly deleted?: boolean;
  readonly unassigned?: boolean;
  readonly created?: string;
}

function placed(name: string, options: Placed = {}): Pod {
  const { ready = true, phase = 'Running', deleted, unassigned, created = '2026-01-01T00:00:00Z' } = options;
  const [node = '', version = ''] = name.split('-');
  const field = { key: 'metadata.name', operator: 'In', values: [node] };
  const required = { nodeSelectorTerms: [{ matchFields: [field] }] };
  return {
    metadata: {
      ...{ name, namespace: 'default', uid: name, creationTimestamp: created },
      labels: { 'controller-revision-hash': version.slice(0, 1) },
      ...(deleted ? { deletionTimestamp: created } : {}),
    },
    spec: {
      containers: [],
      ...(unassigned
        ? { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } } }
        : { nodeName: node }),
    },
    status: { phase, conditions: [{ type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime: created }] },
  };
}

const old = (node: string, options?: Placed) => placed(`${node}-1`, options);
const updated = (node: string, options?: Placed) => placed(`${node}-2`, options);
const unready = { ready: false };

/** Nodes `a` to `e` run a pod each; `x` must not have one, and `n` may keep one. */
const nodes: Node[] = [...'abcde', 'x', 'n'].map((name) => ({
  metadata: { name },
  spec: {
    taints: name === 'x' || name === 'n' ? [{ key: 'k', effect: name === 'x' ? 'NoExecute' : 'NoSchedule' }] : [],
  },
}));

/** The pods that a step deletes, and the nodes for which it creates some: `-a-1 +b`. */
function recorded(maxSurge: number, maxUnavailable: number, pods: readonly Pod[], present: readonly Node[] = nodes) {
  const writes: string[] = [];
  const objects = {
    create: async (pod: Pod) => {
      writes.push(`+${nodeOf(pod)}`);
      return pod;
    },
    delete: async (name: string) => writes.push(`-${name}`),
  };
  const client = { resource: () => ({ namespace: () => objects }) } as unknown as ApiClient;
  const run = runOverObjects([], client);
  const set: DaemonSet = {
    metadata: { name: 'd', namespace: 'default', uid: 'd' },
    spec: {
      selector: {},
      template: { spec: { containers: [{ name: 'c', image: 'i' }] } },
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge, maxUnavailable } },
    },
  };
  const options = { run, set, nodes: new NodePods(set, present, pods), hash: '2' };
  return { options, run, set, result: () => writes.sort().join(' ') };
}

const three = nodes.slice(0, 3);
for (const [title, most, pods, expected] of [
  ['as many old pods as may be unavailable', 2, [old('a'), old('b'), old('c')], '-a-1 -b-1'],
  ['fewer while a new pod is not available', 2, [updated('a', unready), old('b'), old('c')], '-b-1'],
  ['none while enough pods are not available', 1, [updated('a', unready), old('b'), old('c')], ''],
  ['unavailable old pods, whatever the limit', 1, [updated('a', unready), old('b', unready), old('c')], '-b-1'],
  ['none in place of a missing pod', 1, [old('a'), old('b')], ''],
  ['none while a pod is being deleted', 1, [old('a', { deleted: true }), old('b'), old('c')], ''],
  ['none beside an old and a new pod of one node', 1, [old('a'), updated('a'), old('b'), old('c')], ''],
  ['none beside several old pods of one node', 1, [old('a'), placed('a-1b'), old('b'), old('c')], ''],
  ['all when all are available', 3, [updated('a'), old('b'), old('c')], '-b-1 -c-1'],
] as [string, number, Pod[], string][]) {
  test(`an update without surge replaces ${title}`, async (t) => {
    const { options, result } = recorded(0, most, pods, three);
    await rollOut(options);
    t.is(result(), expected);
  });
}

for (const [title, surge, pods, expected] of [
  ['creates new pods beside old ones', 2, [old('a'), old('b'), old('c')], '+a +b'],
  ['waits for a new pod that is not available', 1, [old('a'), updated('a', unready), old('b'), old('c')], ''],
  ['counts new pods that are not available', 2, [old('a'), updated('a', unready), old('b'), old('c')], '+b'],
  ['deletes the old pod beside an available new one', 1, [old('a'), updated('a'), old('b'), old('c')], '+b -a-1'],
  ['adds a pod beside an unavailable old one, whatever the limit', 1, [old('a', unready), old('b'), old('c')], '+a +b'],
  ['counts a node with several old pods', 1, [old('a'), placed('a-1b'), old('b'), old('c')], ''],
  ['does nothing when all pods are new', 1, [updated('a'), updated('b'), updated('c')], ''],
] as [string, number, Pod[], string][]) {
  test(`an update with surge ${title}`, async (t) => {
    const { options, result } = recorded(surge, 0, pods, three);
    await rollOut(options);
    t.is(result(), expected);
  });
}

test('with a surge old pods of nodes that should have none leave when enough nodes have an available pod', async (t) => {
  const some = nodes.filter(({ metadata }) => ['a', 'b', 'n'].includes(metadata?.name ?? ''));
  const after = async (...pods: Pod[]) => {
    const { options, result } = recorded(1, 0, pods, some);
    await rollOut(options);
    return result();
  };
  t.is(await after(updated('a'), updated('b'), old('n')), '-n-1');
  t.is(await after(updated('a'), updated('b', unready), old('n')), '');
  t.is(await after(updated('a'), updated('b', unready), old('n', unready)), '-n-1');
});

for (const [title, surge, pods, expected] of [
  ['missing pods are created', 0, [updated('a'), updated('b')], '+c +d +e'],
  ['a pod in deletion is awaited', 0, 'abcde'.split('').map((name) => updated(name, { deleted: name === 'a' })), ''],
  [
    'a pod in deletion is replaced at once during a surge',
    1,
    'abcde'.split('').map((name) => updated(name, { deleted: name === 'a' })),
    '+a',
  ],
  ['pods leave nodes that may not keep them', 0, [...'abcdexn'].map((name) => updated(name)), '-x-2'],
  [
    'of several pods the oldest assigned one stays',
    0,
    [
      ...[...'abcde'].map((name) => updated(name)),
      placed('a-0', { unassigned: true, created: '2025-01-01T00:00:00Z' }),
    ],
    '-a-0',
  ],
  [
    'a surge keeps an old and a new pod',
    1,
    [
      ...[...'abcde'].map((name) => old(name)),
      updated('a', unready),
      placed('a-1b', { created: '2026-02-01T00:00:00Z' }),
    ],
    '-a-1b',
  ],
  [
    'a surge deletes an old pod that is not ready',
    1,
    [...[...'abcde'].map((name) => old(name, { ready: name !== 'a' })), updated('a', unready)],
    '-a-1',
  ],
  [
    'a surge deletes the old pod of an available new one',
    1,
    [...[...'abcde'].map((name) => old(name)), updated('a')],
    '-a-1',
  ],
  [
    'succeeded pods are deleted',
    0,
    [...'abcde'].map((name) => updated(name, { phase: name === 'a' ? 'Succeeded' : 'Running' })),
    '-a-2',
  ],
  [
    'unassigned pods of a removed node are deleted',
    0,
    [...[...'abcde'].map((name) => updated(name)), updated('y'), updated('z', { unassigned: true })],
    '-z-2',
  ],
] as [string, number, Pod[], string][]) {
  test(`pods of nodes: ${title}`, async (t) => {
    const { options, result } = recorded(surge, 1, pods);
    const { written } = await managePods({ ...options, backoff: new FailedPodBackoff() });
    t.is(result(), expected);
    t.is(written, expected !== '');
  });
}

test('a failed pod is deleted at once, the next one of the same node after a pause, which decides about the next run', async (t) => {
  const backoff = new FailedPodBackoff();
  const failed = [...'abcde'].map((name) => updated(name, { phase: name < 'c' ? 'Failed' : 'Running' }));
  const { options, run, set, result } = recorded(0, 1, failed);
  backoff.deleted('d/b', run.clock.monotonic() - 400);
  const first = await managePods({ ...options, backoff });
  t.deepEqual([result(), first.againAfterMs], ['-a-2', 600]);
  t.deepEqual(run.events.slice(0, 1), [
    'Warning FailedDaemonPod: Found failed daemon pod default/a-2 on node a, will try to kill it',
  ]);
  const again = await managePods({ ...options, backoff });
  t.deepEqual([again.written, again.againAfterMs], [false, 600]);
  run.clock.advance(1000);
  t.true((await managePods({ ...options, backoff })).written);
  t.is(set.metadata?.uid, 'd');
});
