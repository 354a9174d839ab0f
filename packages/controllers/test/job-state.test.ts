import type { batchV1, Job, Pod } from '@keelson/kinds';
import test from 'ava';
import { failureDecision } from '../src/job/failure-policy.ts';
import { IndexSet } from '../src/job/index-set.ts';
import { allFailures, endedAt, indexOf, isFailed, jobPod } from '../src/job/job-pods.ts';
import { JobState } from '../src/job/job-state.ts';
import { afterEnds, pauseAfter } from '../src/job/pod-backoff.ts';

const finalizer = 'batch.kubernetes.io/job-tracking';
const indexAnnotation = 'batch.kubernetes.io/job-completion-index';
const failuresAnnotation = 'batch.kubernetes.io/job-index-failure-count';
const ignoredAnnotation = 'batch.kubernetes.io/job-index-ignored-failure-count';
const at = (seconds: number) => new Date(seconds * 1000).toISOString();

function job(spec: Partial<batchV1.JobSpec> = {}, status: Job['status'] = {}): Job {
  const template = { spec: { containers: [{ name: 'main', image: 'i' }] } };
  return { metadata: { name: 'j', namespace: 'default', uid: 'j' }, spec: { template, ...spec }, status } as Job;
}

const indexed = (spec: Partial<batchV1.JobSpec> = {}, status: Job['status'] = {}) =>
  job({ completionMode: 'Indexed', completions: 5, ...spec }, status);

interface PodOptions {
  readonly index?: number | string;
  readonly failures?: number;
  readonly ignored?: number;
  readonly tracked?: boolean;
  readonly status?: object;
  readonly deletionTimestamp?: string;
}

function pod(uid: string, phase: string, options: PodOptions = {}): Pod {
  const { index, failures, ignored, tracked = true, status, deletionTimestamp } = options;
  const annotations = {
    ...(index === undefined ? {} : { [indexAnnotation]: String(index) }),
    ...(failures === undefined ? {} : { [failuresAnnotation]: String(failures) }),
    ...(ignored === undefined ? {} : { [ignoredAnnotation]: String(ignored) }),
  };
  return {
    metadata: {
      ...{ name: uid, namespace: 'default', uid, annotations },
      ...(tracked ? { finalizers: [finalizer] } : {}),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    },
    spec: { containers: [] },
    status: { phase, ...status },
  } as Pod;
}

const exited = (exitCode: number, name = 'main') => ({
  containerStatuses: [{ name, state: { terminated: { exitCode } } }],
});
const rule = (action: string, values: number[], more: object = {}) => ({
  ...{ action, onExitCodes: { operator: 'In', values, ...more } },
});
const policy = (...rules: object[]) => ({ podFailurePolicy: { rules } }) as unknown as Partial<batchV1.JobSpec>;
const verdict = (of: Job, pods: readonly Pod[], now = 0) => {
  const found = new JobState(of, pods).verdict(now);
  return found && `${found.outcome} ${found.reason}: ${found.message}`;
};

test('ended pods are counted once: in the counts, as listed in the status, or as new', (t) => {
  const listed = { succeeded: ['a'], failed: ['b'] };
  const status = { succeeded: 2, failed: 3, uncountedTerminatedPods: listed };
  const pods = [
    pod('a', 'Succeeded'),
    pod('b', 'Failed'),
    pod('c', 'Succeeded'),
    pod('d', 'Failed'),
    pod('e', 'Failed', { status: exited(7) }),
    pod('f', 'Failed', { tracked: false }),
    pod('g', 'Running'),
  ];
  const state = new JobState(job(policy(rule('Ignore', [7])), status), pods);
  t.deepEqual([state.succeeded, state.failed], [4, 5]);
  const uids = (of: readonly Pod[]) => of.map(({ metadata }) => metadata?.uid);
  t.deepEqual([uids(state.newSucceeded), uids(state.newFailed), uids(state.active)], [['c'], ['d', 'e'], ['g']]);
});

