import test from 'ava';
import { CronJob, Job, nextTime, parseSchedule } from '../src/index.ts';
import { container } from './helpers/manifests.ts';
import { create, defaulted, now, row, update, updateStatus } from './helpers/writes.ts';

const pods = (spec: Record<string, unknown> = {}) => ({
  spec: { containers: [container], restartPolicy: 'Never', ...spec },
});
const job = (spec: Record<string, unknown> = {}, metadata: Record<string, unknown> = {}) => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: 'pi', namespace: 'default', uid: 'u1', ...metadata },
  spec: { template: pods(), ...spec },
});
const indexed = (spec: Record<string, unknown>) => ({ completionMode: 'Indexed', completions: 5, ...spec });
const rule = (fields: Record<string, unknown>) => ({ podFailurePolicy: { rules: [{ action: 'FailJob', ...fields }] } });
const at = 'spec.podFailurePolicy.rules[0]';

test('defaults of a Job', (t) => {
  t.like(defaulted(Job, job()).spec, {
    parallelism: 1,
    completions: 1,
    backoffLimit: 6,
    completionMode: 'NonIndexed',
    suspend: false,
    manualSelector: false,
    podReplacementPolicy: 'TerminatingOrFailed',
  });
  const { spec } = defaulted(
    Job,
    job({ parallelism: 3, backoffLimitPerIndex: 1, ...rule({ onPodConditions: [{ type: 'a' }] }) }),
  );
  t.is(spec.completions, undefined);
  t.is(spec.backoffLimit, 2147483647);
  t.is(spec.podReplacementPolicy, 'Failed');
  t.deepEqual(spec.podFailurePolicy?.rules[0]?.onPodConditions, [{ type: 'a', status: 'True' }]);
  const labelled = defaulted(Job, job({ template: { ...pods(), metadata: { labels: { app: 'a' } } } }));
  t.deepEqual(labelled.metadata?.labels, { app: 'a' });
});

test('the server generates labels and selector of a Job', (t) => {
  const { object, messages } = create(Job, job());
  t.deepEqual(messages, []);
  t.deepEqual(object.spec.template.metadata?.labels, {
    'controller-uid': 'u1',
    'job-name': 'pi',
    'batch.kubernetes.io/controller-uid': 'u1',
    'batch.kubernetes.io/job-name': 'pi',
  });
  t.deepEqual(object.spec.selector, { matchLabels: { 'batch.kubernetes.io/controller-uid': 'u1' } });
  const own = create(Job, job({ template: { ...pods(), metadata: { labels: { 'job-name': 'e' } } } }));
  t.deepEqual(own.causes, ['spec.template.metadata.labels[job-name] Invalid']);
  const manual = { manualSelector: true, selector: { matchLabels: { app: 'a' } } };
  const template = { ...pods(), metadata: { labels: { app: 'a' } } };
  t.deepEqual(create(Job, job({ ...manual, template })).object.spec.template.metadata?.labels, { app: 'a' });
  t.deepEqual(create(Job, job({ ...manual })).messages, [
    'spec.template.metadata.labels: Invalid value: {}: `selector` does not match template `labels`',
  ]);
  t.deepEqual(create(Job, job({ manualSelector: true })).messages, ['spec.selector: Required value']);
  t.deepEqual(create(Job, job({ selector: { matchLabels: { app: 'a' } } })).messages, [
    'spec.selector: Invalid value: {"matchLabels":{"batch.kubernetes.io/controller-uid":"u1","app":"a"}}: ' +
      '`selector` not auto-generated',
    'spec.template.metadata.labels: Invalid value: {"controller-uid":"u1","job-name":"pi",' +
      '"batch.kubernetes.io/controller-uid":"u1","batch.kubernetes.io/job-name":"pi"}: ' +
      '`selector` does not match template `labels`',
  ]);
});

