import { formatTime } from '@keelson/core';
import type { appsV1, Deployment, ReplicaSet } from '@keelson/kinds';
import test from 'ava';
import { isComplete, reportProgress, reportStatus } from '../src/deployment/progress.ts';
import { deployment, replicaSet, rolling, rolloutOf } from './support/rollout-over-sets.ts';

const conditions = (...list: string[]): appsV1.DeploymentCondition[] =>
  list.map((text) => {
    const [type = '', status = '', reason = ''] = text.split(' ');
    return {
      type,
      status,
      reason,
      lastUpdateTime: formatTime(new Date(0)),
      lastTransitionTime: formatTime(new Date(0)),
    };
  });

/** The condition Progressing after a report, and when the next one is due. */
async function progress(
  spec: Partial<Deployment['spec']>,
  status: Deployment['status'],
  sets: ReplicaSet[],
  elapsedMs = 0,
) {
  const limited = { progressDeadlineSeconds: 60, ...rolling(1, 1), ...spec };
  const { rollout, run, statuses } = rolloutOf(deployment(limited, { status: status ?? {} }), sets);
  const started = formatTime(new Date(run.clock.now()));
  const list = (status?.conditions ?? []).map((one) => ({ ...one, lastUpdateTime: started }));
  rollout.conditions = list;
  run.clock.advance(elapsedMs);
  const result = await reportProgress(rollout);
  const found = rollout.condition('Progressing');
  const condition = found && `${found.status} ${found.reason}`;
  return {
    condition,
    renewed: found?.lastUpdateTime !== started,
    again: result?.againAfterMs,
    status: statuses.at(-1),
    rollout,
  };
}

const complete = replicaSet('n', 10, { image: 'new' });
const half = replicaSet('n', 10, { image: 'new', available: 4 });
const updating = {
  replicas: 10,
  updatedReplicas: 10,
  readyReplicas: 4,
  availableReplicas: 4,
  conditions: conditions('Progressing True ReplicaSetUpdated'),
};
for (const [title, status, sets, expected, renewed, again, elapsedMs = 0, spec = {}] of [
  ['all pods are new and available', updating, [complete], 'True NewReplicaSetAvailable', false, undefined],
  [
    'more pods are new',
    { ...updating, updatedReplicas: 9, replicas: 9 },
    [half],
    'True ReplicaSetUpdated',
    true,
    61_000,
    5000,
  ],
  ['more pods are ready', { ...updating, readyReplicas: 3 }, [half], 'True ReplicaSetUpdated', true, 61_000, 5000],
  [
    'more pods are available',
    { ...updating, availableReplicas: 3 },
    [half],
    'True ReplicaSetUpdated',
    true,
    61_000,
    5000,
  ],
  [
    'fewer old pods remain',
    { ...updating, replicas: 13 },
    [replicaSet('a', 2), half],
    'True ReplicaSetUpdated',
    true,
    61_000,
    5000,
  ],
  [
    'the last old pod has ended',
    { replicas: 1, conditions: updating.conditions },
    [replicaSet('n', 0, { image: 'new' })],
    'True ReplicaSetUpdated',
    true,
    61_000,
    5000,
  ],
  ['nothing has changed', updating, [half], 'True ReplicaSetUpdated', false, 56_000, 5000],
  ['the deadline is reached', updating, [half], 'True ReplicaSetUpdated', false, 1000, 60_000],
  ['the deadline is exceeded', updating, [half], 'False ProgressDeadlineExceeded', true, undefined, 61_000],
  [
    'the deadline was exceeded before',
    { ...updating, conditions: conditions('Progressing False ProgressDeadlineExceeded') },
    [half],
    'False ProgressDeadlineExceeded',
    false,
    undefined,
  ],
  [
    'a complete rollout has lost pods',
    { ...updating, conditions: conditions('Progressing True NewReplicaSetAvailable') },
    [half],
    'True NewReplicaSetAvailable',
    false,
    1000,
    90_000,
  ],
  [
    'there is no deadline',
    updating,
    [half],
    undefined,
    true,
    undefined,
    90_000,
    { progressDeadlineSeconds: 2_147_483_647 },
  ],
] as [
  string,
  Deployment['status'],
  ReplicaSet[],
  string | undefined,
  boolean,
  number | undefined,
  number?,
  object?,
][]) {
  test(`progress: ${expected ?? 'no condition'} when ${title}`, async (t) => {
    const found = await progress(spec, status, sets, elapsedMs);
    t.is(found.condition, expected);
    t.is(found.again, again);
    if (elapsedMs > 0) t.is(found.renewed, renewed);
  });
}