test('a pod in deletion counts as failed, unless it has succeeded or only failed ones are replaced', (t) => {
  const deletionTimestamp = at(0);
  t.true(isFailed(pod('a', 'Running', { deletionTimestamp }), job()));
  t.false(isFailed(pod('a', 'Succeeded', { deletionTimestamp }), job()));
  t.false(isFailed(pod('a', 'Running', { deletionTimestamp }), job({ podReplacementPolicy: 'Failed' })));
  t.false(isFailed(pod('a', 'Running', { deletionTimestamp }), job(policy(rule('Count', [1])))));
  t.false(isFailed(pod('a', 'Running'), job()));
});

for (const [title, of, pods, expected, now = 0] of [
  ['continues without failures', job(), [pod('a', 'Running')], undefined],
  ['continues at its back-off limit', job({ backoffLimit: 1 }), [pod('a', 'Failed')], undefined],
  [
    'fails beyond its back-off limit',
    job({ backoffLimit: 1 }, { failed: 1 }),
    [pod('a', 'Failed')],
    'Failed BackoffLimitExceeded: Job has reached the specified backoff limit',
  ],
  ['has a back-off limit of six', job({}, { failed: 6 }), [], undefined],
  [
    'fails after seven failures',
    job({}, { failed: 7 }),
    [],
    'Failed BackoffLimitExceeded: Job has reached the specified backoff limit',
  ],
  ['continues before its deadline', job({ activeDeadlineSeconds: 60 }, { startTime: at(0) }), [], undefined, 59_999],
  [
    'fails at its deadline',
    job({ activeDeadlineSeconds: 60 }, { startTime: at(0) }),
    [],
    'Failed DeadlineExceeded: Job was active longer than specified deadline',
    60_000,
  ],
  [
    'has no deadline while it is suspended',
    job({ activeDeadlineSeconds: 60, suspend: true }, { startTime: at(0) }),
    [],
    undefined,
    90_000,
  ],
  ['has a deadline from now before it starts', job({ activeDeadlineSeconds: 60 }), [], undefined, 90_000],
  [
    'ends as a condition of an earlier run states',
    job({}, { conditions: [{ type: 'SuccessCriteriaMet', status: 'True', reason: 'R', message: 'm' }] }),
    [pod('a', 'Running')],
    'Complete R: m',
  ],
  [
    'fails as a condition of an earlier run states',
    job({}, { conditions: [{ type: 'FailureTarget', status: 'True', reason: 'R', message: 'm' }] }),
    [pod('a', 'Running')],
    'Failed R: m',
  ],
  [
    'continues with false conditions',
    job({}, { conditions: [{ type: 'FailureTarget', status: 'False' }] }),
    [],
    undefined,
  ],
  [
    'fails by a rule of its policy',
    job(policy(rule('Ignore', [1]), rule('FailJob', [42]))),
    [pod('a', 'Failed', { status: exited(1) }), pod('b', 'Failed', { status: exited(42) })],
    'Failed PodFailurePolicy: Container main for pod default/b failed with exit code 42 matching FailJob rule at index 1',
  ],
  [
    'fails by no rule for a running pod',
    job(policy(rule('FailJob', [42]))),
    [pod('b', 'Running', { status: exited(42) })],
    undefined,
  ],
  [
    'continues with as many failed indexes as are permitted',
    indexed({ backoffLimitPerIndex: 0, maxFailedIndexes: 1, backoffLimit: 99 }),
    [pod('a', 'Failed', { index: 0 })],
    undefined,
  ],
  [
    'fails with more failed indexes',
    indexed({ backoffLimitPerIndex: 0, maxFailedIndexes: 1, backoffLimit: 99 }, { failedIndexes: '3' }),
    [pod('a', 'Failed', { index: 0 })],
    'Failed MaxFailedIndexesExceeded: Job has exceeded the specified maximal number of failed indexes',
  ],
  [
    'fails when all indexes have ended and one has failed',
    indexed({ backoffLimitPerIndex: 0, backoffLimit: 99 }, { completedIndexes: '1-4' }),
    [pod('a', 'Failed', { index: 0 })],
    'Failed FailedIndexes: Job has failed indexes',
  ],
  [
    'continues while an index has not ended',
    indexed({ backoffLimitPerIndex: 0, backoffLimit: 99 }, { completedIndexes: '1-3' }),
    [pod('a', 'Failed', { index: 0 })],
    undefined,
  ],
  ['is not failed when all indexes have succeeded', indexed({}, { completedIndexes: '0-4' }), [], undefined],
] as [string, Job, Pod[], string | undefined, number?][]) {
  test(`a job ${title}`, (t) => t.is(verdict(of, pods, now), expected));
}

