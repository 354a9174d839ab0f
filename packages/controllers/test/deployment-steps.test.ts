import { type appsV1, type Deployment, Pod, type ReplicaSet } from '@keelson/kinds';
import test from 'ava';
import {
  compareRevisions,
  copiedAnnotations,
  recordedMaxReplicas,
  recordedReplicas,
  revisionOf,
  rolledBackAnnotations,
  withRevision,
} from '../src/deployment/annotations.ts';
import { availableOf, byAge, mostPods, newReplicaSet } from '../src/deployment/replica-sets.ts';
import { requestedRevision } from '../src/deployment/rollback.ts';
import { isScaled, scale } from '../src/deployment/scale.ts';
import { maxSurge, maxUnavailable, progressDeadlineSeconds, revisionHistoryLimit } from '../src/deployment/strategy.ts';
import { deployment, replicaSet, rolling, rolloutOf } from './support/rollout-over-sets.ts';
import { runOverObjects } from './support/run-over-objects.ts';

const prefix = 'deployment.kubernetes.io/';
const [revision, history, desired, most] = ['revision', 'revision-history', 'desired-replicas', 'max-replicas'].map(
  (name) => `${prefix}${name}`,
) as [string, string, string, string];

for (const [title, spec, surge, unavailable] of [
  ['numbers', { replicas: 10, ...rolling(3, 2) }, 3, 2],
  ['percentages', { replicas: 10, ...rolling('25%', '25%') }, 3, 2],
  ['percentages that round to 0', { replicas: 3, ...rolling(0, '25%') }, 0, 1],
  ['no limits', { replicas: 3, strategy: { type: 'RollingUpdate' } }, 0, 1],
  ['a surge without unavailable pods', { replicas: 3, ...rolling(1, 0) }, 1, 0],
  ['more unavailable pods than replicas', { replicas: 2, ...rolling(1, 5) }, 1, 2],
  ['no replicas', { replicas: 0, ...rolling(1, 5) }, 1, 0],
  [
    'Recreate',
    { replicas: 5, strategy: { type: 'Recreate', rollingUpdate: { maxSurge: 2, maxUnavailable: 2 } } },
    0,
    0,
  ],
] as [string, Partial<Deployment['spec']>, number, number][]) {
  test(`strategy with ${title}: a surge of ${surge}, ${unavailable} may be unavailable`, (t) => {
    t.deepEqual([maxSurge(deployment(spec)), maxUnavailable(deployment(spec))], [surge, unavailable]);
  });
}

test('the greatest integer means no deadline and no limit of the history', (t) => {
  const limits = (value: number) => {
    const of = deployment({ progressDeadlineSeconds: value, revisionHistoryLimit: value });
    return [progressDeadlineSeconds(of), revisionHistoryLimit(of)];
  };
  t.deepEqual(limits(5), [5, 5]);
  t.deepEqual(limits(2_147_483_647), [undefined, undefined]);
});

test('a new revision is recorded with the earlier ones, which are limited in length', (t) => {
  t.deepEqual(withRevision({}, 3n), { [revision]: '3' });
  t.deepEqual(withRevision({ [revision]: '3' }, 3n), { [revision]: '3' });
  t.deepEqual(withRevision({ [revision]: 'x' }, 3n), { [revision]: 'x' });
  t.deepEqual(withRevision({ [revision]: '3', [history]: '1,2' }, 4n), { [revision]: '4', [history]: '1,2,3' });
  const long = Array.from({ length: 400 }, (_, i) => 1000 + i).join();
  const limited = withRevision({ [revision]: '1400', [history]: long }, 1401n)[history] ?? '';
  t.is(limited.length, 1999);
  t.regex(limited, /^1001,.*,1400$/);
  const annotated = (text: string) => ({ metadata: { annotations: { [revision]: text } } });
  t.deepEqual(
    ['7', '', 'x', '-1'].map((text) => revisionOf(annotated(text))),
    [7n, 0n, 0n, 0n],
  );
  t.deepEqual(
    [compareRevisions(annotated('2'), annotated('10')), compareRevisions(annotated('2'), annotated('1'))],
    [-1, 1],
  );
  t.is(compareRevisions(annotated('2'), annotated('2')), 0);
  t.deepEqual(
    [recordedReplicas({}), recordedReplicas({ metadata: { annotations: { [desired]: 'x' } } })],
    [...[undefined, undefined]],
  );
  t.is(recordedMaxReplicas({ metadata: { annotations: { [most]: '12' } } }), 12);
});

