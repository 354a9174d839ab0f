import { formatTime, statusErrors } from '@keelson/core';
import { type batchV1, type CronJob, Job } from '@keelson/kinds';
import test from 'ava';
import { cronJobController } from '../src/cronjob/cron-job-controller.ts';
import { recordedWrites, runOverObjects } from './support/run-over-objects.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
/** The clock of a run begins at this minute. */
const noon = Math.ceil(runOverObjects([]).clock.now() / (24 * hourMs)) * 24 * hourMs + 12 * hourMs;
const at = (ms: number) => formatTime(new Date(ms));

interface Situation {
  readonly spec?: Partial<batchV1.CronJobSpec>;
  readonly status?: CronJob['status'];
  readonly metadata?: CronJob['metadata'];
  readonly jobs?: readonly Job[];
  /** Milliseconds from noon. */
  readonly after?: number;
  /** Fails a request, or returns the answer of a get. */
  readonly answer?: Parameters<typeof recordedWrites>[0];
}

/** One run for a cron job that was created at noon and is due in every hour. */
async function runOf({ spec = {}, status = {}, metadata, jobs = [], after = 0, answer }: Situation) {
  const jobTemplate = { spec: { template: { spec: { containers: [{ name: 'c', image: 'i' }] } } } };
  const cronJob = {
    metadata: {
      ...{ name: 'tick', namespace: 'default', uid: 'tick', resourceVersion: '1', creationTimestamp: at(noon) },
      ...metadata,
    },
    spec: { schedule: '0 * * * *', jobTemplate, ...spec },
    status,
  } as CronJob;
  const { client, writes, bodies } = recordedWrites((request) => {
    const given = answer?.(request);
    return given ?? (request.startsWith('get CronJob') ? cronJob : undefined);
  });
  const run = runOverObjects([[Job, jobs]], client);
  run.clock.advance(noon + after - run.clock.now());
  let error: unknown;
  const result = await cronJobController.reconcile(cronJob as never, run).catch((reason: unknown) => {
    error = reason;
  });
  const last = bodies.at(-1) as CronJob | undefined;
  return {
    again: result?.againAfterMs,
    events: run.events,
    writes: writes.join(', '),
    created: bodies[writes.findIndex((write) => write.startsWith('create'))] as Job | undefined,
    status: writes.at(-1)?.startsWith('patch status') ? last?.status : undefined,
    error: error instanceof Error ? error.message : error,
  };
}

function job(name: string, condition?: string, status: Job['status'] = {}, metadata: Job['metadata'] = {}): Job {
  const conditions = condition === undefined ? [] : [{ type: condition, status: 'True' }];
  const owner = { apiVersion: 'batch/v1', kind: 'CronJob', name: 'tick', uid: 'tick', controller: true };
  return {
    metadata: { name, namespace: 'default', uid: name, ownerReferences: [owner], ...metadata },
    spec: { template: { spec: { containers: [] } } },
    status: { conditions, ...status },
  } as Job;
}

const nameAt = (ms: number) => `tick-${ms / minuteMs}`;
const active = (...names: string[]) => ({
  active: names.map((name) => ({ kind: 'Job', apiVersion: 'batch/v1', namespace: 'default', name, uid: name })),
});

test('the next run is just after the next scheduled time, and at most a day later', async (t) => {
  t.is((await runOf({ after: 20 * minuteMs })).again, 40 * minuteMs + 100);
  t.is((await runOf({ spec: { schedule: '0 0 1 1 *' } })).again, 24 * hourMs);
  t.is((await runOf({ spec: { schedule: '@every 45m' }, after: 50 * minuteMs })).again, 40 * minuteMs + 100);
  t.is((await runOf({ spec: { schedule: '@every 45m' }, after: 5 * minuteMs })).again, 40 * minuteMs + 100);
  t.is((await runOf({ spec: { suspend: true }, after: 2 * hourMs })).again, undefined);
  const deleted = await runOf({ metadata: { deletionTimestamp: at(noon) }, after: 2 * hourMs });
  t.deepEqual([deleted.again, deleted.writes], [undefined, '']);
});