for (const [title, rules, completed, expected] of [
  ['the count', [{ succeededCount: 2 }], '1,3', 0],
  ['less than the count', [{ succeededCount: 2 }], '1', undefined],
  ['all listed indexes', [{ succeededIndexes: '1,3' }], '1-3', 0],
  ['a part of the listed indexes', [{ succeededIndexes: '1,3' }], '1-2', undefined],
  ['the count of the listed indexes', [{ succeededIndexes: '0-3', succeededCount: 2 }], '1,3-4', 0],
  ['the count, but of other indexes', [{ succeededIndexes: '0-2', succeededCount: 2 }], '1,3-4', undefined],
  ['the second rule', [{ succeededIndexes: '0' }, { succeededIndexes: '4' }], '4', 1],
  ['indexes of no completion', [{ succeededIndexes: '7' }], '4', undefined],
  ['none', [{ succeededCount: 0 }], undefined, undefined],
] as [string, object[], string | undefined, number | undefined][]) {
  test(`success policy: succeeded indexes that are ${title} ${expected === undefined ? 'do not end' : 'end'} the job`, (t) => {
    const of = indexed({ successPolicy: { rules } } as never, completed ? { completedIndexes: completed } : {});
    t.is(
      verdict(of, []),
      expected === undefined ? undefined : `Complete SuccessPolicy: Matched rules at index ${expected}`,
    );
  });
}

test('restarts of containers in place reach the back-off limit, but only with the restart policy OnFailure', (t) => {
  const restarting = (backoffLimit: number, restarts: number, restartPolicy = 'OnFailure', phase = 'Running') => {
    const of = job({ backoffLimit });
    of.spec.template.spec = { containers: [], restartPolicy };
    const counts = [{ name: 'main', restartCount: restarts }];
    const status = { initContainerStatuses: [{ name: 'init', restartCount: 1 }], containerStatuses: counts };
    return verdict(of, [pod('a', phase, { status })]) !== undefined;
  };
  t.true(restarting(3, 2));
  t.false(restarting(4, 2));
  t.true(restarting(3, 2, 'OnFailure', 'Pending'));
  t.false(restarting(3, 2, 'OnFailure', 'Succeeded'));
  t.false(restarting(3, 9, 'Never'));
  t.true(restarting(0, 0), 'one restart of the init container exceeds a limit of 0');
});

test('an index fails beyond its own limit or by FailIndex, unless another pod of it has succeeded', (t) => {
  const spec = { backoffLimitPerIndex: 2, ...policy(rule('FailIndex', [9]), rule('Ignore', [8])) };
  const pods = [
    pod('a', 'Failed', { index: 0, failures: 2 }),
    pod('b', 'Failed', { index: 1, failures: 1 }),
    pod('c', 'Failed', { index: 2, failures: 0, status: exited(9) }),
    pod('d', 'Failed', { index: 3, failures: 5, status: exited(8) }),
    pod('e', 'Failed', { index: 4, failures: 2 }),
    pod('f', 'Succeeded', { index: 4 }),
    pod('g', 'Failed', { index: 7, failures: 2 }),
    pod('h', 'Failed', { index: 1, failures: 2, tracked: false }),
  ];
  const { indexes, awaitingReplacement, succeeded } = new JobState(indexed(spec, { failedIndexes: '1' }), pods);
  t.is(`${indexes?.failed}`, '0-2');
  t.is(`${indexes?.succeeded}`, '4');
  t.is(succeeded, 1);
  t.deepEqual([...awaitingReplacement.keys()], [3]);
});