test('a new Job without labels has those of its template, the generated ones included; a Job with labels keeps them', (t) => {
  const labels = (own: Record<string, string> | undefined, template: Record<string, string> | undefined, spec = {}) => {
    const manifest = job({ ...spec, template: { ...pods(), ...(template ? { metadata: { labels: template } } : {}) } });
    const metadata = { ...manifest.metadata, ...(own ? { labels: own } : {}) };
    return create(Job, { ...manifest, metadata }).object.metadata?.labels;
  };
  const generated = {
    'controller-uid': 'u1',
    'job-name': 'pi',
    'batch.kubernetes.io/controller-uid': 'u1',
    'batch.kubernetes.io/job-name': 'pi',
  };
  t.deepEqual(labels(undefined, undefined), generated);
  t.deepEqual(labels(undefined, { app: 'a' }), { ...generated, app: 'a' });
  t.deepEqual(labels({ app: 'a' }, { app: 'a' }), { app: 'a' });
  const manual = { manualSelector: true, selector: { matchLabels: { app: 'a' } } };
  t.deepEqual(labels(undefined, { app: 'a' }, manual), { app: 'a' });
});

const requires = 'requires indexed completion mode';
for (const [title, spec, messages] of [
  [
    'a restart policy of services',
    { template: pods({ restartPolicy: 'Always' }) },
    ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
  ],
  [
    'negative numbers',
    { parallelism: -1, completions: -1 },
    [
      'spec.parallelism: Invalid value: -1: must be greater than or equal to 0',
      'spec.completions: Invalid value: -1: must be greater than or equal to 0',
    ],
  ],
  [
    'indexes',
    indexed({
      backoffLimitPerIndex: 1,
      maxFailedIndexes: 2,
      successPolicy: { rules: [{ succeededIndexes: '0,2-4', succeededCount: 2 }] },
    }),
    [],
  ],
  [
    'an unknown mode',
    { completionMode: 'Some' },
    ['spec.completionMode: Unsupported value: "Some": supported values: "NonIndexed", "Indexed"'],
  ],
  [
    'indexes without number',
    { completionMode: 'Indexed', parallelism: 2 },
    ['spec.completions: Required value: when completion mode is Indexed'],
  ],
  [
    'limits of indexes without indexes',
    { backoffLimitPerIndex: 1, maxFailedIndexes: 1 },
    [
      `spec.backoffLimitPerIndex: Invalid value: 1: ${requires}`,
      `spec.maxFailedIndexes: Invalid value: 1: ${requires}`,
    ],
  ],
  [
    'too many failed indexes',
    indexed({ maxFailedIndexes: 6 }),
    [
      'spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified',
      'spec.maxFailedIndexes: Invalid value: 6: must be less than or equal to completions',
    ],
  ],
  [
    'many completions',
    indexed({ completions: 100_001, parallelism: 10_001, backoffLimitPerIndex: 1 }),
    [
      'spec.maxFailedIndexes: Required value: must be specified when completions is above 100000',
      'spec.parallelism: Invalid value: 10001: must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index',
    ],
  ],
  [
    'a success policy without indexes',
    { successPolicy: { rules: [{ succeededCount: 1 }] } },
    [`spec.successPolicy: Invalid value: {"rules":[{"succeededCount":1}]}: ${requires}`],
  ],
  [
    'an empty success policy',
    indexed({ successPolicy: { rules: [] } }),
    [
      'spec.successPolicy.rules: Required value: at least one rules must be specified when the successPolicy is specified',
    ],
  ],
  [
    'success rules out of range',
    indexed({
      successPolicy: {
        rules: [{}, { succeededIndexes: '3-1' }, { succeededIndexes: '0-1', succeededCount: 3 }, { succeededCount: 9 }],
      },
    }),
    [
      'spec.successPolicy.rules[0]: Required value: at least one of succeededCount or succeededIndexes must be specified',
      'spec.successPolicy.rules[1].succeededIndexes: Invalid value: "3-1": error parsing succeededIndexes: non-increasing order, previous: 3, current: 1',
      'spec.successPolicy.rules[2].succeededCount: Invalid value: 3: must be less than or equal to 2 (the number of indexes in the specified succeededIndexes field)',
      'spec.successPolicy.rules[3].succeededCount: Invalid value: 9: must be less than or equal to 5 (the number of specified completions)',
    ],
  ],
  [
    'a rule without condition',
    rule({}),
    [`${at}: Invalid value: specifying one of OnExitCodes and OnPodConditions is required`],
  ],
  [
    'an unknown action',
    rule({ action: 'Retry', onPodConditions: [{ type: 'a' }] }),
    [`${at}.action: Unsupported value: "Retry": supported values: "Count", "FailIndex", "FailJob", "Ignore"`],
  ],
  [
    'no action',
    rule({ action: '', onPodConditions: [{ type: 'a' }] }),
    [`${at}.action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]`],
  ],
  [
    'an action of indexes',
    rule({ action: 'FailIndex', onPodConditions: [{ type: 'a' }] }),
    [`${at}.action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set`],
  ],
  [
    'contradicting exit codes',
    rule({ onExitCodes: { operator: 'In', containerName: 'x', values: [3, 0, 3] } }),
    [
      `${at}.onExitCodes.containerName: Invalid value: "x": must be one of the container or initContainer names in the pod template`,
      `${at}.onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In operator`,
      `${at}.onExitCodes.values[2]: Duplicate value: 3`,
      `${at}.onExitCodes.values: Invalid value: [3,0,3]: must be ordered`,
    ],
  ],
  [
    'a policy for restarted containers',
    { ...rule({ onPodConditions: [{ type: 'a' }] }), template: pods({ restartPolicy: 'OnFailure' }) },
    [
      'spec.template.spec.restartPolicy: Invalid value: "OnFailure": only "Never" is supported when podFailurePolicy is specified',
    ],
  ],
  [
    'a replacement against the policy',
    { ...rule({ onPodConditions: [{ type: 'a' }] }), podReplacementPolicy: 'TerminatingOrFailed' },
    ['spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed"'],
  ],
  ['another controller', { managedBy: 'example.com/queue' }, []],
  [
    'a controller without domain',
    { managedBy: 'queue' },
    ['spec.managedBy: Invalid value: "queue": must be a domain-prefixed path (such as "acme.io/foo")'],
  ],
] as readonly [string, Record<string, unknown>, readonly string[]][]) {
  test(`Job with ${title}`, (t) => {
    t.deepEqual(create(Job, job(spec)).messages, messages);
  });
}

