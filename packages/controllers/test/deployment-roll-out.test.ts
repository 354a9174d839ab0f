import type { Deployment, Pod, ReplicaSet } from '@keelson/kinds';
import test from 'ava';
import { newReplicaSet } from '../src/deployment/replica-sets.ts';
import { recreate, rollingUpdate } from '../src/deployment/roll-out.ts';
import { rollBack } from '../src/deployment/rollback.ts';
import { deployment, replicaSet, rolling, rolloutOf } from './support/rollout-over-sets.ts';

const current = (name: string, replicas: number, available = replicas) =>
  replicaSet(name, replicas, { image: 'new', available });

for (const [title, spec, sets, expected] of [
  ['grows the current set by the surge', rolling(2, 0), [replicaSet('a', 10), current('b', 0)], '10,2'],
  ['does not grow beyond the surge', rolling(2, 0), [replicaSet('a', 10), current('b', 2, 0)], '10,2'],
  ['grows to the size of the deployment', rolling(20, 0), [replicaSet('a', 10), current('b', 2)], '10,10'],
  ['shrinks a current set that is too large', rolling(2, 0), [current('b', 12)], '10'],
  ['removes old pods for available new ones', rolling(2, 0), [replicaSet('a', 10), current('b', 2)], '8,2'],
  ['removes as many old pods as may be unavailable', rolling(0, 3), [replicaSet('a', 10), current('b', 0)], '7,0'],
  [
    'removes unavailable old pods first',
    rolling(0, 2),
    [replicaSet('a', 5), replicaSet('c', 5, { available: 3 }), current('b', 0)],
    '5,0,3',
  ],
  ['counts starting new pods as unavailable', rolling(0, 3), [replicaSet('a', 8), current('b', 2, 0)], '7,2'],
  ['shrinks the oldest set first', rolling(0, 3), [replicaSet('a', 2), replicaSet('c', 8), current('d', 0)], '0,7,0'],
] as [string, Partial<Deployment['spec']>, ReplicaSet[], string][]) {
  test(`a rolling update ${title}`, async (t) => {
    const { rollout, sizes } = rolloutOf(deployment(spec), sets);
    await rollingUpdate(rollout);
    t.is(sizes(), expected);
  });
}

test('a rolling update waits for sets that have not reported their size, but shrinks others', async (t) => {
  const changed = { ...replicaSet('a', 10), metadata: { ...replicaSet('a', 10).metadata, generation: 2 } };
  const { rollout, sizes } = rolloutOf(deployment(rolling(2, 1)), [changed, current('b', 0)]);
  await rollingUpdate(rollout);
  t.is(sizes(), '9,0');
});

test('a change of size is an event of the deployment, a change of its record is not', async (t) => {
  const { rollout, run, updates } = rolloutOf(deployment(rolling(2, 0)), [replicaSet('a', 10), current('b', 0)]);
  await rollingUpdate(rollout);
  t.deepEqual(run.events, ['Normal ScalingReplicaSet: Scaled up replica set b from 0 to 2']);
  t.is(updates[0]?.metadata?.annotations?.['deployment.kubernetes.io/max-replicas'], '12');
  const same = rolloutOf(deployment(rolling(2, 0)), [current('b', 10)]);
  await rollingUpdate(same.rollout);
  t.deepEqual([same.updates.length, same.run.events], [1, []]);
  const recorded = rolloutOf(deployment(rolling(2, 0)), [replicaSet('b', 10, { image: 'new', recorded: 10, max: 12 })]);
  await rollingUpdate(recorded.rollout);
  t.is(recorded.updates.length, 0);
});

test('Recreate waits until the old pods have ended', async (t) => {
  const step = async (old: ReplicaSet, pods: readonly Pod[] = []) => {
    const strategy = { strategy: { type: 'Recreate' } };
    const { rollout, sizes } = rolloutOf(deployment(strategy), [old, current('b', 0)], pods);
    await recreate(rollout);
    return sizes();
  };
  const pod = (phase: string): Pod => ({
    metadata: {
      name: 'p',
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'a', uid: 'a', controller: true }],
    },
    spec: { containers: [] },
    status: { phase },
  });
  const ended = replicaSet('a', 0);
  t.is(await step(replicaSet('a', 3)), '0,0');
  t.is(await step(replicaSet('a', 0, { status: { replicas: 1, observedGeneration: 1 } })), '0,0');
  t.is(await step({ ...ended, metadata: { ...ended.metadata, generation: 2 } }), '0,0');
  t.is(await step(ended, [pod('Running')]), '0,0');
  t.is(await step(ended, [pod('Failed')]), '0,10');
  t.is(await step(ended), '0,10');
});