test('of several failed pods of an index the one with the most failures waits for its replacement', (t) => {
  const spec = { backoffLimitPerIndex: 9 };
  const ended = (seconds: number) => ({
    containerStatuses: [{ name: 'main', state: { terminated: { exitCode: 1, finishedAt: at(seconds) } } }],
  });
  const waiting = (...pods: Pod[]) => new JobState(indexed(spec), pods).awaitingReplacement.get(1)?.metadata?.uid;
  const [a, b] = [pod('a', 'Failed', { index: 1, failures: 1 }), pod('b', 'Failed', { index: 1, ignored: 2 })];
  t.is(waiting(a, b), 'b');
  t.is(waiting(b, a), 'b');
  const late = pod('late', 'Failed', { index: 1, failures: 1, status: ended(20) });
  const early = pod('early', 'Failed', { index: 1, failures: 1, status: ended(10) });
  t.is(waiting(late, early), 'late');
  t.is(waiting(early, late), 'late');
  t.is(waiting(a, pod('new', 'Running', { index: 1 })), undefined);
  t.is(waiting(pod('loose', 'Failed', { index: 1, tracked: false })), undefined);
});

test('the first rule that matches a failed pod decides', (t) => {
  const decision = (rules: object[], status: object) =>
    failureDecision(job(policy(...rules)), pod('p', 'Failed', { status }));
  const conditions = [{ type: 'DisruptionTarget', status: 'True' }];
  const onCondition = (status: string) => ({
    ...{ action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status }] },
  });
  t.is(decision([rule('Count', [1, 2])], exited(3)), undefined);
  t.is(decision([rule('Count', [1, 2])], exited(2))?.action, 'Count');
  t.is(decision([rule('Count', [3], { operator: 'NotIn' })], exited(2))?.action, 'Count');
  t.is(decision([rule('Count', [3], { operator: 'NotIn' })], exited(0)), undefined, 'a success is no failure');
  t.is(decision([rule('Count', [2], { containerName: 'other' })], exited(2)), undefined);
  t.is(decision([rule('Count', [2], { containerName: 'main' })], exited(2))?.action, 'Count');
  const init = { initContainerStatuses: exited(2, 'init').containerStatuses };
  t.regex(decision([rule('FailJob', [2])], init)?.message ?? '', /^Container init for pod default\/p failed /);
  const second = decision([onCondition('False'), onCondition('True')], { conditions });
  t.is(second?.message, 'Pod default/p has condition DisruptionTarget matching Ignore rule at index 1');
  t.is(decision([], exited(1)), undefined);
});

test('the completion index of a pod is a number below the completions', (t) => {
  const of = (index?: string) => indexOf(pod('p', 'Running', index === undefined ? {} : { index }), indexed());
  t.deepEqual([of('0'), of('4'), of('5'), of('-1'), of('x'), of()], [0, 4, undefined, undefined, undefined, undefined]);
  t.is(allFailures(pod('p', 'Failed', { failures: 2, ignored: 3 })), 5);
});

test('a pod has ended when its last container ended, or else when it became unready or its deletion was requested', (t) => {
  const terminated = (name: string, seconds?: number) => ({
    name,
    state: seconds === undefined ? {} : { terminated: { finishedAt: at(seconds) } },
  });
  const ended = (status: object, metadata: object = {}, spec: object = {}) =>
    endedAt({ metadata: { creationTimestamp: at(1), ...metadata }, spec: { containers: [], ...spec }, status } as Pod) /
    1000;
  t.is(ended({ containerStatuses: [terminated('a', 20), terminated('b', 30)] }), 30);
  const unready = [{ type: 'Ready', status: 'False', lastTransitionTime: at(15) }];
  t.is(ended({ containerStatuses: [terminated('a', 20), terminated('b')], conditions: unready }), 15);
  t.is(ended({ conditions: [{ ...unready[0], status: 'True' }] }, { deletionTimestamp: at(50) }), 50);
  t.is(ended({}, { deletionTimestamp: at(50), deletionGracePeriodSeconds: 30 }), 20);
  t.is(ended({}), 1);
  const initContainers = [{ name: 'once' }, { name: 'always', restartPolicy: 'Always' }];
  const initContainerStatuses = [terminated('once', 90), terminated('always', 60)];
  t.is(ended({ containerStatuses: [terminated('a', 20)], initContainerStatuses }, {}, { initContainers }), 60);
});