test('a due job is created, and listed with the time for which it was made', async (t) => {
  const found = await runOf({ after: hourMs + 5000 });
  const name = nameAt(noon + hourMs);
  t.is(found.writes, `create Job ${name}, patch status of CronJob tick`);
  t.is(found.created?.metadata?.annotations?.['batch.kubernetes.io/cronjob-scheduled-timestamp'], at(noon + hourMs));
  t.like(found.status, { lastScheduleTime: at(noon + hourMs) });
  t.is(found.status?.active?.[0]?.name, name);
  t.is((await runOf({ after: hourMs - 1 })).writes, '');
  t.is((await runOf({ after: hourMs + 5000, status: { lastScheduleTime: at(noon + hourMs) } })).writes, '');
  const listed = await runOf({ after: hourMs, status: active(name), jobs: [job(name)] });
  t.is(listed.writes, '');
  const stale = await runOf({ after: hourMs, answer: () => ({ metadata: { resourceVersion: '2' } }) });
  t.deepEqual([stale.writes, stale.again], ['', 1000], 'the local copy of the cron job is outdated');
});

for (const [zone, expected] of [
  ['UTC', 'T13:00:00Z'],
  ['Asia/Kolkata', 'T18:30:00+05:30'],
  ['America/St_Johns', /T(09|10):30:00-0[23]:30$/],
] as [string, string | RegExp][]) {
  test(`the scheduled time of a job is in the time zone ${zone}`, async (t) => {
    const { created } = await runOf({ spec: { timeZone: zone, schedule: '*/30 * * * *' }, after: hourMs });
    const text = created?.metadata?.annotations?.['batch.kubernetes.io/cronjob-scheduled-timestamp'] ?? '';
    if (typeof expected === 'string') t.true(text.endsWith(expected), text);
    else t.regex(text, expected);
  });
}

test('a time that is missed by more than the deadline is reported once, and no job is made for it', async (t) => {
  const deadline = (seconds: number) => ({ spec: { startingDeadlineSeconds: seconds } });
  const missed = await runOf({ ...deadline(60), after: hourMs + 5 * minuteMs });
  t.is(missed.writes, '');
  t.regex(
    missed.events.join(),
    /^Warning MissSchedule: Missed scheduled time to start a job: \w+, .* 13:00:00 \+0000$/,
  );
  t.is((await runOf({ ...deadline(301), after: hourMs + 5 * minuteMs })).events.length, 1);
  t.regex((await runOf({ ...deadline(301), after: hourMs + 5 * minuteMs })).writes, /^create Job /);
  t.deepEqual((await runOf({ ...deadline(60), after: 5 * minuteMs })).events, []);
});

test('too many missed times are reported, and only the last one is made up', async (t) => {
  const found = await runOf({ after: 101 * hourMs });
  t.regex(found.events[0] ?? '', /^Warning TooManyMissedTimes: too many missed start times\./);
  t.regex(found.writes, new RegExp(`^create Job ${nameAt(noon + 101 * hourMs)}, patch`));
  t.is((await runOf({ after: 100 * hourMs })).events.length, 1);
});

test('schedules and time zones that cannot be read are reported, and nothing is made', async (t) => {
  const schedule = await runOf({ spec: { schedule: 'x' }, after: 2 * hourMs });
  t.regex(schedule.events.join(), /^Warning UnparseableSchedule: unparseable schedule: "x" : /);
  const zone = await runOf({ spec: { timeZone: 'Nowhere' }, after: 2 * hourMs });
  t.regex(zone.events.join(), /^Warning UnknownTimeZone: invalid timeZone: "Nowhere": /);
  t.deepEqual([schedule.writes, schedule.again, zone.writes, zone.again], ['', undefined, '', undefined]);
});

test('a schedule of dates that do not exist is reported', async (t) => {
  const { events, writes, again } = await runOf({ spec: { schedule: '0 0 31 2 *' }, after: 2 * hourMs });
  t.deepEqual(events, [
    'Warning InvalidSchedule: invalid schedule: 0 0 31 2 * : time difference between two schedules is less than 1 second',
  ]);
  t.deepEqual([writes, again], ['', undefined]);
});

test('Forbid waits for active jobs, and Replace deletes them before it makes another one', async (t) => {
  const jobs = [job('a'), job('b')];
  const situation = (concurrencyPolicy: string) => ({
    ...{ spec: { concurrencyPolicy }, jobs, status: active('a', 'b'), after: hourMs },
    answer: (request: string) => jobs.find(({ metadata }) => request === `get Job ${metadata?.name}`),
  });
  const forbidden = await runOf(situation('Forbid'));
  t.is(forbidden.writes, '');
  t.regex(forbidden.events.join(), /^Normal JobAlreadyActive: /);
  const next = nameAt(noon + hourMs);
  const replaced = await runOf(situation('Replace'));
  t.is(replaced.writes, `delete Job a, delete Job b, create Job ${next}, patch status of CronJob tick`);
  t.deepEqual(
    replaced.status?.active?.map(({ name }) => name),
    [next],
  );
  const allowed = await runOf(situation('Allow'));
  t.is(allowed.status?.active?.length, 3);
});