test('the name of an indexed Job leaves room for the index', (t) => {
  const name = 'a'.repeat(62);
  t.deepEqual(create(Job, job(indexed({}), { name })).messages, [
    `metadata.name: Invalid value: "${name}": will not able to create pod with invalid DNS label: ${name}-4`,
  ]);
});

test('the template of a Job is immutable, unless it is suspended and was never started', (t) => {
  const running = create(Job, job()).object;
  const select = (object: typeof running) => {
    object.spec.template.spec.nodeSelector = { disk: 'ssd' };
  };
  t.deepEqual(update(Job, running, select).causes, ['spec.template Invalid']);
  const waiting = create(Job, job({ suspend: true })).object;
  t.deepEqual(update(Job, waiting, select).causes, []);
  const affinity = update(Job, waiting, (object) => {
    const term = { matchExpressions: [{ key: 'disk', operator: 'Exists' }] };
    object.spec.template.spec.affinity = {
      nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } },
    };
  });
  t.deepEqual(affinity.causes, []);
  const image = (object: typeof running) => {
    object.spec.template.spec.containers[0]!.image = 'b';
  };
  t.deepEqual(update(Job, waiting, image).causes, ['spec.template Invalid']);
  waiting.status = { startTime: '2026-01-01T00:00:00Z' };
  t.deepEqual(update(Job, waiting, select).causes, ['spec.template Invalid']);
});

test('completions change with the parallelism of an indexed Job only', (t) => {
  const plain = create(Job, job()).object;
  const grow = (object: typeof plain) => {
    object.spec.completions = 7;
  };
  t.deepEqual(update(Job, plain, grow).messages, ['spec.completions: Invalid value: 7: field is immutable']);
  const { object } = create(Job, job(indexed({ parallelism: 5 })));
  t.deepEqual(update(Job, object, grow).messages, [
    'spec.completions: Invalid value: 7: can only be modified in tandem with spec.parallelism',
  ]);
  const both = update(Job, object, ({ spec }) => {
    spec.completions = 7;
    spec.parallelism = 7;
    spec.suspend = true;
    spec.ttlSecondsAfterFinished = 5;
  });
  t.deepEqual(both.messages, []);
});