test('the pause doubles with each failure up to six minutes, and a success resets it', (t) => {
  const pause = (failures: number) => pauseAfter({ failures, lastAt: 0 }, 0) / 1000;
  t.deepEqual([0, 1, 2, 3, 6, 7, 100].map(pause), [0, 10, 20, 40, 320, 360, 360]);
  t.is(pauseAfter({ failures: 1, lastAt: 5000 }, 12_000), 3000);
  t.is(pauseAfter({ failures: 1, lastAt: 5000 }, 20_000), 0);
  const ended = (seconds: number) =>
    pod('p', 'Failed', {
      status: { containerStatuses: [{ name: 'm', state: { terminated: { finishedAt: at(seconds) } } }] },
    });
  const before = { failures: 2, lastAt: 30_000 };
  t.deepEqual(afterEnds(before, [], [ended(40), ended(50)]), { failures: 4, lastAt: 50_000 });
  t.deepEqual(afterEnds(before, [], [ended(20)]), { failures: 3, lastAt: 30_000 });
  t.deepEqual(afterEnds(before, [ended(45)], [ended(40), ended(45), ended(50)]), { failures: 1, lastAt: 50_000 });
  t.deepEqual(afterEnds(undefined, [], []), { failures: 0, lastAt: 0 });
});

test('a pod of an index has it in its name, label, annotation and variables, and continues the counts of failures', (t) => {
  const long = indexed({ backoffLimitPerIndex: 3, ...policy(rule('Ignore', [8])) });
  long.metadata = { ...long.metadata, name: 'n'.repeat(60) };
  long.spec.template.spec = {
    containers: [
      { name: 'a', image: 'i', env: [{ name: 'JOB_COMPLETION_INDEX', value: 'own' }] },
      { name: 'b', image: 'i', env: [{ name: 'X', value: '1' }] },
    ],
    initContainers: [{ name: 'c', image: 'i' }],
  };
  const made = jobPod(long, 12);
  t.is(made.metadata?.generateName, `${'n'.repeat(54)}-12-`);
  t.is(made.metadata?.labels?.[indexAnnotation], '12');
  t.is(made.spec.hostname, `${'n'.repeat(60)}-12`);
  t.deepEqual(made.metadata?.finalizers, [finalizer]);
  const names = [...made.spec.containers, ...(made.spec.initContainers ?? [])].map(({ env = [] }) =>
    env.map(({ name }) => name).join(),
  );
  t.deepEqual(names, ['JOB_COMPLETION_INDEX', 'X,JOB_COMPLETION_INDEX', 'JOB_COMPLETION_INDEX']);
  const counts = (of: Job, replaced?: Pod) => {
    const annotations = jobPod(of, 1, replaced).metadata?.annotations;
    return [annotations?.[failuresAnnotation], annotations?.[ignoredAnnotation]];
  };
  t.deepEqual(counts(long), ['0', undefined]);
  t.deepEqual(counts(long, pod('p', 'Failed', { failures: 1, status: exited(1) })), ['2', undefined]);
  t.deepEqual(counts(long, pod('p', 'Failed', { failures: 1, ignored: 1, status: exited(8) })), ['1', '2']);
  t.deepEqual(counts(indexed()), [undefined, undefined]);
  const plain = jobPod(job());
  t.deepEqual([plain.metadata?.generateName, plain.spec.hostname], ['j-', undefined]);
});

test('index sets are parsed, merged and compared', (t) => {
  const set = IndexSet.parse('1,3-5,x,7-9,12', 9);
  t.is(`${set}`, '1,3-5,7,8');
  t.is(set.size, 6);
  t.deepEqual(
    [0, 1, 2, 3, 5, 6, 8, 9].map((index) => set.has(index)),
    [false, true, false, true, true, false, true, false],
  );
  t.is(`${set.with(IndexSet.of([2, 6, 0]))}`, '0-8');
  t.is(`${IndexSet.parse('0-5,2-3', 9)}`, '0-5');
  t.is(set.countCommon(IndexSet.parse('0-3,5,8', 9)), 4);
  t.is(set.countCommon(IndexSet.of([])), 0);
  t.deepEqual(set.missing(2, 9), [0, 2]);
  t.deepEqual(set.missing(9, 11), [0, 2, 6, 9, 10]);
  t.is(`${IndexSet.parse(undefined, 9)}`, '');
});
