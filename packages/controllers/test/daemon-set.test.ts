import { ControllerRevision, DaemonSet, Node, Pod } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { nodeOf } from '../src/daemonset/daemon-pods.ts';
import { daemonSetController } from '../src/daemonset/daemon-set-controller.ts';
import { type PodFate, template, WorkloadPlane } from './support/workload-plane.ts';

const labels = { app: 'agent' };

function daemonSet(spec: Partial<DaemonSet['spec']> = {}): DaemonSet {
  return {
    metadata: { name: 'agent' },
    spec: { selector: { matchLabels: labels }, template: template(labels), ...spec },
  };
}

const imageOf = ({ spec }: Pod) => spec.containers?.[0]?.image ?? '';
const image = (name: string) => ({ spec: { template: template(labels, name) } });
const isComplete =
  (nodes: number) =>
  ({ metadata, status }: DaemonSet) =>
    status?.observedGeneration === metadata?.generation &&
    [
      status?.desiredNumberScheduled,
      status?.currentNumberScheduled,
      status?.numberReady,
      status?.updatedNumberScheduled,
      status?.numberAvailable,
    ].every((count = 0) => count === nodes);

async function open(t: ExecutionContext, nodes: readonly Node[], fateOf: (pod: Pod) => PodFate = () => 'ready') {
  const workloads = await WorkloadPlane.start(t, { controllers: [daemonSetController], nodeOf, fateOf });
  for (const node of nodes) await workloads.plane.client(Node).create(node);
  return workloads;
}

const node = (name: string, rest: Partial<Node> = {}): Node => ({
  metadata: { name, ...rest.metadata },
  ...(rest.spec ? { spec: rest.spec } : {}),
});
const nodes = (count: number) => Array.from({ length: count }, (_, i) => node(`node-${i}`));
const placed = async (workloads: WorkloadPlane) =>
  (await workloads.activePods()).map(({ spec }) => spec.nodeName).sort();

test('each node receives one pod that only this node can run, with the tolerations of daemon pods', async (t) => {
  const workloads = await open(t, nodes(3));
  await workloads.objects(DaemonSet).create(daemonSet());
  const { status } = await workloads.reaches(DaemonSet, 'agent', isComplete(3));
  t.deepEqual(status, {
    ...{ currentNumberScheduled: 3, desiredNumberScheduled: 3, numberMisscheduled: 0, numberReady: 3 },
    ...{ numberAvailable: 3, updatedNumberScheduled: 3, observedGeneration: 1 },
  });
  t.deepEqual(await placed(workloads), ['node-0', 'node-1', 'node-2']);
  const [pod] = await workloads.activePods();
  const [revision] = await workloads.list(ControllerRevision);
  t.is(pod?.metadata?.labels?.['controller-revision-hash'], revision?.metadata?.labels?.['controller-revision-hash']);
  const keys = Object.keys((revision?.data as { spec: { template: object } } | undefined)?.spec.template ?? {});
  t.deepEqual(keys, ['$patch', 'metadata', 'spec']);
  t.is(pod?.metadata?.labels?.['pod-template-generation'], '1');
  t.deepEqual(
    pod?.spec.tolerations?.map(({ key, operator, effect }) => `${key} ${operator} ${effect}`),
    [
      'node.kubernetes.io/not-ready Exists NoExecute',
      'node.kubernetes.io/unreachable Exists NoExecute',
      'node.kubernetes.io/disk-pressure Exists NoSchedule',
      'node.kubernetes.io/memory-pressure Exists NoSchedule',
      'node.kubernetes.io/pid-pressure Exists NoSchedule',
      'node.kubernetes.io/unschedulable Exists NoSchedule',
    ],
  );
  t.deepEqual(pod?.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution, {
    nodeSelectorTerms: [
      { matchFields: [{ key: 'metadata.name', operator: 'In', values: [pod?.spec.nodeName ?? ''] }] },
    ],
  });

  await workloads.plane.client(Node).create(node('node-3'));
  await workloads.reaches(DaemonSet, 'agent', isComplete(4));
});