const condition = (type: string, status = 'True') => ({ type, status });
const start = '2026-01-01T00:00:00Z';
const end = '2026-01-01T00:01:05Z';
const complete = [condition('SuccessCriteriaMet'), condition('Complete')];
const reject = (detail: string) => `status.conditions: Invalid value: ${detail}`;
for (const [title, status, messages] of [
  ['progress', { startTime: start, active: 1, ready: 1, uncountedTerminatedPods: { succeeded: ['a'] } }, []],
  ['success', { startTime: start, completionTime: end, succeeded: 1, conditions: complete }, []],
  ['failure', { startTime: start, failed: 1, conditions: [condition('FailureTarget'), condition('Failed')] }, []],
  [
    'success without criteria',
    { startTime: start, completionTime: end, conditions: [condition('Complete')] },
    [reject('cannot set Complete=True condition without the SuccessCriteriaMet=true condition')],
  ],
  [
    'failure without target',
    { startTime: start, conditions: [condition('Failed')] },
    [reject('cannot set Failed=True condition without the FailureTarget=true condition')],
  ],
  [
    'success without times',
    { conditions: complete },
    [
      'status.completionTime: Required value: completionTime is required for Complete jobs',
      'status.startTime: Required value: startTime is required for finished job',
    ],
  ],
  [
    'an end without success',
    { startTime: start, completionTime: end },
    [
      `status.completionTime: Invalid value: "${end}": cannot set completionTime when there is no Complete=True condition`,
    ],
  ],
  [
    'an end before the start',
    { startTime: end, completionTime: start, conditions: complete },
    [`status.completionTime: Invalid value: "${start}": must be equal to or after \`startTime\``],
  ],
  [
    'pods after the end',
    {
      startTime: start,
      completionTime: end,
      conditions: complete,
      active: 1,
      terminating: 1,
      uncountedTerminatedPods: { failed: ['a'] },
    },
    [
      'status.active: Invalid value: 1: active>0 is invalid for finished job',
      'status.uncountedTerminatedPods: Invalid value: {"failed":["a"]}: must be empty for finished job',
      'status.terminating: Invalid value: 1: terminating>0 is invalid for finished job',
    ],
  ],
  [
    'more ready pods than active ones',
    { active: 1, ready: 2 },
    ['status.ready: Invalid value: 2: cannot set more ready pods than active'],
  ],
  [
    'a pod twice',
    { uncountedTerminatedPods: { succeeded: ['a', ''], failed: ['a'] } },
    [
      'status.uncountedTerminatedPods.succeeded[1]: Invalid value: "": must not be empty',
      'status.uncountedTerminatedPods.failed[0]: Duplicate value: "a"',
    ],
  ],
  [
    'indexes',
    { completedIndexes: '0' },
    [
      'status.completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed completion mode',
    ],
  ],
  [
    'failed indexes',
    { failedIndexes: '0' },
    ['status.failedIndexes: Invalid value: "0": cannot set non-null failedIndexes when backoffLimitPerIndex is null'],
  ],
] as readonly [string, Record<string, unknown>, readonly string[]][]) {
  test(`status of a Job with ${title}`, (t) => {
    const old = create(Job, job()).object;
    const written = updateStatus(Job, old, (object) => {
      object.status = status;
    });
    t.deepEqual(written.messages, messages);
  });
}

test('the status of an indexed Job has valid indexes', (t) => {
  const old = create(Job, job(indexed({ backoffLimitPerIndex: 1 }))).object;
  const write = (completedIndexes: string, failedIndexes: string) =>
    updateStatus(Job, old, (object) => {
      object.status = { completedIndexes, failedIndexes };
    }).messages;
  t.deepEqual(write('0,2-3', '1,4'), []);
  t.deepEqual(write('0-2', '1'), [
    'status.failedIndexes: Invalid value: "1": failedIndexes and completedIndexes overlap at index: 1',
  ]);
  t.deepEqual(write('5', 'x'), [
    'status.completedIndexes: Invalid value: "5": error parsing completedIndexes: too large index: "5"',
    'status.failedIndexes: Invalid value: "x": error parsing failedIndexes: cannot convert string to integer for index: "x"',
  ]);
});

test('the conditions and counters of a finished Job are final', (t) => {
  const { object } = create(Job, job());
  object.status = { startTime: start, completionTime: end, succeeded: 1, failed: 1, conditions: complete };
  const undone = updateStatus(Job, object, (next) => {
    next.status = { startTime: start, succeeded: 0, failed: 0 };
  });
  t.deepEqual(undone.messages, [
    reject('cannot disable the terminal Complete=True condition'),
    reject('cannot disable the SuccessCriteriaMet=True condition'),
    'status.failed: Invalid value: 0: cannot decrease the failed counter',
    'status.succeeded: Invalid value: 0: cannot decrease the succeeded counter',
  ]);
});