test('a new set has the size that the surge permits, and the next revision', async (t) => {
  const created = async (spec: Partial<Deployment['spec']>, ...sets: ReplicaSet[]) => {
    const { rollout, run } = rolloutOf(deployment({ progressDeadlineSeconds: 60, ...spec }), sets);
    t.true(await rollout.createCurrent());
    const annotations = rollout.current?.metadata?.annotations ?? {};
    const { reason } = rollout.condition('Progressing') ?? {};
    return [
      rollout.current?.spec.replicas,
      annotations['deployment.kubernetes.io/revision'],
      reason,
      run.events.length,
    ];
  };
  const old = replicaSet('a', 9);
  old.metadata = { ...old.metadata, annotations: { 'deployment.kubernetes.io/revision': '4' } };
  t.deepEqual(await created(rolling(2, 0), old), [3, '5', 'NewReplicaSetCreated', 1]);
  t.deepEqual(await created(rolling(2, 0)), [10, '1', 'NewReplicaSetCreated', 1]);
  t.deepEqual(await created(rolling(0, 1), replicaSet('a', 12)), [0, '1', 'NewReplicaSetCreated', 0]);
  t.deepEqual((await created({ strategy: { type: 'Recreate' } }, old))[0], 10);
  t.is((await created({ progressDeadlineSeconds: 2_147_483_647 }))[2], undefined);
});

test('a set of an earlier run is adopted; one of another owner or template counts as a collision', async (t) => {
  const of = deployment(rolling(2, 0));
  const own = newReplicaSet(of, 3, 1n);
  const outcome = async (existing: ReplicaSet) => {
    const { rollout } = rolloutOf(of, [], [], existing);
    return [await rollout.createCurrent(), rollout.all.length, rollout.collisionCount];
  };
  t.deepEqual(await outcome(own), [true, 1, undefined]);
  t.deepEqual(await outcome({ ...own, metadata: { ...own.metadata, ownerReferences: [] } }), [false, 0, 1]);
  const other = { ...own, spec: { ...own.spec, template: replicaSet('x', 0).spec.template ?? {} } } as ReplicaSet;
  t.deepEqual(await outcome(other), [false, 0, 1]);
});

test('a rollback restores the template of a revision, or of the last but one', async (t) => {
  const annotated = (name: string, image: string, revision: string) => {
    const set = replicaSet(name, 1, { image });
    return {
      ...set,
      metadata: { ...set.metadata, annotations: { 'deployment.kubernetes.io/revision': revision, cause: image } },
    };
  };
  const sets = [annotated('b', 'two', '2'), annotated('c', 'new', '10'), annotated('a', 'one', '1')];
  const rolledBack = async (request: number, from: readonly ReplicaSet[] = sets) => {
    const metadata = {
      ...deployment().metadata,
      annotations: { 'deprecated.deployment.rollback.rollbackTo': String(request), cause: 'new' },
    };
    const { rollout, updates, run } = rolloutOf(deployment({}, { metadata }), from);
    await rollBack(rollout, request);
    const updated = updates[0] as Deployment | undefined;
    t.deepEqual(Object.keys(updated?.metadata?.annotations ?? {}), ['cause'], 'the request is removed');
    return [
      updated?.spec.template.spec?.containers[0]?.image,
      updated?.metadata?.annotations?.['cause'],
      run.events[0]?.split(':')[0],
    ];
  };
  t.deepEqual(await rolledBack(0), ['two', 'two', 'Normal DeploymentRollback']);
  t.deepEqual(await rolledBack(1), ['one', 'one', 'Normal DeploymentRollback']);
  t.deepEqual(await rolledBack(10), ['new', 'new', 'Warning DeploymentRollbackTemplateUnchanged']);
  t.deepEqual(await rolledBack(5), ['new', 'new', 'Warning DeploymentRollbackRevisionNotFound']);
  t.deepEqual(await rolledBack(0, sets.slice(1, 2)), ['new', 'new', 'Warning DeploymentRollbackRevisionNotFound']);
});