test('annotations are copied between a deployment and its sets, except those with a meaning of their own', (t) => {
  const applied = 'kubectl.kubernetes.io/last-applied-configuration';
  const rollbackTo = 'deprecated.deployment.rollback.rollbackTo';
  const all = {
    a: '1',
    [applied]: 'x',
    [revision]: '1',
    [history]: '1',
    [desired]: '1',
    [most]: '1',
    [rollbackTo]: '0',
  };
  t.deepEqual(copiedAnnotations({ metadata: { annotations: all } }), { a: '1' });
  t.deepEqual(copiedAnnotations({}), {});
  const of = deployment({}, { metadata: { name: 'd', annotations: { b: '2', [applied]: 'y', [rollbackTo]: '1' } } });
  t.deepEqual(rolledBackAnnotations(of, { metadata: { annotations: all } }), { a: '1', [applied]: 'y' });
  const requested = (text: string) => requestedRevision({ ...of, metadata: { annotations: { [rollbackTo]: text } } });
  t.deepEqual(['0', '12', 'x', ''].map(requested), [0, 12, undefined, undefined]);
  t.is(requestedRevision(deployment()), undefined);
});

test('a new replica set is named after the deployment and the hash, which a collision changes', (t) => {
  const of = deployment({ minReadySeconds: 5, ...rolling(2, 0) });
  const set = newReplicaSet(of, 4, 7n);
  const hash = set.metadata?.labels?.['pod-template-hash'] ?? '';
  t.is(set.metadata?.name, `d-${hash}`);
  t.deepEqual(set.metadata?.annotations, { [desired]: '10', [most]: '12', [revision]: '7' });
  t.like(set.spec, { replicas: 4, minReadySeconds: 5 });
  t.not(newReplicaSet({ ...of, status: { collisionCount: 1 } }, 4, 7n).metadata?.name, set.metadata?.name);
  const long = newReplicaSet({ ...of, metadata: { name: 'n'.repeat(253) } }, 4, 7n).metadata?.name ?? '';
  t.is(long, `${'n'.repeat(252 - hash.length)}-${hash}`);
  t.false('minReadySeconds' in newReplicaSet(deployment(), 1, 1n).spec);
});

test('sets are ordered by age and name; pods are limited by the size of the set or unknown after a change', (t) => {
  const [a, b] = [replicaSet('a', 3), replicaSet('b', 2)];
  const older = { ...b, metadata: { ...b.metadata, creationTimestamp: '2025-01-01T00:00:00Z' } };
  t.deepEqual([byAge(a, b), byAge(b, a), byAge(older, a)].map(Math.sign), [-1, 1, -1]);
  t.is(availableOf(replicaSet('a', 2, { available: 5 })), 2);
  t.is(availableOf({ ...a, status: {} as appsV1.ReplicaSetStatus }), 0);
  const owned = (name: string, phase: string): Pod => ({
    metadata: {
      name,
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'b', uid: 'b', controller: true }],
    },
    spec: { containers: [] },
    status: { phase },
  });
  const run = runOverObjects([[Pod, ['1', '2', '3'].map((name) => owned(name, name === '3' ? 'Failed' : 'Running'))]]);
  t.is(mostPods(run, [a, b]), 5);
  t.is(mostPods(run, [a, replicaSet('b', 1)]), 5, 'pods of the set that are not yet deleted');
  t.is(mostPods(run, [a, { ...b, metadata: { ...b.metadata, generation: 2 } }]), undefined);
});