test('a rollout is complete with all replicas new and available, and no others', (t) => {
  const counts = { replicas: 10, updatedReplicas: 10, availableReplicas: 10 };
  t.true(isComplete(deployment(), counts));
  t.true(isComplete(deployment({ replicas: 0 }), {}));
  for (const name of ['replicas', 'updatedReplicas', 'availableReplicas'])
    t.false(isComplete(deployment(), { ...counts, [name]: 9 }), name);
});

test('the status has the sums of all sets, and is available with as many pods as the strategy requires', async (t) => {
  const sets = [
    replicaSet('a', 3, { available: 1, status: { replicas: 4, terminatingReplicas: 2 } }),
    replicaSet('b', 9, { image: 'new', available: 8, status: { replicas: 9, readyReplicas: 9 } }),
  ];
  const { rollout, statuses } = rolloutOf(deployment(rolling(2, 1)), sets);
  await reportStatus(rollout);
  const { conditions: list, ...counts } = statuses[0] ?? {};
  t.deepEqual(counts as unknown, {
    ...{ observedGeneration: 2, replicas: 13, updatedReplicas: 9, readyReplicas: 10, availableReplicas: 9 },
    ...{ unavailableReplicas: 3, terminatingReplicas: 2 },
  });
  t.deepEqual(
    list?.map(({ type, status, reason }) => `${type} ${status} ${reason}`),
    ['Available True MinimumReplicasAvailable'],
  );
  const fewer = rolloutOf(deployment(rolling(2, 0)), sets, []);
  await reportStatus(fewer.rollout);
  t.like(fewer.statuses[0]?.conditions?.[0], { status: 'False', reason: 'MinimumReplicasUnavailable' });
});

test('a failure of the current set comes before that of another, and ends with it', async (t) => {
  const failing = (name: string, image: string, reason: string) =>
    replicaSet(name, 1, {
      image,
      status: { replicas: 1, conditions: [{ type: 'ReplicaFailure', status: 'True', reason }] },
    });
  const status = { conditions: conditions('ReplicaFailure True Old') };
  const reasonOf = async (...sets: ReplicaSet[]) =>
    (await progress({}, status, sets)).rollout.condition('ReplicaFailure')?.reason;
  t.is(await reasonOf(failing('a', 'old', 'A'), failing('b', 'new', 'B')), 'B');
  t.is(await reasonOf(failing('a', 'old', 'A'), complete), 'A');
  t.is(await reasonOf(complete), undefined);
});

test('an unchanged condition is not renewed, and a changed one keeps its time while the status is the same', (t) => {
  const { rollout, run } = rolloutOf(
    deployment({}, { status: { conditions: conditions('A True R', 'B True R') } }),
    [],
  );
  const now = formatTime(new Date(run.clock.now()));
  const old = formatTime(new Date(0));
  rollout.setCondition('A', 'True', 'R', 'other');
  t.is(rollout.condition('A')?.lastUpdateTime, old);
  rollout.setCondition('A', 'True', 'S', 'm');
  t.like(rollout.condition('A'), { reason: 'S', message: 'm', lastUpdateTime: now, lastTransitionTime: old });
  rollout.setCondition('A', 'False', 'S', 'm');
  t.like(rollout.condition('A'), { status: 'False', lastTransitionTime: now });
  rollout.removeCondition('B');
  t.deepEqual(
    rollout.conditions.map(({ type }) => type),
    ['A'],
  );
});
