import { formatTime, statusErrors } from '@keelson/core';
import { type batchV1, Job, type Pod } from '@keelson/kinds';
import test from 'ava';
import { jobOrphanPods, ttlAfterFinishedController } from '../src/job/finished-jobs.ts';
import { isManagedByOther } from '../src/job/job-controller.ts';
import { JobState } from '../src/job/job-state.ts';
import { deleteActivePods, managePods, PodCounts } from '../src/job/manage-pods.ts';
import { trackPods, withJobCondition } from '../src/job/track-pods.ts';
import { recordedWrites, runOverObjects } from './support/run-over-objects.ts';

const finalizer = 'batch.kubernetes.io/job-tracking';
const indexAnnotation = 'batch.kubernetes.io/job-completion-index';

function job(spec: Partial<batchV1.JobSpec> = {}, status: Job['status'] = {}, metadata: Job['metadata'] = {}): Job {
  const template = { spec: { containers: [] } };
  return {
    metadata: { name: 'j', namespace: 'default', uid: 'j', resourceVersion: '1', ...metadata },
    spec: { template, ...spec },
    status,
  } as Job;
}

/** A pod of the job: `a` runs, `S` in the name succeeded, `F` failed, `D` is in deletion; digits are its index. */
function pod(name: string, more: { ready?: boolean; tracked?: boolean; owner?: object | null } = {}): Pod {
  const {
    ready = false,
    tracked = true,
    owner = { apiVersion: 'batch/v1', kind: 'Job', name: 'j', uid: 'j', controller: true },
  } = more;
  const index = /\d+/.exec(name)?.[0];
  return {
    metadata: {
      ...{ name, namespace: 'default', uid: name },
      ...(index === undefined ? {} : { annotations: { [indexAnnotation]: index } }),
      ...(tracked ? { finalizers: [finalizer] } : {}),
      ...(name.includes('D') ? { deletionTimestamp: formatTime(new Date(0)) } : {}),
      ownerReferences: owner === null ? [] : [owner],
    },
    spec: { containers: [] },
    status: {
      phase: name.includes('S') ? 'Succeeded' : name.includes('F') ? 'Failed' : 'Running',
      conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }],
    },
  } as Pod;
}

async function managed(of: Job, pods: readonly Pod[], failures = { failures: 0, lastAt: 0 }) {
  const { client, writes, bodies } = recordedWrites();
  const run = runOverObjects([], client);
  const state = new JobState(of, pods);
  const counts = new PodCounts(state);
  const { lastAt, ...rest } = failures;
  const pause = await managePods(run, state, counts, { ...rest, lastAt: lastAt === 0 ? 0 : run.clock.now() + lastAt });
  const created = bodies.flatMap((body, i) =>
    writes[i]?.startsWith('create') ? [(body as Pod).metadata?.annotations?.[indexAnnotation] ?? '-'] : [],
  );
  const deleted = writes
    .filter((write) => write.startsWith('delete'))
    .map((write) => write.slice('delete Pod '.length));
  return { created: created.join(), deleted: deleted.sort().join(), writes, counts, pause };
}

const indexed = (spec: Partial<batchV1.JobSpec> = {}, status: Job['status'] = {}) =>
  job({ completionMode: 'Indexed', completions: 4, parallelism: 3, ...spec }, status);

for (const [title, of, pods, created, deleted] of [
  ['as many as may run in parallel', job({ parallelism: 3, completions: 5 }), ['a'], '-,-', ''],
  ['one without parallelism', job(), [], '-', ''],
  ['no more than are missing', job({ parallelism: 3, completions: 5 }, { succeeded: 4 }), [], '-', ''],
  ['none beyond the completions', job({ parallelism: 3, completions: 2 }, { succeeded: 2 }), ['a'], '', 'a'],
  ['none after the first success without completions', job({ parallelism: 3 }, { succeeded: 1 }), ['a'], '', ''],
  ['none while the job is suspended', job({ parallelism: 3, suspend: true }), ['a', 'b'], '', 'a,b'],
  ['fewer when the parallelism is lowered', job({ parallelism: 1, completions: 5 }), ['a', 'b', 'c'], '', 'a,b'],
  ['in place of one in deletion', job({ parallelism: 2, completions: 5 }), ['a', 'D'], '-', ''],
  [
    'none in place of one in deletion with the policy Failed',
    job({ parallelism: 2, completions: 5, podReplacementPolicy: 'Failed' }),
    ['a', 'D'],
    '',
    '',
  ],
  ['of the first free indexes', indexed({}, { completedIndexes: '1' }), ['a0'], '2,3', ''],
  ['of no failed index', indexed({ backoffLimitPerIndex: 1 }, { failedIndexes: '0' }), [], '1,2,3', ''],
  ['of an index in deletion', indexed(), ['D0', 'a1'], '0,2', ''],
  [
    'of no index in deletion with the policy Failed',
    indexed({ podReplacementPolicy: 'Failed' }),
    ['D0', 'a1'],
    '2',
    '',
  ],
  ['one for each index', indexed({ parallelism: 2 }), ['a0', 'b0', 'c1'], '', 'a0'],
  ['none without a valid index', indexed({ parallelism: 2 }), ['a0', 'b9', 'c1'], '', 'b9'],
] as [string, Job, string[], string, string][]) {
  test(`a job has pods: ${title}`, async (t) => {
    const found = await managed(
      of,
      pods.map((name) => pod(name)),
    );
    t.deepEqual([found.created, found.deleted], [created, deleted]);
  });
}

