import type { KubeObject } from '@keelson/core';
import { ControllerRevision, PersistentVolumeClaim, Pod, StatefulSet } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { statefulSetController } from '../src/statefulset/stateful-set-controller.ts';
import { type PodFate, template, WorkloadPlane, type WorkloadPlaneOptions } from './support/workload-plane.ts';

const labels = { app: 'db' };

function statefulSet(replicas: number, spec: Partial<StatefulSet['spec']> = {}): StatefulSet {
  return {
    metadata: { name: 'db' },
    spec: { replicas, serviceName: 'db', selector: { matchLabels: labels }, template: template(labels), ...spec },
  };
}

const open = (t: ExecutionContext, options: Partial<WorkloadPlaneOptions> = {}) =>
  WorkloadPlane.start(t, { controllers: [statefulSetController], nodeOf: () => 'node', ...options });
const imageOf = ({ spec }: Pod) => spec.containers?.[0]?.image ?? '';
const image = (name: string) => ({ spec: { template: template(labels, name) } });
const namesOf = (objects: readonly KubeObject[]) => objects.map(({ metadata }) => metadata?.name).sort();
const isComplete =
  (replicas: number) =>
  ({ metadata, status }: StatefulSet) =>
    status?.observedGeneration === metadata?.generation &&
    [status?.replicas, status?.readyReplicas, status?.availableReplicas, status?.updatedReplicas].every(
      (count = 0) => count === replicas,
    ) &&
    status?.currentRevision === status?.updateRevision;

test('pods are created in order, each after the one before is ready, and have identities', async (t) => {
  let ready = 1;
  const workloads = await open(t, {
    fateOf: ({ metadata }): PodFate => (Number(metadata?.name?.slice(3)) < ready ? 'ready' : 'running'),
  });
  await workloads.objects(StatefulSet).create(statefulSet(3));
  for (const names of [
    ['db-0', 'db-1'],
    ['db-0', 'db-1', 'db-2'],
  ]) {
    await until(async () => namesOf(await workloads.list(Pod)).join() === names.join());
    const count = ready;
    await workloads.reaches(StatefulSet, 'db', ({ status }) => status?.readyReplicas === count);
    t.deepEqual(namesOf(await workloads.list(Pod)), names);
    ready += 1;
    workloads.refresh();
  }
  const set = await workloads.reaches(StatefulSet, 'db', isComplete(3));
  const pod = await workloads.objects(Pod).get('db-1');
  t.like(pod.metadata?.labels, {
    'statefulset.kubernetes.io/pod-name': 'db-1',
    'apps.kubernetes.io/pod-index': '1',
    'controller-revision-hash': set.status?.updateRevision,
  });
  t.like(pod.spec, { hostname: 'db-1', subdomain: 'db' });
  await workloads.recorded('db', 'SuccessfulCreate', /^create Pod db-1 in StatefulSet db successful$/);
});

test('pods are removed from the highest ordinal down, and Parallel does not wait', async (t) => {
  const removed: string[] = [];
  const workloads = await open(t);
  await workloads.objects(StatefulSet).create(statefulSet(3, { ordinals: { start: 5 } }));
  await workloads.reaches(StatefulSet, 'db', isComplete(3));
  t.deepEqual(namesOf(await workloads.list(Pod)), ['db-5', 'db-6', 'db-7']);
  const watching = new AbortController();
  const { metadata } = await workloads.objects(Pod).list();
  const watch = (async () => {
    const options = { resourceVersion: metadata.resourceVersion ?? '', signal: watching.signal };
    for await (const { type, object } of workloads.objects(Pod).watch(options))
      if (type === 'DELETED') removed.push(object.metadata?.name ?? '');
  })();
  await workloads.objects(StatefulSet).patch('db', 'merge', { spec: { replicas: 0 } });
  await workloads.reaches(StatefulSet, 'db', isComplete(0));
  watching.abort();
  await watch;
  t.deepEqual(removed, ['db-7', 'db-6', 'db-5']);

  const parallel = { ...statefulSet(4, { podManagementPolicy: 'Parallel' }), metadata: { name: 'wide' } };
  await workloads.stopControllers();
  const unready = await open(t, { fateOf: () => 'pending' });
  await unready.objects(StatefulSet).create(parallel);
  await until(async () => (await unready.list(Pod)).length === 4);
});

