import type { KubeObject } from '@keelson/core';
import { Deployment, ExtensionsV1beta1Deployment, Pod, ReplicaSet } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test from 'ava';
import { workloadControllers } from '../src/index.ts';
import { interceptedClient } from './support/intercepted-client.ts';
import { type PodFate, template, WorkloadPlane } from './support/workload-plane.ts';

const labels = { app: 'web' };
const revision = 'deployment.kubernetes.io/revision';

function deployment(replicas: number, spec: Partial<Deployment['spec']> = {}): Deployment {
  return {
    metadata: { name: 'web' },
    spec: { replicas, selector: { matchLabels: labels }, template: template(labels, 'app:1'), ...spec },
  };
}

const imageOf = (object: Pod | ReplicaSet) =>
  ('template' in object.spec ? object.spec.template?.spec?.containers : (object as Pod).spec.containers)?.[0]?.image;
const image = (name: string) => ({ spec: { template: template(labels, name) } });
const conditionOf = ({ status }: Deployment, type: string) => status?.conditions?.find((other) => other.type === type);
const isComplete = (replicas: number) => (object: Deployment) => {
  const { observedGeneration, updatedReplicas, availableReplicas, replicas: all } = object.status ?? {};
  const counts = [updatedReplicas, availableReplicas, all];
  return (
    observedGeneration === object.metadata?.generation &&
    counts.every((count = 0) => count === replicas) &&
    conditionOf(object, 'Progressing')?.reason === 'NewReplicaSetAvailable'
  );
};

test('a deployment creates a replica set named after the hash of its template', async (t) => {
  const workloads = await WorkloadPlane.start(t, { controllers: workloadControllers });
  await workloads.objects(Deployment).create(deployment(3));
  const done = await workloads.reaches(Deployment, 'web', isComplete(3));
  t.is(done.metadata?.generation, 1);
  t.is(done.metadata?.annotations?.[revision], '1');
  t.like(conditionOf(done, 'Available'), { status: 'True', reason: 'MinimumReplicasAvailable' });
  const sets = await workloads.list(ReplicaSet);
  t.is(sets.length, 1);
  const [set] = sets;
  const hash = set?.metadata?.labels?.['pod-template-hash'] ?? '';
  t.regex(hash, /^[bcdfghjklmnpqrstvwxz2456789]{8,10}$/);
  t.is(set?.metadata?.name, `web-${hash}`);
  t.deepEqual(set?.spec.selector?.matchLabels, { app: 'web', 'pod-template-hash': hash });
  t.like(set?.metadata?.annotations, {
    [revision]: '1',
    'deployment.kubernetes.io/desired-replicas': '3',
    'deployment.kubernetes.io/max-replicas': '4',
  });
  t.is(conditionOf(done, 'Progressing')?.message, `ReplicaSet "web-${hash}" has successfully progressed.`);
});

test('a rolling update stays within its limits, and a rollback uses the earlier replica set again', async (t) => {
  const workloads = await WorkloadPlane.start(t, { controllers: workloadControllers });
  await workloads.objects(Deployment).create(deployment(4));
  await workloads.reaches(Deployment, 'web', isComplete(4));
  await workloads.objects(Deployment).patch('web', 'merge', image('app:2'));
  await workloads.reaches(Deployment, 'web', isComplete(4));
  t.deepEqual((await workloads.activePods()).map(imageOf), Array(4).fill('app:2'));
  t.is((await workloads.list(ReplicaSet)).length, 2);

  await workloads.objects(Deployment).patch('web', 'merge', image('app:1'));
  const back = await workloads.reaches(Deployment, 'web', isComplete(4));
  t.is(back.metadata?.annotations?.[revision], '3');
  const sets = await workloads.list(ReplicaSet);
  t.is(sets.length, 2);
  const first = sets.find((set) => imageOf(set) === 'app:1');
  t.is(first?.metadata?.annotations?.[revision], '3');
  t.is(first?.metadata?.annotations?.['deployment.kubernetes.io/revision-history'], '1');
});

test('Recreate ends all old pods before it starts new ones', async (t) => {
  const workloads = await WorkloadPlane.start(t, { controllers: workloadControllers, nodeOf: () => 'node' });
  await workloads.objects(Deployment).create(deployment(3, { strategy: { type: 'Recreate' } }));
  await workloads.reaches(Deployment, 'web', isComplete(3));
  let mixed = 0;
  const watching = new AbortController();
  const images = new Map<string, string>();
  const { metadata } = await workloads.objects(Pod).list();
  for (const pod of await workloads.list(Pod)) images.set(pod.metadata?.name ?? '', imageOf(pod) ?? '');
  const watch = (async () => {
    const options = { resourceVersion: metadata.resourceVersion ?? '', signal: watching.signal };
    for await (const { type, object } of workloads.objects(Pod).watch(options)) {
      const name = object.metadata?.name ?? '';
      if (type === 'DELETED') images.delete(name);
      else if (type !== 'BOOKMARK') images.set(name, imageOf(object) ?? '');
      if (new Set(images.values()).size > 1) mixed += 1;
    }
  })();
  await workloads.objects(Deployment).patch('web', 'merge', image('app:2'));
  await workloads.reaches(Deployment, 'web', isComplete(3));
  watching.abort();
  await watch;
  t.is(mixed, 0);
  t.deepEqual([...images.values()], Array(3).fill('app:2'));
});

