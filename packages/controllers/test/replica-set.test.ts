import { formatTime } from '@keelson/core';
import { type coreV1, Pod, ReplicaSet, ReplicationController } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test from 'ava';
import { workloadControllers } from '../src/index.ts';
import { rankedForDeletion } from '../src/replicaset/deletion-rank.ts';
import { interceptedClient } from './support/intercepted-client.ts';
import { template, WorkloadPlane } from './support/workload-plane.ts';

const labels = { app: 'web' };

function replicaSet(replicas: number, spec: Partial<ReplicaSet['spec']> = {}): ReplicaSet {
  return {
    metadata: { name: 'web' },
    spec: { replicas, selector: { matchLabels: labels }, template: template(labels), ...spec },
  };
}

const bare = (name: string, podLabels: Record<string, string> = labels): Pod => ({
  metadata: { name, labels: podLabels },
  spec: { containers: [{ name: 'main', image: 'app:1' }] },
});

test('a replica set creates pods named after it, and reports them ready and available', async (t) => {
  const workloads = await WorkloadPlane.start(t, { controllers: workloadControllers });
  await workloads.objects(ReplicaSet).create(replicaSet(5));
  const set = await workloads.reaches(ReplicaSet, 'web', ({ status }) => status?.availableReplicas === 5);
  t.like(set.status, { replicas: 5, fullyLabeledReplicas: 5, readyReplicas: 5, observedGeneration: 1 });
  const pods = await workloads.list(Pod);
  t.is(pods.length, 5);
  for (const { metadata } of pods) {
    t.regex(metadata?.name ?? '', /^web-[a-z0-9]{5}$/);
    t.like(metadata?.ownerReferences?.[0], { kind: 'ReplicaSet', name: 'web', controller: true });
    t.true(metadata?.ownerReferences?.[0]?.blockOwnerDeletion);
  }
  await workloads.recorded('web', 'SuccessfulCreate', /^Created pod: web-\w{5}$/);
  await workloads.objects(ReplicaSet).patch('web', 'merge', { spec: { replicas: 4 } });
  await workloads.recorded('web', 'SuccessfulDelete', /^Deleted pod: web-\w{5}$/);
});

test('a replica set replaces failed and deleted pods, and follows its size down to zero', async (t) => {
  const workloads = await WorkloadPlane.start(t, { controllers: workloadControllers, nodeOf: () => 'node' });
  await workloads.objects(ReplicaSet).create(replicaSet(3));
  await workloads.reaches(ReplicaSet, 'web', ({ status }) => status?.availableReplicas === 3);
  const [first, second] = await workloads.activePods();
  await workloads.setStatus(first?.metadata?.name ?? '', { phase: 'Failed' });
  await workloads.objects(Pod).delete(second?.metadata?.name ?? '');
  await until(async () => {
    const names = (await workloads.activePods()).map(({ metadata }) => metadata?.name);
    return names.length === 3 && !names.includes(first?.metadata?.name) && !names.includes(second?.metadata?.name);
  });
  await workloads.objects(ReplicaSet).patch('web', 'merge', { spec: { replicas: 0 } });
  await workloads.reaches(
    ReplicaSet,
    'web',
    ({ status }) => status?.replicas === 0 && status?.observedGeneration === 2,
  );
  t.is((await workloads.activePods()).length, 0);
});

test('a replica set adopts pods that it selects and releases those that it no longer selects', async (t) => {
  const workloads = await WorkloadPlane.start(t, { controllers: workloadControllers });
  await workloads.objects(Pod).create(bare('orphan'));
  await workloads.objects(Pod).create(bare('stranger', { app: 'other' }));
  await workloads.objects(ReplicaSet).create(replicaSet(2));
  await workloads.reaches(ReplicaSet, 'web', ({ status }) => status?.availableReplicas === 2);
  t.is((await workloads.list(Pod)).length, 3);
  t.is((await workloads.objects(Pod).get('orphan')).metadata?.ownerReferences?.[0]?.name, 'web');
  t.is((await workloads.objects(Pod).get('stranger')).metadata?.ownerReferences, undefined);

  await workloads.objects(Pod).patch('orphan', 'merge', { metadata: { labels: { app: 'debug' } } });
  await until(async () => (await workloads.activePods()).length === 4);
  t.is((await workloads.objects(Pod).get('orphan')).metadata?.ownerReferences, undefined);

  await workloads.objects(Pod).patch('orphan', 'merge', { metadata: { labels } });
  await until(async () => (await workloads.activePods()).length === 3);
});

test('pods become available after minReadySeconds', async (t) => {
  const workloads = await WorkloadPlane.start(t, { controllers: workloadControllers });
  await workloads.objects(ReplicaSet).create(replicaSet(2, { minReadySeconds: 30 }));
  const ready = await workloads.reaches(ReplicaSet, 'web', ({ status }) => status?.readyReplicas === 2);
  t.is(ready.status?.availableReplicas, undefined);
  // The controller waits for the time at which the first pod becomes available.
  await workloads.reaches(ReplicaSet, 'web', ({ status }) => status?.availableReplicas === 2, { advanceMs: 1000 });
});