for (const [title, spec, sets, expected] of [
  ['a single set gets the full size', {}, [replicaSet('a', 4)], '10'],
  [
    'the current set gets the full size when none has pods',
    {},
    [replicaSet('a', 0), replicaSet('b', 0, { image: 'new' }), replicaSet('c', 0)],
    '0,10,0',
  ],
  ['the newest set gets the full size when none is current', {}, [replicaSet('a', 0), replicaSet('b', 0)], '0,10'],
  [
    'old sets end when the current one is saturated',
    {},
    [replicaSet('a', 2), replicaSet('b', 10, { image: 'new', recorded: 10 })],
    '0,10',
  ],
  [
    'nothing changes for several sets of Recreate',
    { strategy: { type: 'Recreate' } },
    [replicaSet('a', 2), replicaSet('b', 3)],
    '2,3',
  ],
  ['sets grow in proportion', rolling(2, 0), [replicaSet('a', 5, { max: 7 }), replicaSet('b', 2, { max: 7 })], '9,3'],
  [
    'the largest set gets what rounding leaves',
    rolling(0, 1),
    [replicaSet('a', 1, { max: 5 }), replicaSet('b', 2, { max: 5 }), replicaSet('c', 2, { max: 5 })],
    '2,4,4',
  ],
  [
    'of equal sets the newest grows first',
    { replicas: 5, ...rolling(0, 1) },
    [replicaSet('a', 2, { max: 4 }), replicaSet('b', 2, { max: 4 })],
    '2,3',
  ],
  [
    'of equal sets the oldest shrinks first',
    { replicas: 3, ...rolling(0, 1) },
    [replicaSet('a', 2, { max: 4 }), replicaSet('b', 2, { max: 4 })],
    '1,2',
  ],
  [
    'sets shrink in proportion',
    { replicas: 5, ...rolling(0, 5) },
    [replicaSet('a', 8, { max: 10 }), replicaSet('b', 2, { max: 10 })],
    '4,1',
  ],
  [
    'all sets end without replicas',
    { replicas: 0, ...rolling(2, 0) },
    [replicaSet('a', 8, { max: 12 }), replicaSet('b', 4, { max: 12 })],
    '0,0',
  ],
  [
    'available pods are kept before others',
    { replicas: 6, ...rolling(0, 0) },
    [replicaSet('a', 6, { max: 12 }), replicaSet('b', 6, { max: 12, available: 0 })],
    '5,1',
  ],
] as [string, Partial<Deployment['spec']>, ReplicaSet[], string][]) {
  test(`scaling: ${title}`, async (t) => {
    const { rollout, sizes } = rolloutOf(deployment(spec), sets);
    await scale(rollout);
    t.is(sizes(), expected);
  });
}

test('sets do not grow while their surplus pods remain', async (t) => {
  const pods = ['1', '2', '3'].map((name) => ({
    ...{
      metadata: {
        name,
        ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'b', uid: 'b', controller: true }],
      },
    },
    ...{ spec: { containers: [] }, status: { phase: 'Running' } },
  }));
  const { rollout, written } = rolloutOf(deployment(rolling(2, 0)), [replicaSet('a', 5), replicaSet('b', 2)], pods);
  await scale(rollout);
  t.is(written(), '');
});

test('a deployment is scaled when a set with pods has recorded another size', (t) => {
  const scaled = (spec: Partial<Deployment['spec']>, ...sets: ReplicaSet[]) =>
    isScaled(rolloutOf(deployment(spec), sets).rollout);
  t.true(scaled({}, replicaSet('a', 1, { recorded: 9 })));
  t.false(scaled({}, replicaSet('a', 1, { recorded: 10 })));
  t.false(scaled({}, replicaSet('a', 1)));
  t.false(scaled({}, replicaSet('a', 0, { recorded: 9 })), 'a set without pods');
  const two = [replicaSet('a', 1, { recorded: 9 }), replicaSet('b', 1, { recorded: 9 })] as const;
  t.false(scaled({ strategy: { type: 'Recreate' } }, ...two));
  t.true(scaled(rolling(1, 0), ...two));
});