test('labels and taints of nodes decide which run a pod, also when they change', async (t) => {
  const workloads = await open(t, [
    node('plain'),
    node('chosen', { metadata: { labels: { disk: 'ssd' } } }),
    node('tainted', { metadata: { labels: { disk: 'ssd' } }, spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } }),
    node('cordoned', {
      metadata: { labels: { disk: 'ssd' } },
      spec: { taints: [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }] },
    }),
  ]);
  const chosen = template(labels);
  await workloads
    .objects(DaemonSet)
    .create(daemonSet({ template: { ...chosen, spec: { ...chosen.spec, nodeSelector: { disk: 'ssd' } } } }));
  await workloads.reaches(DaemonSet, 'agent', isComplete(2));
  t.deepEqual(await placed(workloads), ['chosen', 'cordoned']);

  const client = workloads.plane.client(Node);
  // A taint that does not evict lets the pod stay, on a node that is not to have one.
  await client.patch('chosen', 'merge', { spec: { taints: [{ key: 'b', effect: 'NoSchedule' }] } });
  await workloads.reaches(DaemonSet, 'agent', ({ status }) => status?.numberMisscheduled === 1);
  await client.patch('chosen', 'merge', { spec: { taints: [{ key: 'b', effect: 'NoExecute' }] } });
  await until(async () => (await placed(workloads)).join() === 'cordoned');
  await client.patch('chosen', 'merge', { spec: { taints: null } });
  await client.patch('cordoned', 'merge', { metadata: { labels: { disk: 'hdd' } } });
  await until(async () => (await placed(workloads)).join() === 'chosen');
  t.pass();
});

test('a rolling update replaces at most maxUnavailable pods at a time, and a rollback uses the earlier revision', async (t) => {
  const workloads = await open(t, nodes(4));
  const rollingUpdate = { maxUnavailable: 2, maxSurge: 0 };
  await workloads.objects(DaemonSet).create(daemonSet({ updateStrategy: { type: 'RollingUpdate', rollingUpdate } }));
  await workloads.reaches(DaemonSet, 'agent', isComplete(4));
  let least = 4;
  const watching = new AbortController();
  const { metadata } = await workloads.objects(DaemonSet).list();
  const watch = (async () => {
    const options = { resourceVersion: metadata.resourceVersion ?? '', signal: watching.signal };
    for await (const { type, object } of workloads.objects(DaemonSet).watch(options))
      if (type === 'MODIFIED') least = Math.min(least, (object as DaemonSet).status?.numberAvailable ?? 0);
  })();
  await workloads.objects(DaemonSet).patch('agent', 'merge', image('app:2'));
  await workloads.reaches(DaemonSet, 'agent', isComplete(4));
  t.deepEqual((await workloads.activePods()).map(imageOf), Array(4).fill('app:2'));
  t.true(least >= 2, `${least} pods remained available`);

  await workloads.objects(DaemonSet).patch('agent', 'merge', image('app:1'));
  await workloads.reaches(DaemonSet, 'agent', isComplete(4));
  watching.abort();
  await watch;
  const revisions = await workloads.list(ControllerRevision);
  t.deepEqual(revisions.map(({ revision }) => Number(revision)).sort(), [2, 3]);
});

test('with a surge a new pod is available before the old one is deleted', async (t) => {
  let fate: PodFate = 'ready';
  const workloads = await open(t, nodes(3), (pod) => (imageOf(pod) === 'app:2' ? fate : 'ready'));
  const rollingUpdate = { maxUnavailable: 0, maxSurge: 1 };
  await workloads.objects(DaemonSet).create(daemonSet({ updateStrategy: { type: 'RollingUpdate', rollingUpdate } }));
  await workloads.reaches(DaemonSet, 'agent', isComplete(3));
  fate = 'running';
  await workloads.objects(DaemonSet).patch('agent', 'merge', image('app:2'));
  await until(async () => (await workloads.activePods()).length === 4);
  await workloads.reaches(
    DaemonSet,
    'agent',
    ({ metadata, status }) => status?.observedGeneration === metadata?.generation,
  );
  t.deepEqual((await workloads.activePods()).map(imageOf).sort(), ['app:1', 'app:1', 'app:1', 'app:2']);
  fate = 'ready';
  workloads.refresh();
  await workloads.reaches(DaemonSet, 'agent', isComplete(3));
  t.deepEqual((await workloads.activePods()).map(imageOf), Array(3).fill('app:2'));
});