test('surplus pods lose their finalizer before they are deleted, and are counted as terminating', async (t) => {
  const { writes, counts } = await managed(job({ suspend: true }), [pod('a', { ready: true })]);
  t.deepEqual(writes, ['patch Pod a', 'delete Pod a']);
  t.deepEqual({ ...counts }, { active: 0, ready: 0, terminating: 1 });
  const started = await managed(job({ parallelism: 2, completions: 2 }), [pod('a', { ready: true }), pod('D')]);
  t.deepEqual({ ...started.counts }, { active: 2, ready: 1, terminating: 1 });
});

test('a new pod waits for the pause after a failure of the job, or of its own index', async (t) => {
  const waiting = await managed(job(), [], { failures: 1, lastAt: -4000 });
  t.deepEqual([waiting.created, waiting.pause], ['', 6000]);
  const perIndex = { backoffLimitPerIndex: 9, parallelism: 2 };
  const failed = { ...pod('F0'), metadata: { ...pod('F0').metadata } };
  failed.metadata.creationTimestamp = formatTime(new Date(runOverObjects([]).clock.now()));
  const { created, pause } = await managed(indexed(perIndex), [failed], { failures: 5, lastAt: -1 });
  t.is(created, '1');
  t.true(pause !== undefined && pause > 9000 && pause <= 10_000);
});

test('the active pods of a job that ends are deleted with their finalizer', async (t) => {
  const { client, writes } = recordedWrites();
  const state = new JobState(job(), [pod('a'), pod('F'), pod('D')]);
  const counts = new PodCounts(state);
  await deleteActivePods(runOverObjects([], client), state, counts);
  t.deepEqual(writes, ['delete Pod a']);
  t.deepEqual({ ...counts }, { active: 0, ready: 0, terminating: 2 });
});

async function tracked(of: Job, pods: readonly Pod[], verdict?: { outcome: 'Complete' | 'Failed' }) {
  const { client, writes, bodies } = recordedWrites();
  const steps: string[] = [];
  const state = new JobState(of, pods);
  const full = verdict && { reason: 'R', message: 'm', ...verdict };
  const found = await trackPods(runOverObjects([], client), state, full, {}, () =>
    steps.push(`written after ${writes.length}`),
  );
  const listed = (bodies[0] as Job | undefined)?.status?.uncountedTerminatedPods;
  return { ...found, writes, steps, listed };
}

test('ended pods are listed, lose their finalizer, and are counted after that', async (t) => {
  const { writes, steps, listed, status, complete } = await tracked(job({}, { succeeded: 1 }), [
    pod('S'),
    pod('F'),
    pod('a'),
  ]);
  t.deepEqual(listed, { succeeded: ['S'], failed: ['F'] });
  t.deepEqual(writes, ['patch status of Job j', 'patch Pod S', 'patch Pod F']);
  t.deepEqual(steps, ['written after 1']);
  t.true(complete);
  t.like(status, { succeeded: 2, failed: 1 });
  t.deepEqual(status.uncountedTerminatedPods, {});
});

test('a listed pod without its finalizer is counted, and one that still has it is not listed again', async (t) => {
  const uncountedTerminatedPods = { succeeded: ['S'], failed: ['gone'] };
  const { status, listed, writes } = await tracked(job({}, { uncountedTerminatedPods }), [pod('S')]);
  t.deepEqual(listed, { failed: null, succeeded: ['S'] } as never);
  t.deepEqual(writes, ['patch status of Job j', 'patch Pod S']);
  t.like(status, { succeeded: 1, failed: 1 });
});

test('the pods of an indexed job are counted by index, and those without one are only released', async (t) => {
  const { status, writes } = await tracked(indexed({}, { completedIndexes: '0' }), [pod('S0'), pod('S2'), pod('S9')]);
  t.like(status, { succeeded: 2, completedIndexes: '0,2' });
  t.is(writes.filter((write) => write.startsWith('patch Pod')).length, 3);
});

test('at most 500 pods are counted in one step', async (t) => {
  const { complete, writes, status } = await tracked(
    job(),
    Array.from({ length: 501 }, (_, i) => pod(`S${i}`)),
  );
  t.false(complete);
  t.is(writes.length, 501);
  t.is(status.succeeded, 500);
});

