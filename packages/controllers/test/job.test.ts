import { formatTime } from '@keelson/core';
import { type batchV1, type coreV1, Job, Pod } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { workloadControllers } from '../src/index.ts';
import { IndexSet } from '../src/job/index-set.ts';
import { isTracked } from '../src/job/job-pods.ts';
import { runUntilKilled } from './support/killed-controllers.ts';
import { Random, seed } from './support/random.ts';
import { WorkloadPlane, type WorkloadPlaneOptions } from './support/workload-plane.ts';

const open = (t: ExecutionContext, options: Partial<WorkloadPlaneOptions> = {}) =>
  WorkloadPlane.start(t, { controllers: workloadControllers, fateOf: () => 'pending', ...options });

function job(spec: Partial<batchV1.JobSpec> = {}): Job {
  const containers = [{ name: 'main', image: 'app:1' }];
  return { metadata: { name: 'work' }, spec: { template: { spec: { containers, restartPolicy: 'Never' } }, ...spec } };
}

const indexed = (completions: number, spec: Partial<batchV1.JobSpec> = {}) =>
  job({ completions, parallelism: completions, completionMode: 'Indexed', ...spec });
const nameOf = ({ metadata }: Pod) => metadata?.name ?? '';
const indexOf = ({ metadata }: Pod) => Number(metadata?.annotations?.['batch.kubernetes.io/job-completion-index']);

/** Waits for a number of active pods, and returns them by index or name. */
async function pods(workloads: WorkloadPlane, count: number, advanceMs = 0): Promise<Pod[]> {
  const active = await until(async () => {
    if (advanceMs > 0) workloads.clock.advance(advanceMs);
    const found = await workloads.activePods();
    return found.length === count ? found : undefined;
  }, `${count} active pods`);
  return active.sort((a, b) => indexOf(a) - indexOf(b) || (nameOf(a) < nameOf(b) ? -1 : 1));
}

async function end(workloads: WorkloadPlane, pod: Pod | undefined, exitCode = 0, more: coreV1.PodStatus = {}) {
  const finishedAt = formatTime(new Date(workloads.clock.now()));
  const terminated = { exitCode, finishedAt };
  await workloads.setStatus(nameOf(pod as Pod), {
    phase: exitCode === 0 ? 'Succeeded' : 'Failed',
    containerStatuses: [{ name: 'main', ready: false, restartCount: 0, image: '', imageID: '', state: { terminated } }],
    ...more,
  });
}

const finished = (workloads: WorkloadPlane, type: 'Complete' | 'Failed', reason: string, message: string) =>
  workloads.reaches(Job, 'work', ({ status }) => {
    const found = status?.conditions?.find((condition) => condition.type === type && condition.status === 'True');
    return found?.reason === reason && found.message === message;
  });
const exceeded = ['BackoffLimitExceeded', 'Job has reached the specified backoff limit'] as const;
const reached = ['CompletionsReached', 'Reached expected number of succeeded pods'] as const;

test('a job runs at most parallelism pods until the completions are reached', async (t) => {
  const workloads = await open(t);
  await workloads.objects(Job).create(job({ parallelism: 2, completions: 5 }));
  const started = await workloads.reaches(Job, 'work', ({ status }) => status?.active === 2);
  t.like(started.status, { ready: 0, terminating: 0 });
  t.truthy(started.status?.startTime);
  for (let succeeded = 0; succeeded < 5; succeeded += 1) {
    const active = await pods(workloads, Math.min(2, 5 - succeeded));
    t.true(active.every(isTracked));
    await end(workloads, active[0]);
    await workloads.reaches(Job, 'work', ({ status }) => status?.succeeded === succeeded + 1);
  }
  const { status } = await finished(workloads, 'Complete', ...reached);
  t.deepEqual(
    status?.conditions?.map(({ type, status: value, reason }) => [type, value, reason]),
    [
      ['SuccessCriteriaMet', 'True', 'CompletionsReached'],
      ['Complete', 'True', 'CompletionsReached'],
    ],
  );
  t.truthy(status?.completionTime);
  t.is(status?.active, undefined);
  t.is(status?.failed, undefined);
  const all = await workloads.list(Pod);
  t.is(all.length, 5);
  t.false(all.some(isTracked));
  await workloads.recorded('work', 'SuccessfulCreate', /^Created pod: work-\w{5}$/);
  await workloads.recorded('work', 'Completed', /^Job completed$/);
});