test('ended jobs leave the list, unknown active ones are reported, and the last success is recorded', async (t) => {
  const completed = (minute: number) => ({ completionTime: at(noon + minute * minuteMs) });
  const found = await runOf({
    jobs: [
      job('done', 'Complete', completed(3)),
      job('earlier', 'Complete', completed(2)),
      job('failed', 'Failed', completed(9)),
      job('forgotten'),
      job('leaving', undefined, {}, { deletionTimestamp: at(noon) }),
      job('listed'),
    ],
    status: { ...active('done', 'failed', 'listed', 'gone', 'hidden'), lastSuccessfulTime: at(noon) },
    answer: (request) => (request === 'get Job hidden' ? job('hidden') : undefined),
  });
  t.deepEqual(found.events, [
    'Normal SawCompletedJob: Saw completed job: done, condition: Complete',
    'Normal SawCompletedJob: Saw completed job: failed, condition: Failed',
    'Warning UnexpectedJob: Saw a job that the controller did not create or forgot: forgotten',
    'Normal MissingJob: Active job went missing: gone',
  ]);
  t.deepEqual(
    found.status?.active?.map(({ name }) => name),
    ['listed', 'hidden'],
  );
  t.is(found.status?.lastSuccessfulTime, at(noon + 3 * minuteMs));
});

test('the jobs beyond the limits of the history are deleted in the order of their start', async (t) => {
  const started = (name: string, condition: string, minute?: number, metadata = {}) =>
    job(name, condition, minute === undefined ? {} : { startTime: at(noon + minute * minuteMs) }, metadata);
  const jobs = [
    started('unknown', 'Complete'),
    started('c', 'Complete', 3),
    started('b', 'Complete', 1),
    started('a', 'Complete', 1),
    started('leaving', 'Complete', 0, { deletionTimestamp: at(noon) }),
    started('f', 'Failed', 0),
    job('running'),
  ];
  const deleted = async (
    successfulJobsHistoryLimit?: number,
    failedJobsHistoryLimit?: number,
    answer?: Situation['answer'],
  ) => {
    const spec = { successfulJobsHistoryLimit, failedJobsHistoryLimit } as Partial<batchV1.CronJobSpec>;
    return runOf({ spec, jobs, status: active('running'), ...(answer ? { answer } : {}) });
  };
  t.is((await deleted(1, 1)).writes.replaceAll('delete Job ', ''), 'a, b, c');
  t.is((await deleted(3, 0)).writes.replaceAll('delete Job ', ''), 'a, f');
  t.is((await deleted()).writes, '');
  t.is((await deleted(4, 1)).writes, '');
  const failed = await deleted(3, 1, () => {
    throw new Error('refused');
  });
  t.is(failed.error, 'refused');
  t.deepEqual(failed.events, ['Warning FailedDelete: Deleted job: refused']);
  const gone = await deleted(3, 1, (request) => {
    if (request.startsWith('delete')) throw statusErrors.notFound({ group: 'batch', resource: 'jobs' } as never, 'a');
    return undefined;
  });
  t.deepEqual([gone.error, gone.events[0]], [undefined, 'Normal SuccessfulDelete: Deleted job a']);
});

test('a failed creation is reported; a job of an earlier run is adopted, one of another owner is not', async (t) => {
  const refused = await runOf({
    after: hourMs,
    answer: (request) => {
      if (request.startsWith('create')) throw new Error('exceeded quota');
      return undefined;
    },
  });
  t.is(refused.error, 'exceeded quota');
  t.deepEqual(refused.events, ['Warning FailedCreate: Error creating job: exceeded quota']);
  t.is(refused.writes, '');
  const taken = (existing: Job) =>
    runOf({
      after: hourMs,
      answer: (request) => {
        if (request.startsWith('create'))
          throw statusErrors.alreadyExists({ group: 'batch', resource: 'jobs' } as never, 'x');
        return request.startsWith('get Job') ? existing : undefined;
      },
    });
  const adopted = await taken(job(nameAt(noon + hourMs)));
  t.is(adopted.status?.active?.[0]?.name, nameAt(noon + hourMs));
  const foreign = await taken(job(nameAt(noon + hourMs), undefined, {}, { ownerReferences: [] }));
  t.deepEqual([foreign.writes, foreign.events], ['', []]);
});