test('a failed job counts its active pods as failed, a complete one releases them without', async (t) => {
  const failed = await tracked(job(), [pod('a')], { outcome: 'Failed' });
  t.is(failed.status.failed, 1);
  t.like(failed.status.conditions?.[0], { type: 'FailureTarget', status: 'True', reason: 'R', message: 'm' });
  const complete = await tracked(job(), [pod('a')], { outcome: 'Complete' });
  t.is(complete.status.failed, undefined);
  t.is(complete.status.conditions?.[0]?.type, 'SuccessCriteriaMet');
  t.deepEqual(complete.writes, ['patch status of Job j', 'patch Pod a']);
});

test('a condition is set once, and its times change with it', (t) => {
  const run = runOverObjects([]);
  const set = (before: batchV1.JobCondition[], status: string, reason?: string, message?: string) =>
    withJobCondition(run, before, {
      type: 'A',
      status,
      ...(reason ? { reason } : {}),
      ...(message ? { message } : {}),
    } as never);
  t.deepEqual(set([], 'False'), []);
  const first = set([], 'True', 'R', 'm');
  t.like(first[0], {
    status: 'True',
    reason: 'R',
    message: 'm',
    lastTransitionTime: formatTime(new Date(run.clock.now())),
  });
  run.clock.advance(5000);
  t.deepEqual(set(first, 'True', 'R', 'm'), first);
  for (const changed of [set(first, 'False', 'R', 'm'), set(first, 'True', 'S', 'm'), set(first, 'True', 'R', 'n')])
    t.is(changed[0]?.lastTransitionTime, formatTime(new Date(run.clock.now())));
});

test('a finished job is deleted when its time to live is over, unless the stored one lives longer', async (t) => {
  const ended = (ttl: number | undefined, seconds: number, condition = 'Complete', status = 'True') => {
    const lastTransitionTime = formatTime(new Date(runOverObjects([]).clock.now() - seconds * 1000));
    const spec = ttl === undefined ? {} : { ttlSecondsAfterFinished: ttl };
    return job(spec, { conditions: [{ type: condition, status, lastTransitionTime }] });
  };
  const outcome = async (copy: Job, stored = copy) => {
    const { client, writes } = recordedWrites((request) => {
      if (request.startsWith('get')) return stored;
      return undefined;
    });
    const result = await ttlAfterFinishedController.reconcile(copy as never, runOverObjects([], client));
    return [writes.join(), result?.againAfterMs === undefined ? undefined : Math.ceil(result.againAfterMs / 1000)];
  };
  t.deepEqual(await outcome(ended(10, 20)), ['delete Job j', undefined]);
  t.deepEqual(await outcome(ended(10, 20, 'Failed')), ['delete Job j', undefined]);
  t.deepEqual(await outcome(ended(30, 20)), ['', 10]);
  t.deepEqual(await outcome(ended(10, 20), ended(30, 20)), ['', 10]);
  t.deepEqual(await outcome(ended(10, 20), ended(undefined, 20)), ['', undefined]);
  t.deepEqual(await outcome(ended(undefined, 20)), ['', undefined]);
  t.deepEqual(await outcome(ended(10, 20, 'Suspended')), ['', undefined]);
  t.deepEqual(await outcome(ended(10, 20, 'Complete', 'False')), ['', undefined]);
  const failing = (failure: Error) =>
    ttlAfterFinishedController.reconcile(
      ended(0, 20) as never,
      runOverObjects(
        [],
        recordedWrites(() => {
          throw failure;
        }).client,
      ),
    );
  await t.notThrowsAsync(async () =>
    failing(statusErrors.notFound({ group: 'batch', resource: 'jobs' } as never, 'j')),
  );
  await t.throwsAsync(async () => failing(new Error('no')), { message: 'no' });
});

test('pods keep the finalizer only while their job will count them', async (t) => {
  const complete = { conditions: [{ type: 'Complete', status: 'True' }] };
  const isReleased = async (of: Pod, ...jobs: Job[]) => {
    const { client, writes } = recordedWrites();
    await jobOrphanPods.reconcile(of as never, runOverObjects([[Job, jobs]], client));
    return writes.length > 0;
  };
  t.false(await isReleased(pod('a'), job()));
  t.true(await isReleased(pod('a'), job({}, complete)));
  t.true(await isReleased(pod('a')));
  t.true(await isReleased(pod('a'), job({}, {}, { uid: 'another' })));
  t.true(await isReleased(pod('a', { owner: null }), job()));
  t.false(await isReleased(pod('a', { tracked: false })));
  t.false(await isReleased(pod('a'), job({ managedBy: 'example.com/other' }, complete)));
  t.false(
    await isReleased(
      pod('a', { owner: { apiVersion: 'example.com/v1', kind: 'Job', name: 'j', uid: 'x', controller: true } }),
    ),
  );
  t.deepEqual(
    [undefined, 'kubernetes.io/job-controller', 'example.com/x'].map((name) =>
      isManagedByOther(job(name === undefined ? {} : { managedBy: name })),
    ),
    [...[false, false, true]],
  );
});