test('a paused deployment scales, but rolls its template out only after it is resumed', async (t) => {
  const workloads = await WorkloadPlane.start(t, { controllers: workloadControllers });
  await workloads.objects(Deployment).create(deployment(2));
  await workloads.reaches(Deployment, 'web', isComplete(2));
  await workloads
    .objects(Deployment)
    .patch('web', 'merge', { spec: { paused: true, replicas: 3, ...image('app:2').spec } });
  const paused = await workloads.reaches(Deployment, 'web', ({ status }) => status?.availableReplicas === 3);
  t.like(conditionOf(paused, 'Progressing'), { status: 'Unknown', reason: 'DeploymentPaused' });
  t.is((await workloads.list(ReplicaSet)).length, 1);
  await workloads.objects(Deployment).patch('web', 'merge', { spec: { paused: false } });
  await workloads.reaches(Deployment, 'web', isComplete(3));
  t.deepEqual((await workloads.activePods()).map(imageOf), Array(3).fill('app:2'));
});

test('a rollout without progress exceeds its deadline, and a scaled one shares the change in proportion', async (t) => {
  let fate: PodFate = 'ready';
  const workloads = await WorkloadPlane.start(t, {
    controllers: workloadControllers,
    fateOf: (pod) => (imageOf(pod) === 'app:bad' ? fate : 'ready'),
  });
  const pace = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 2, maxUnavailable: 2 } };
  await workloads.objects(Deployment).create(deployment(10, { strategy: pace, progressDeadlineSeconds: 60 }));
  await workloads.reaches(Deployment, 'web', isComplete(10));
  fate = 'running';
  await workloads.objects(Deployment).patch('web', 'merge', image('app:bad'));
  const sizes = async () => {
    const sets = await workloads.list(ReplicaSet);
    const size = (name: string) => sets.find((set) => imageOf(set) === name)?.spec.replicas;
    return [size('app:1'), size('app:bad')];
  };
  await until(async () => (await sizes()).join() === '8,4');
  const stuck = (object: Deployment) => conditionOf(object, 'Progressing')?.reason === 'ProgressDeadlineExceeded';
  const exceeded = await workloads.reaches(Deployment, 'web', stuck, { advanceMs: 5000 });
  t.like(conditionOf(exceeded, 'Progressing'), { status: 'False' });
  t.regex(conditionOf(exceeded, 'Progressing')?.message ?? '', /^ReplicaSet "web-\w+" has timed out progressing\.$/);

  // 12 pods become 17: each replica set receives its share.
  await workloads.objects(Deployment).patch('web', 'merge', { spec: { replicas: 15 } });
  await until(async () => (await sizes()).join() === '11,6');
  fate = 'ready';
  workloads.refresh();
  await workloads.reaches(Deployment, 'web', isComplete(15));
});

test('pods that cannot be created are reported by the condition ReplicaFailure, until they can be', async (t) => {
  let rejects = true;
  const workloads = await WorkloadPlane.start(t, {
    controllers: workloadControllers,
    wrapClient: (client) =>
      interceptedClient(client, {
        before: ({ verb, resource }) => {
          if (rejects && verb === 'create' && resource === 'pods') throw new Error('exceeded quota');
        },
      }),
  });
  await workloads.objects(Deployment).create(deployment(2));
  const failing = await workloads.reaches(
    Deployment,
    'web',
    (object) => conditionOf(object, 'ReplicaFailure') !== undefined,
  );
  const expected = { status: 'True', reason: 'FailedCreate', message: 'exceeded quota' };
  t.like(conditionOf(failing, 'ReplicaFailure'), expected);
  t.like(conditionOf(failing, 'Available'), { status: 'False', reason: 'MinimumReplicasUnavailable' });
  rejects = false;
  const done = await workloads.reaches(Deployment, 'web', isComplete(2), { advanceMs: 1000 });
  t.is(conditionOf(done, 'ReplicaFailure'), undefined);
});