test('without completions the success of one pod ends the job when the others have ended', async (t) => {
  const workloads = await open(t);
  await workloads.objects(Job).create(job({ parallelism: 3 }));
  const [first, second, third] = await pods(workloads, 3);
  await end(workloads, first);
  await workloads.reaches(Job, 'work', ({ status }) => status?.succeeded === 1 && status.active === 2);
  await end(workloads, second, 1);
  await end(workloads, third);
  const { status } = await finished(workloads, 'Complete', ...reached);
  t.like(status, { succeeded: 2, failed: 1 });
});

test('pods of an indexed job have their index as annotation, label, variable and host name', async (t) => {
  const workloads = await open(t);
  await workloads.objects(Job).create(indexed(5, { parallelism: 4 }));
  const active = await pods(workloads, 4);
  t.deepEqual(active.map(indexOf), [0, 1, 2, 3]);
  const [, pod] = active;
  t.regex(nameOf(pod as Pod), /^work-1-\w{5}$/);
  t.is(pod?.metadata?.labels?.['batch.kubernetes.io/job-completion-index'], '1');
  t.is(pod?.spec.hostname, 'work-1');
  t.like(pod?.spec.containers[0]?.env?.[0], {
    name: 'JOB_COMPLETION_INDEX',
    valueFrom: { fieldRef: { fieldPath: "metadata.labels['batch.kubernetes.io/job-completion-index']" } },
  });
  for (const at of [0, 2, 3]) await end(workloads, active[at]);
  await workloads.reaches(Job, 'work', ({ status }) => status?.completedIndexes === '0,2,3');
  const [one, four] = await pods(workloads, 2);
  t.is(indexOf(four as Pod), 4);
  await end(workloads, one);
  await workloads.reaches(Job, 'work', ({ status }) => status?.completedIndexes === '0-3' && status.succeeded === 4);
  await end(workloads, four);
  const { status } = await finished(workloads, 'Complete', ...reached);
  t.like(status, { completedIndexes: '0-4', succeeded: 5 });
});

test('a failed pod is replaced after 10 s, the next after 20 s, until the back-off limit', async (t) => {
  const workloads = await open(t);
  await workloads.objects(Job).create(job({ parallelism: 1, completions: 2, backoffLimit: 2 }));
  for (const [failures, pauseMs] of [
    [1, 10_000],
    [2, 20_000],
  ] as const) {
    const [pod] = await pods(workloads, 1);
    await end(workloads, pod, 1);
    await workloads.reaches(Job, 'work', ({ status }) => status?.failed === failures && !status.active);
    const failedAt = workloads.clock.now();
    await pods(workloads, 1, 500);
    const waited = workloads.clock.now() - failedAt;
    // Times of pods are truncated to seconds.
    t.true(waited >= pauseMs - 1000, `${waited} ms`);
  }
  const [pod] = await pods(workloads, 1);
  await end(workloads, pod, 1);
  const { status } = await finished(workloads, 'Failed', ...exceeded);
  t.like(status?.conditions?.[0], { type: 'FailureTarget', status: 'True', reason: 'BackoffLimitExceeded' });
  t.is(status?.failed, 3);
  t.is(status?.completionTime, undefined);
  await workloads.recorded('work', 'BackoffLimitExceeded', /^Job has reached the specified backoff limit$/);
});

test('a job that fails deletes its active pods and counts them, and restarts in place count as failures', async (t) => {
  const workloads = await open(t, { nodeOf: () => 'node' });
  const template = { spec: { containers: [{ name: 'main', image: 'app:1' }], restartPolicy: 'OnFailure' } };
  await workloads.objects(Job).create(job({ parallelism: 3, completions: 3, backoffLimit: 2, template }));
  const [first] = await pods(workloads, 3);
  await workloads.setStatus(nameOf(first as Pod), {
    phase: 'Running',
    containerStatuses: [{ name: 'main', ready: true, restartCount: 2, image: '', imageID: '' }],
  });
  const { status } = await finished(workloads, 'Failed', ...exceeded);
  t.like(status, { failed: 3, terminating: 0 });
  await until(async () => (await workloads.list(Pod)).length === 0);
  await workloads.recorded('work', 'SuccessfulDelete', /^Deleted pod: work-/);
});