test('rows of jobs', (t) => {
  const { object } = create(Job, job({ completions: 3, parallelism: 2 }));
  t.deepEqual(row(Job, object), {
    Name: 'pi',
    Status: 'Running',
    Completions: '0/3',
    Duration: '',
    Age: '<unknown>',
    Containers: 'app',
    Images: 'nginx:1.25',
    Selector: 'batch.kubernetes.io/controller-uid=u1',
  });
  object.status = { startTime: start, completionTime: end, succeeded: 3, conditions: complete };
  t.like(row(Job, object), { Status: 'Complete', Completions: '3/3', Duration: '65s' });
  object.status = { startTime: start, conditions: [condition('Suspended')] };
  t.like(row(Job, object), { Status: 'Suspended', Duration: '36h' });
  t.is(row(Job, create(Job, job({ parallelism: 4 })).object)['Completions'], '0/1 of 4');
  t.is(Job.selectableFields.get('status.successful')?.({ ...object, status: { succeeded: 2 } }), '2');
});

const cron = (spec: Record<string, unknown> = {}, metadata: Record<string, unknown> = {}) => ({
  apiVersion: 'batch/v1',
  kind: 'CronJob',
  metadata: { name: 'report', namespace: 'default', ...metadata },
  spec: { schedule: '*/5 * * * *', jobTemplate: { spec: { template: pods() } }, ...spec },
});
const explicit = 'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones';
for (const [title, spec, messages] of [
  ['a time zone', { timeZone: 'Europe/Berlin' }, []],
  [
    'an unknown time zone',
    { timeZone: 'Europe/Atlantis' },
    ['spec.timeZone: Invalid value: "Europe/Atlantis": unknown time zone Europe/Atlantis'],
  ],
  [
    'a time zone in the wrong case',
    { timeZone: 'europe/berlin' },
    ['spec.timeZone: Invalid value: "europe/berlin": unknown time zone europe/berlin'],
  ],
  ['the local time zone', { timeZone: 'Local' }, [`spec.timeZone: Invalid value: "Local": ${explicit}`]],
  [
    'an empty time zone',
    { timeZone: '' },
    ['spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string'],
  ],
  ['no schedule', { schedule: '' }, ['spec.schedule: Required value']],
  [
    'four fields',
    { schedule: '* * * *' },
    ['spec.schedule: Invalid value: "* * * *": expected exactly 5 fields, found 4: [* * * *]'],
  ],
  [
    'a time zone in the schedule',
    { schedule: 'TZ=UTC 0 * * * *' },
    [
      'spec.schedule: Invalid value: "TZ=UTC 0 * * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field instead',
    ],
  ],
  [
    'an unknown policy',
    { concurrencyPolicy: 'Queue' },
    ['spec.concurrencyPolicy: Unsupported value: "Queue": supported values: "Allow", "Forbid", "Replace"'],
  ],
  [
    'a selector',
    { jobTemplate: { spec: { template: pods(), selector: { matchLabels: { a: 'b' } }, manualSelector: true } } },
    [
      'spec.jobTemplate.spec.selector: Invalid value: {"matchLabels":{"a":"b"}}: `selector` will be auto-generated',
      'spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false"',
    ],
  ],
  [
    'negative numbers',
    { startingDeadlineSeconds: -1, failedJobsHistoryLimit: -1 },
    [
      'spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0',
      'spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0',
    ],
  ],
] as readonly [string, Record<string, unknown>, readonly string[]][]) {
  test(`CronJob with ${title}`, (t) => {
    t.deepEqual(create(CronJob, cron(spec)).messages, messages);
  });
}

test('defaults, name and row of a CronJob', (t) => {
  const { object } = create(CronJob, cron());
  t.like(object.spec, {
    concurrencyPolicy: 'Allow',
    suspend: false,
    successfulJobsHistoryLimit: 3,
    failedJobsHistoryLimit: 1,
  });
  t.is(object.spec.jobTemplate.spec.completions, undefined);
  t.is(object.spec.jobTemplate.spec.template.spec.dnsPolicy, 'ClusterFirst');
  const long = 'a'.repeat(53);
  t.deepEqual(create(CronJob, cron({}, { name: long })).messages, [
    `metadata.name: Invalid value: "${long}": must be no more than 52 characters`,
  ]);
  object.status = { active: [{ name: 'report-1' }], lastScheduleTime: '2026-01-02T11:59:00Z' };
  t.deepEqual(row(CronJob, object), {
    Name: 'report',
    Schedule: '*/5 * * * *',
    Timezone: '<none>',
    Suspend: 'False',
    Active: 1,
    'Last Schedule': '60s',
    Age: '<unknown>',
    Containers: 'app',
    Images: 'nginx:1.25',
    Selector: '<none>',
  });
});