test('failed and deleted pods return with the same name', async (t) => {
  const workloads = await open(t);
  await workloads.objects(StatefulSet).create(statefulSet(2));
  await workloads.reaches(StatefulSet, 'db', isComplete(2));
  const uidOf = async (name: string) => (await workloads.objects(Pod).get(name)).metadata?.uid;
  const first = await uidOf('db-0');
  await workloads.setStatus('db-0', { phase: 'Failed' });
  await until(async () => (await uidOf('db-0')) !== first);
  await workloads.reaches(StatefulSet, 'db', isComplete(2));
  const second = await uidOf('db-1');
  await workloads.objects(Pod).delete('db-1');
  await until(async () => (await uidOf('db-1')) !== second);
  await workloads.reaches(StatefulSet, 'db', isComplete(2));
  t.pass();
});

test('a pod of another owner with the name of a pod delays the set until it is deleted', async (t) => {
  const workloads = await open(t);
  const spec = { containers: [{ name: 'c', image: 'other' }] };
  await workloads.objects(Pod).create({ metadata: { name: 'db-0' }, spec } as Pod);
  await workloads.objects(StatefulSet).create(statefulSet(1));
  const set = await workloads.reaches(StatefulSet, 'db', ({ status }) => status?.observedGeneration === 1);
  t.is(set.status?.replicas, 0);
  await workloads.objects(Pod).delete('db-0');
  await workloads.reaches(StatefulSet, 'db', isComplete(1), { advanceMs: 1000 });
});

test('a rolling update stops at the partition, and continues when it is lowered', async (t) => {
  const workloads = await open(t);
  await workloads.objects(StatefulSet).create(statefulSet(3));
  await workloads.reaches(StatefulSet, 'db', isComplete(3));
  const partition = (value: number) => ({
    updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: value } },
  });
  const first = (await workloads.objects(StatefulSet).get('db')).status?.currentRevision;
  await workloads.objects(StatefulSet).patch('db', 'merge', { spec: { ...image('app:2').spec, ...partition(2) } });
  const isPartial = ({ status }: StatefulSet) => status?.updatedReplicas === 1 && status.availableReplicas === 3;
  const partial = await workloads.reaches(StatefulSet, 'db', isPartial);
  t.is(partial.status?.currentRevision, first);
  t.is(partial.status?.currentReplicas, 2);
  t.not(partial.status?.updateRevision, first);
  const images = async () => (await workloads.list(Pod)).map((pod) => `${pod.metadata?.name} ${imageOf(pod)}`);
  t.deepEqual(await images(), ['db-0 app:1', 'db-1 app:1', 'db-2 app:2']);
  // A pod below the partition returns with the old template.
  await workloads.objects(Pod).delete('db-0');
  await until(async () => (await images()).length === 3 && (await images())[0] === 'db-0 app:1');
  await workloads.reaches(StatefulSet, 'db', isPartial);
  await workloads.objects(StatefulSet).patch('db', 'merge', { spec: partition(0) });
  await workloads.reaches(StatefulSet, 'db', isComplete(3));
  t.deepEqual(await images(), ['db-0 app:2', 'db-1 app:2', 'db-2 app:2']);
});