test('a job fails at its active deadline', async (t) => {
  const workloads = await open(t);
  await workloads.objects(Job).create(job({ activeDeadlineSeconds: 30 }));
  await pods(workloads, 1);
  const isFailed = (found: Job) => found.status?.conditions?.some(({ type }) => type === 'Failed') === true;
  const before = workloads.clock.now();
  const { status } = await workloads.reaches(Job, 'work', isFailed, { advanceMs: 1000 });
  t.true(workloads.clock.now() - before >= 28_000);
  const condition = status?.conditions?.find(({ type }) => type === 'Failed');
  t.like(condition, { reason: 'DeadlineExceeded', message: 'Job was active longer than specified deadline' });
  await workloads.recorded('work', 'DeadlineExceeded', /^Job was active longer than specified deadline$/);
});

test('a suspended job has no pods, and its pods that are deleted by that are no failures', async (t) => {
  const workloads = await open(t);
  await workloads.objects(Job).create(job({ parallelism: 2, completions: 2, suspend: true }));
  const isSuspended = (value: string) => (found: Job) =>
    found.status?.conditions?.some(({ type, status }) => type === 'Suspended' && status === value) === true;
  const created = await workloads.reaches(Job, 'work', isSuspended('True'));
  t.is(created.status?.startTime, undefined);
  t.is((await workloads.list(Pod)).length, 0);
  await workloads.objects(Job).patch('work', 'merge', { spec: { suspend: false } });
  const resumed = await workloads.reaches(Job, 'work', isSuspended('False'));
  t.truthy(resumed.status?.startTime);
  await pods(workloads, 2);
  await workloads.objects(Job).patch('work', 'merge', { spec: { suspend: true } });
  const again = await workloads.reaches(Job, 'work', (found) => isSuspended('True')(found) && !found.status?.active);
  t.is(again.status?.failed, undefined);
  await until(async () => (await workloads.list(Pod)).length === 0);
  await workloads.recorded('work', 'Suspended', /^Job suspended$/);
  await workloads.recorded('work', 'Resumed', /^Job resumed$/);
});

test('pods that are deleted are counted: ended ones as what they were, others as failed', async (t) => {
  const workloads = await open(t, { nodeOf: () => 'node' });
  await workloads.objects(Job).create(job({ parallelism: 3, completions: 4, backoffLimit: 10 }));
  const [first, second] = await pods(workloads, 3);
  // Before the controllers see the end of the pod, it is already deleted.
  await workloads.stopControllers();
  await end(workloads, first);
  await workloads.objects(Pod).delete(nameOf(first as Pod));
  await workloads.startControllers();
  await workloads.reaches(Job, 'work', ({ status }) => status?.succeeded === 1);
  await workloads.objects(Pod).delete(nameOf(second as Pod));
  await workloads.reaches(Job, 'work', ({ status }) => status?.failed === 1);
  for (const pod of await pods(workloads, 3, 1000)) await end(workloads, pod);
  const { status } = await finished(workloads, 'Complete', ...reached);
  t.like(status, { succeeded: 4, failed: 1 });
});

test('an adopted pod is counted like one that the job created, and a released one no longer waits to be', async (t) => {
  const workloads = await open(t);
  const labels = { app: 'own' };
  const containers = [{ name: 'main', image: 'app:1' }];
  await workloads.objects(Pod).create({ metadata: { name: 'orphan', labels }, spec: { containers } });
  const template = { metadata: { labels }, spec: { containers, restartPolicy: 'Never' } };
  const spec = { manualSelector: true, selector: { matchLabels: labels }, template, parallelism: 2, completions: 2 };
  await workloads.objects(Job).create({ metadata: { name: 'work' }, spec });
  const [first, second] = await pods(workloads, 2);
  const orphan = nameOf(first as Pod) === 'orphan' ? first : second;
  t.is(nameOf(orphan as Pod), 'orphan');
  t.true(isTracked(await workloads.objects(Pod).get('orphan')));
  await workloads.objects(Pod).patch('orphan', 'merge', { metadata: { labels: { app: 'other' } } });
  await until(async () => !isTracked(await workloads.objects(Pod).get('orphan')));
  t.is((await workloads.objects(Pod).get('orphan')).metadata?.ownerReferences, undefined);
  await pods(workloads, 3);
  await workloads.objects(Pod).patch('orphan', 'merge', { metadata: { labels } });
  for (const pod of await pods(workloads, 2)) await end(workloads, pod);
  const { status } = await finished(workloads, 'Complete', ...reached);
  t.is(status?.succeeded, 2);
});