test('revisions are integers of 64 bits', async (t) => {
  const workloads = await WorkloadPlane.start(t, { controllers: workloadControllers });
  await workloads.objects(Deployment).create(deployment(1));
  await workloads.reaches(Deployment, 'web', isComplete(1));
  const [first] = await workloads.list(ReplicaSet);
  const great = { metadata: { annotations: { [revision]: '3546343826724305832' } } };
  await workloads.objects(ReplicaSet).patch(first?.metadata?.name ?? '', 'merge', great);
  await workloads
    .objects(Deployment)
    .patch('web', 'merge', { spec: { template: { metadata: { labels: { v: '2' } } } } });
  const next = (object: Deployment) => object.metadata?.annotations?.[revision] === '3546343826724305833';
  await t.notThrowsAsync(workloads.reaches(Deployment, 'web', next));
});

test('replica sets without pods beyond revisionHistoryLimit are deleted, the oldest revisions first', async (t) => {
  const workloads = await WorkloadPlane.start(t, { controllers: workloadControllers });
  await workloads.objects(Deployment).create(deployment(1, { revisionHistoryLimit: 2 }));
  for (const version of [2, 3, 4, 5]) {
    await workloads.reaches(Deployment, 'web', isComplete(1));
    await workloads.objects(Deployment).patch('web', 'merge', image(`app:${version}`));
  }
  await workloads.reaches(Deployment, 'web', isComplete(1));
  const images = async () => (await workloads.list(ReplicaSet)).map(imageOf).sort().join();
  await until(async () => (await images()) === 'app:3,app:4,app:5');
  t.pass();
});

test('rollbackTo of extensions/v1beta1 returns the template and its annotations, and is removed', async (t) => {
  const workloads = await WorkloadPlane.start(t, { controllers: workloadControllers });
  const cause = 'kubernetes.io/change-cause';
  await workloads.objects(Deployment).create({
    ...deployment(2),
    metadata: { name: 'web', annotations: { [cause]: 'create' } },
  });
  await workloads.reaches(Deployment, 'web', isComplete(2));
  await workloads.objects(Deployment).patch('web', 'merge', {
    metadata: { annotations: { [cause]: 'edit' } },
    ...image('app:2'),
  });
  await workloads.reaches(Deployment, 'web', isComplete(2));
  const body = { name: 'web', rollbackTo: { revision: 1 } } as KubeObject;
  await workloads.objects(ExtensionsV1beta1Deployment).createSubresource('web', 'rollback', body);
  const done = await workloads.reaches(
    Deployment,
    'web',
    (object) => isComplete(2)(object) && object.metadata?.annotations?.[revision] === '3',
  );
  t.is(done.metadata?.annotations?.[cause], 'create');
  t.is(done.metadata?.annotations?.['deprecated.deployment.rollback.rollbackTo'], undefined);
  t.deepEqual((await workloads.activePods()).map(imageOf), ['app:1', 'app:1']);
  await workloads.recorded('web', 'DeploymentRollback', /^Rolled back deployment "web" to revision 1$/);
  const rollBackTo = (to: number) =>
    workloads.objects(ExtensionsV1beta1Deployment).createSubresource('web', 'rollback', {
      name: 'web',
      rollbackTo: { revision: to },
    } as KubeObject);
  await rollBackTo(3);
  const unchanged = /^The rollback revision contains the same template as current deployment "web"$/;
  await workloads.recorded('web', 'DeploymentRollbackTemplateUnchanged', unchanged);
  await rollBackTo(99);
  const notFound = /^Unable to find the revision to rollback to\.$/;
  await workloads.recorded('web', 'DeploymentRollbackRevisionNotFound', notFound);
});

test('a name that another replica set has leads to another hash', async (t) => {
  const workloads = await WorkloadPlane.start(t, { controllers: workloadControllers });
  await workloads.objects(Deployment).create(deployment(1));
  await workloads.reaches(Deployment, 'web', isComplete(1));
  const [first] = await workloads.list(ReplicaSet);
  const name = first?.metadata?.name ?? '';
  await workloads.stopControllers();
  await workloads.objects(Deployment).delete('web');
  await workloads.objects(ReplicaSet).delete(name);
  await workloads.objects(ReplicaSet).create({
    metadata: { name },
    spec: { replicas: 0, selector: { matchLabels: { app: 'x' } }, template: template({ app: 'x' }) },
  });
  await workloads.objects(Deployment).create(deployment(1));
  await workloads.startControllers();
  t.teardown(() => workloads.stopControllers());
  const done = await workloads.reaches(
    Deployment,
    'web',
    ({ status }) => status?.collisionCount === 1 && status?.availableReplicas === 1,
  );
  t.is(done.status?.collisionCount, 1);
  t.is((await workloads.list(ReplicaSet)).length, 2);
});