test('maxUnavailable pods are replaced at a time; a return to a revision uses it again; OnDelete waits', async (t) => {
  let least = 4;
  const workloads = await open(t);
  const updateStrategy = { type: 'RollingUpdate', rollingUpdate: { partition: 0, maxUnavailable: 2 } };
  await workloads.objects(StatefulSet).create(statefulSet(4, { updateStrategy, podManagementPolicy: 'Parallel' }));
  await workloads.reaches(StatefulSet, 'db', isComplete(4));
  const watching = new AbortController();
  const { metadata } = await workloads.objects(StatefulSet).list();
  const watch = (async () => {
    const options = { resourceVersion: metadata.resourceVersion ?? '', signal: watching.signal };
    for await (const { type, object } of workloads.objects(StatefulSet).watch(options))
      if (type === 'MODIFIED') least = Math.min(least, (object as StatefulSet).status?.availableReplicas ?? 0);
  })();
  await workloads.objects(StatefulSet).patch('db', 'merge', image('app:2'));
  await workloads.reaches(StatefulSet, 'db', isComplete(4));
  watching.abort();
  await watch;
  t.is(least, 2);
  await workloads.objects(StatefulSet).patch('db', 'merge', image('app:1'));
  await workloads.reaches(StatefulSet, 'db', isComplete(4));
  const revisions = await workloads.list(ControllerRevision);
  t.deepEqual(revisions.map(({ revision }) => Number(revision)).sort(), [2, 3]);
  t.deepEqual((await workloads.list(Pod)).map(imageOf), Array(4).fill('app:1'));

  const onDelete = { updateStrategy: { type: 'OnDelete', rollingUpdate: null } };
  await workloads.objects(StatefulSet).patch('db', 'merge', { spec: { ...image('app:3').spec, ...onDelete } });
  await workloads.reaches(
    StatefulSet,
    'db',
    ({ metadata: meta, status }) => status?.observedGeneration === meta?.generation,
  );
  t.deepEqual((await workloads.list(Pod)).map(imageOf), Array(4).fill('app:1'));
  await workloads.objects(Pod).delete('db-2');
  await until(async () => (await workloads.list(Pod)).map(imageOf).join() === 'app:1,app:1,app:3,app:1');
});

test('pods wait for minReadySeconds of the one before', async (t) => {
  const workloads = await open(t);
  await workloads.objects(StatefulSet).create(statefulSet(2, { minReadySeconds: 30 }));
  await workloads.reaches(StatefulSet, 'db', ({ status }) => status?.readyReplicas === 1);
  t.deepEqual(namesOf(await workloads.list(Pod)), ['db-0']);
  await workloads.reaches(StatefulSet, 'db', isComplete(2), { advanceMs: 2000 });
});

test('each pod has claims, whose owners follow the retention policy', async (t) => {
  const workloads = await open(t);
  const volumeClaimTemplates = [
    {
      metadata: { name: 'data' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    },
  ];
  const retention = (whenDeleted: string, whenScaled: string) => ({
    persistentVolumeClaimRetentionPolicy: { whenDeleted, whenScaled },
  });
  await workloads.objects(StatefulSet).create(statefulSet(2, { volumeClaimTemplates }));
  await workloads.reaches(StatefulSet, 'db', isComplete(2));
  const claims = () => workloads.list(PersistentVolumeClaim);
  t.deepEqual(namesOf(await claims()), ['data-db-0', 'data-db-1']);
  t.is((await claims())[0]?.metadata?.labels?.['app'], 'db');
  const pod = await workloads.objects(Pod).get('db-1');
  t.deepEqual(pod.spec.volumes?.[0]?.persistentVolumeClaim, { claimName: 'data-db-1' });
  const ownersOf = async () =>
    (await claims()).map(({ metadata }) =>
      metadata?.ownerReferences?.map(({ kind, name }) => `${kind}/${name}`).join(),
    );
  t.deepEqual(await ownersOf(), [undefined, undefined]);

  await workloads.objects(StatefulSet).patch('db', 'merge', { spec: retention('Delete', 'Delete') });
  await until(async () => (await ownersOf()).join() === 'StatefulSet/db,StatefulSet/db');
  await workloads.objects(StatefulSet).patch('db', 'merge', { spec: { replicas: 1 } });
  await until(async () => (await ownersOf()).join() === 'StatefulSet/db,Pod/db-1');
  await workloads.reaches(StatefulSet, 'db', isComplete(1));
  // A pod of this name waits until the garbage collector has deleted the claim of the removed one.
  await workloads.objects(StatefulSet).patch('db', 'merge', { spec: { replicas: 2 } });
  await workloads.reaches(
    StatefulSet,
    'db',
    ({ metadata, status }) => status?.observedGeneration === metadata?.generation,
  );
  t.deepEqual(namesOf(await workloads.list(Pod)), ['db-0']);
  await workloads.objects(PersistentVolumeClaim).delete('data-db-1');
  await workloads.reaches(StatefulSet, 'db', isComplete(2), { advanceMs: 1000 });

  await workloads.objects(StatefulSet).patch('db', 'merge', { spec: retention('Retain', 'Retain') });
  await until(async () => (await ownersOf()).join() === ',');
});