test('with the replacement policy Failed a pod is replaced when it has ended', async (t) => {
  const workloads = await open(t);
  await workloads.objects(Job).create(job({ podReplacementPolicy: 'Failed' }));
  const [pod] = await pods(workloads, 1);
  await workloads.objects(Pod).delete(nameOf(pod as Pod));
  const terminating = await workloads.reaches(Job, 'work', ({ status }) => status?.terminating === 1);
  t.is(terminating.status?.failed, undefined);
  for (let second = 0; second < 60; second += 5) {
    workloads.clock.advance(5000);
    await new Promise((next) => setImmediate(next));
    t.is((await workloads.activePods()).length, 0);
  }
  await end(workloads, pod, 143);
  await workloads.reaches(Job, 'work', ({ status }) => status?.failed === 1 && status.terminating === 0);
  await pods(workloads, 1, 1000);
  t.is((await workloads.list(Pod)).length, 1);
});

test('the pod failure policy fails the job, ignores failures, or counts them', async (t) => {
  const workloads = await open(t);
  const podFailurePolicy = {
    rules: [
      { action: 'FailJob', onExitCodes: { containerName: 'main', operator: 'In', values: [42] } },
      { action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] },
    ],
  };
  await workloads.objects(Job).create(job({ podFailurePolicy, backoffLimit: 1 }));
  for (let ignored = 0; ignored < 3; ignored += 1) {
    const [pod] = await pods(workloads, 1, 5000);
    const conditions = [{ type: 'DisruptionTarget', status: 'True' }];
    await end(workloads, pod, 143, { conditions });
    await workloads.reaches(Job, 'work', ({ status }) => !status?.active);
  }
  const [counted] = await pods(workloads, 1, 5000);
  await end(workloads, counted, 1);
  await workloads.reaches(Job, 'work', ({ status }) => status?.failed === 1);
  const [last] = await pods(workloads, 1, 5000);
  await end(workloads, last, 42);
  const name = nameOf(last as Pod);
  const message = `Container main for pod default/${name} failed with exit code 42 matching FailJob rule at index 0`;
  const { status } = await finished(workloads, 'Failed', 'PodFailurePolicy', message);
  t.is(status?.failed, 2);
});

test('each index has its own back-off limit, and FailIndex fails an index at once', async (t) => {
  const workloads = await open(t);
  const rule = { action: 'FailIndex', onExitCodes: { operator: 'In', values: [7] } };
  const spec = { backoffLimitPerIndex: 1, podFailurePolicy: { rules: [rule] } };
  await workloads.objects(Job).create(indexed(3, spec));
  const active = await pods(workloads, 3);
  await end(workloads, active[0], 1);
  await end(workloads, active[1], 7);
  await end(workloads, active[2]);
  await workloads.reaches(
    Job,
    'work',
    ({ status }) => status?.failedIndexes === '1' && status.completedIndexes === '2',
  );
  const [again] = await pods(workloads, 1, 1000);
  t.is(indexOf(again as Pod), 0);
  t.is(again?.metadata?.annotations?.['batch.kubernetes.io/job-index-failure-count'], '1');
  await end(workloads, again, 1);
  const { status } = await finished(workloads, 'Failed', 'FailedIndexes', 'Job has failed indexes');
  t.like(status, { failed: 3, succeeded: 1, failedIndexes: '0,1', completedIndexes: '2' });
});

test('a success policy ends the job early, without counting the remaining pods as failed', async (t) => {
  const workloads = await open(t);
  const successPolicy = { rules: [{ succeededIndexes: '0,2-3', succeededCount: 2 }] };
  await workloads.objects(Job).create(indexed(4, { successPolicy }));
  const active = await pods(workloads, 4);
  await end(workloads, active[1]);
  await end(workloads, active[2]);
  await workloads.reaches(Job, 'work', ({ status }) => status?.succeeded === 2);
  await end(workloads, active[3]);
  const { status } = await finished(workloads, 'Complete', 'SuccessPolicy', 'Matched rules at index 0');
  t.like(status, { completedIndexes: '1-3', succeeded: 3 });
  t.is(status?.failed, undefined);
});