test('rejected creates are attempted once per batch, and are reported by the condition ReplicaFailure', async (t) => {
  let attempts = 0;
  let rejects = true;
  const workloads = await WorkloadPlane.start(t, {
    controllers: workloadControllers,
    wrapClient: (client) =>
      interceptedClient(client, {
        before: ({ verb, resource }) => {
          if (verb !== 'create' || resource !== 'pods') return;
          attempts += 1;
          if (rejects) throw new Error('exceeded quota');
        },
      }),
  });
  await workloads.objects(ReplicaSet).create(replicaSet(20));
  const failed = await workloads.reaches(ReplicaSet, 'web', ({ status }) => (status?.conditions?.length ?? 0) > 0);
  t.like(failed.status?.conditions?.[0], {
    type: 'ReplicaFailure',
    status: 'True',
    reason: 'FailedCreate',
    message: 'exceeded quota',
  });
  await workloads.recorded('web', 'FailedCreate', /^Error creating: exceeded quota$/);
  // One attempt of the first run, and one of the run that its own write of the status leads to.
  t.true(attempts <= 3, `${attempts} attempts`);
  rejects = false;
  const recovered = (set: ReplicaSet) => set.status?.availableReplicas === 20;
  const set = await workloads.reaches(ReplicaSet, 'web', recovered, { advanceMs: 1000 });
  t.is(set.status?.conditions, undefined);
});

test('a replication controller keeps its pods by the same rules, with a set of labels as its selector', async (t) => {
  const workloads = await WorkloadPlane.start(t, { controllers: workloadControllers });
  await workloads.objects(Pod).create(bare('orphan'));
  await workloads.objects(ReplicationController).create({
    metadata: { name: 'old' },
    spec: { replicas: 3, selector: labels, template: template(labels) },
  });
  const isAvailable = ({ status }: ReplicationController) => status?.availableReplicas === 3;
  const controller = await workloads.reaches(ReplicationController, 'old', isAvailable);
  t.like(controller.status, { replicas: 3, fullyLabeledReplicas: 3, readyReplicas: 3, observedGeneration: 1 });
  const owners = (await workloads.activePods()).map(({ metadata }) => metadata?.ownerReferences?.[0]);
  t.deepEqual(
    new Set(owners.map((owner) => `${owner?.apiVersion} ${owner?.kind}`)),
    new Set(['v1 ReplicationController']),
  );
  t.is(owners.length, 3);
  await workloads.objects(ReplicationController).patch('old', 'merge', { spec: { replicas: 1 } });
  await workloads.reaches(ReplicationController, 'old', ({ status }) => status?.replicas === 1);
  t.is((await workloads.activePods()).length, 1);
});

test('pods are deleted in the order of their rank', (t) => {
  const now = Date.UTC(2026, 0, 1);
  const time = (secondsAgo: number) => formatTime(new Date(now - secondsAgo * 1000));
  const pod = (
    name: string,
    change: Partial<coreV1.PodStatus> & { cost?: string; node?: string; age?: number } = {},
  ): Pod => {
    const { cost, node = name, age = 1000, ...status } = change;
    return {
      metadata: {
        name,
        uid: name,
        creationTimestamp: time(age),
        ...(cost === undefined ? {} : { annotations: { 'controller.kubernetes.io/pod-deletion-cost': cost } }),
      },
      spec: { containers: [], ...(node ? { nodeName: node } : {}) },
      status: { phase: 'Running', conditions: ready(1000), ...status },
    };
  };
  const ready = (seconds: number) => [{ type: 'Ready', status: 'True', lastTransitionTime: time(seconds) }];
  const ranked = [
    pod('without-node', { node: '' }),
    pod('pending', { phase: 'Pending' }),
    pod('unknown', { phase: 'Unknown' }),
    pod('not-ready', { conditions: [] }),
    pod('not-available', { conditions: ready(5), cost: '100' }),
    pod('cheap', { cost: '-5' }),
    pod('shared-a', { node: 'shared' }),
    pod('shared-b', { node: 'shared' }),
    pod('ready-lately', { conditions: ready(30) }),
    pod('restarted', { containerStatuses: [{ name: 'main', ready: true, restartCount: 3, image: '', imageID: '' }] }),
    pod('young', { age: 30 }),
    pod('old', { age: 100_000 }),
    pod('dear', { cost: '5' }),
  ];
  const expected = ranked.map(({ metadata }) => metadata?.name);
  for (const given of [[...ranked], [...ranked].reverse()]) {
    const order = rankedForDeletion(given, { related: ranked, minReadySeconds: 10, now });
    t.deepEqual(
      order.map(({ metadata }) => metadata?.name),
      expected,
    );
  }
});