test('OnDelete replaces a pod only after it was deleted', async (t) => {
  const workloads = await open(t, nodes(2));
  await workloads.objects(DaemonSet).create(daemonSet({ updateStrategy: { type: 'OnDelete' } }));
  await workloads.reaches(DaemonSet, 'agent', isComplete(2));
  await workloads.objects(DaemonSet).patch('agent', 'merge', image('app:2'));
  await workloads.reaches(
    DaemonSet,
    'agent',
    ({ metadata, status }) => status?.observedGeneration === metadata?.generation,
  );
  t.deepEqual((await workloads.activePods()).map(imageOf), ['app:1', 'app:1']);
  const [pod] = await workloads.activePods();
  await workloads.objects(Pod).delete(pod?.metadata?.name ?? '');
  await until(async () => (await workloads.activePods()).map(imageOf).sort().join() === 'app:1,app:2');
});

test('failed pods are replaced with a growing pause', async (t) => {
  let fails = true;
  const workloads = await open(t, nodes(1), () => (fails ? 'failed' : 'ready'));
  const names = new Set<string>();
  await workloads.objects(DaemonSet).create(daemonSet());
  const seen = async () => {
    for (const { metadata } of await workloads.list(Pod)) names.add(metadata?.name ?? '');
    return names.size;
  };
  // The first failed pod is deleted at once, the second one after 1 s, the third one after 2 s.
  await until(async () => (await seen()) === 2);
  for (const [pods, seconds] of [
    [3, 1],
    [4, 2],
    [5, 4],
  ] as const) {
    await until(async () => (await workloads.list(Pod)).some(({ status }) => status?.phase === 'Failed'));
    const before = workloads.clock.now();
    await until(async () => {
      workloads.clock.advance(250);
      return (await seen()) === pods;
    });
    t.true(workloads.clock.now() - before >= seconds * 1000 - 250);
  }
  await workloads.recorded('agent', 'FailedDaemonPod', /^Found failed daemon pod default\/agent-\w+ on node node-0, /);
  fails = false;
  await workloads.reaches(DaemonSet, 'agent', isComplete(1), { advanceMs: 1000 });
});

test('pods of a removed node that were never assigned are deleted, and old revisions beyond the limit', async (t) => {
  const workloads = await WorkloadPlane.start(t, { controllers: [daemonSetController] });
  for (const object of nodes(2)) await workloads.plane.client(Node).create(object);
  await workloads.objects(DaemonSet).create(daemonSet({ revisionHistoryLimit: 1 }));
  await until(async () => (await workloads.activePods()).length === 2);
  await workloads.plane.client(Node).delete('node-1');
  await until(async () => (await workloads.activePods()).length === 1);
  for (const version of [2, 3, 4]) {
    await workloads.objects(DaemonSet).patch('agent', 'merge', image(`app:${version}`));
    await workloads.reaches(DaemonSet, 'agent', isComplete(1));
  }
  await until(async () => (await workloads.list(ControllerRevision)).length === 2);
  t.pass();
});

test('pods become available after minReadySeconds, until which the set reports them as unavailable', async (t) => {
  const workloads = await open(t, nodes(1));
  await workloads.objects(DaemonSet).create(daemonSet({ minReadySeconds: 30 }));
  const began = workloads.clock.now();
  const { status } = await workloads.reaches(DaemonSet, 'agent', (set) => set.status?.numberReady === 1);
  t.deepEqual([status?.numberAvailable, status?.numberUnavailable], [undefined, 1]);
  await workloads.reaches(DaemonSet, 'agent', isComplete(1), { advanceMs: 5000 });
  t.true(workloads.clock.now() - began >= 30_000);
});