test('a finished job is deleted after its time to live, and pods of a deleted job do not remain', async (t) => {
  const workloads = await open(t);
  await workloads.objects(Job).create(job({ ttlSecondsAfterFinished: 100 }));
  const [pod] = await pods(workloads, 1);
  await end(workloads, pod);
  await finished(workloads, 'Complete', ...reached);
  const before = workloads.clock.now();
  const isDeleting = ({ metadata }: Job) => metadata?.deletionTimestamp !== undefined;
  const deleted = await workloads.reaches(Job, 'work', isDeleting, { advanceMs: 1000 });
  t.true(workloads.clock.now() - before >= 98_000);
  t.deepEqual(deleted.metadata?.finalizers, ['foregroundDeletion']);

  const other = { ...job(), metadata: { name: 'other' } };
  await workloads.objects(Job).create(other);
  const [orphan] = await pods(workloads, 1);
  await workloads.objects(Job).delete('other', { propagationPolicy: 'Background' });
  await until(async () => !isTracked(await workloads.objects(Pod).get(nameOf(orphan as Pod))));
});

test('a job that another controller manages is left alone', async (t) => {
  const workloads = await open(t);
  await workloads.objects(Job).create({ ...job({ managedBy: 'example.com/queue' }), metadata: { name: 'foreign' } });
  await workloads.objects(Job).create(job());
  await pods(workloads, 1);
  const foreign = await workloads.objects(Job).get('foreign');
  t.deepEqual(foreign.status ?? {}, {});
  t.is((await workloads.list(Pod)).length, 1);
});

test('index sets are formatted as in the status, and find what is missing', (t) => {
  for (const [text, count, missing] of [
    ['', 0, [0, 1, 2]],
    ['0,2', 2, [1, 3, 4]],
    ['0-3,7', 5, [4, 5, 6]],
    ['1,2,4-6', 5, [0, 3, 7]],
  ] as const) {
    const set = IndexSet.parse(text, 10);
    t.is(set.toString(), text);
    t.is(set.size, count);
    t.deepEqual(set.missing(3, 10), [...missing]);
  }
  t.is(IndexSet.parse('3-20', 10).toString(), '3-9');
  t.is(IndexSet.of([5, 1, 2, 3, 1]).toString(), '1-3,5');
  t.is(IndexSet.parse('0-9', 10).missing(3, 10).length, 0);
  t.is(IndexSet.parse('0-5,8', 10).countCommon(IndexSet.parse('4-8', 10)), 3);
});

test('with random ends, deletions and kills the counts are right, and never too many pods are active', async (t) => {
  t.timeout(120_000);
  for (let round = 0; round < 6; round += 1) {
    const roundSeed = seed + round;
    const random = new Random(roundSeed);
    const workloads = await open(t, { nodeOf: () => 'node' });
    const parallelism = 1 + random.below(4);
    const completions = 1 + random.below(8);
    const isIndexed = random.below(2) === 1;
    await workloads.stopControllers();
    const completionMode = isIndexed ? 'Indexed' : 'NonIndexed';
    await workloads.objects(Job).create(job({ parallelism, completions, completionMode, backoffLimit: 1000 }));
    const expected = { succeeded: new Set<string>(), failed: new Set<string>() };
    const what = `seed ${roundSeed}: parallelism ${parallelism}, completions ${completions}, ${completionMode}`;
    const isEnded = async () => {
      const { status } = await workloads.objects(Job).get('work');
      return status?.conditions?.some(({ type }) => type === 'Complete') ?? false;
    };
    /** One random event of a pod, and the check of the invariants. */
    const step = async () => {
      const active = await workloads.activePods();
      t.true(active.length <= parallelism, `${what}: ${active.length} active pods`);
      if (active.length === 0) return;
      const pod = random.pick(active);
      const { uid = '' } = pod.metadata ?? {};
      const choice = random.below(4);
      // The controller may delete the pod at the same time.
      if (choice === 0) await workloads.objects(Pod).delete(nameOf(pod));
      else await end(workloads, pod, choice === 1 ? 1 : 0);
      expected[choice >= 2 ? 'succeeded' : 'failed'].add(uid);
    };
    while (!(await isEnded())) {
      let steps = 1 + random.below(3);
      await runUntilKilled(workloads, random, async () => {
        workloads.clock.advance(4000);
        if (steps > 0) {
          steps -= 1;
          await step();
        }
        return (await isEnded()) || steps === 0;
      });
      await workloads.stopControllers();
    }
    const { status } = await workloads.objects(Job).get('work');
    t.is(status?.succeeded, expected.succeeded.size, `${what}: succeeded`);
    t.is(status?.failed ?? 0, expected.failed.size, `${what}: failed`);
    t.is(status?.succeeded, completions, what);
    t.deepEqual(status?.uncountedTerminatedPods ?? {}, {}, what);
    if (isIndexed) t.is(status?.completedIndexes, IndexSet.parse(`0-${completions - 1}`, completions).toString());
    await workloads.close();
  }
});