// Texts and times are those of robfig/cron 3.0.1, which Kubernetes uses.
for (const [text, message] of [
  ['* * * * * *', 'expected exactly 5 fields, found 6: [* * * * * *]'],
  ['60 * * * *', 'end of range (60) above maximum (59): 60'],
  ['* * 0 * *', 'beginning of range (0) below minimum (1): 0'],
  ['5-1 * * * *', 'beginning of range (5) beyond end of range (1): 5-1'],
  ['1-2-3 * * * *', 'too many hyphens: 1-2-3'],
  ['1/2/3 * * * *', 'too many slashes: 1/2/3'],
  ['*/0 * * * *', 'step of range should be a positive number: */0'],
  ['*/-1 * * * *', 'negative number (-1) not allowed: -1'],
  ['a * * * *', 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'],
  [
    '99999999999999999999 * * * *',
    'failed to parse int from 99999999999999999999: strconv.Atoi: parsing "99999999999999999999": value out of range',
  ],
  ['* * L * *', 'failed to parse int from L: strconv.Atoi: parsing "L": invalid syntax'],
  ['@never', 'unrecognized descriptor: @never'],
  ['@every x', 'failed to parse duration @every x: time: invalid duration "x"'],
] as const) {
  test(`${text} is not a valid schedule`, (t) => {
    t.is(t.throws(() => parseSchedule(text)).message, message);
  });
}

for (const [text, zone, after, times] of [
  ['5/20 9-17/4 * jan-mar MON,wed', 'UTC', '2026-01-01T00:00:00Z', ['2026-01-05T09:05:00Z', '2026-01-05T09:25:00Z']],
  [
    '0 0 13 * 5',
    'UTC',
    '2026-01-01T00:00:00Z',
    ['2026-01-02T00:00:00Z', '2026-01-09T00:00:00Z', '2026-01-13T00:00:00Z'],
  ],
  ['0 0 13 * ?', 'UTC', '2026-01-01T00:00:00Z', ['2026-01-13T00:00:00Z', '2026-02-13T00:00:00Z']],
  ['0 0 29 2 *', 'UTC', '2026-01-01T00:00:00Z', ['2028-02-29T00:00:00Z']],
  ['0 0 30 2 *', 'UTC', '2026-01-01T00:00:00Z', [undefined]],
  [', * * * *', 'UTC', '2026-01-01T00:00:00Z', [undefined]],
  ['@every 1500ms', 'UTC', '2026-01-01T00:00:00.700Z', ['2026-01-01T00:00:01Z']],
  ['@monthly', 'Asia/Kathmandu', '2026-01-10T00:00:00Z', ['2026-01-31T18:15:00Z']],
  ['30 2 * * *', 'America/New_York', '2026-03-07T23:10:30Z', ['2026-03-09T06:30:00Z', '2026-03-10T06:30:00Z']],
  [
    '15,45 1 * * *',
    'Europe/Berlin',
    '2026-10-24T20:00:00Z',
    ['2026-10-24T23:15:00Z', '2026-10-24T23:45:00Z', '2026-10-26T00:15:00Z'],
  ],
  [
    '0 2 * * *',
    'Europe/Berlin',
    '2026-10-24T20:00:00Z',
    ['2026-10-25T00:00:00Z', '2026-10-25T01:00:00Z', '2026-10-26T01:00:00Z'],
  ],
  ['0 0 * * *', 'America/Sao_Paulo', '2018-11-03T12:00:00Z', ['2018-11-05T02:00:00Z']],
] as const) {
  test(`${text} in ${zone} after ${after}`, (t) => {
    const schedule = parseSchedule(text);
    let last: Date | undefined = new Date(after);
    for (const time of times) {
      last = nextTime(schedule, last ?? now, zone);
      t.is(last?.toISOString().replace('.000', ''), time);
    }
  });
}
