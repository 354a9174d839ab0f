import { formatTime } from '@keelson/core';
import { type batchV1, CronJob, Job, parseSchedule } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { cronJobController } from '../src/cronjob/cron-job-controller.ts';
import { dueTime } from '../src/cronjob/schedule-times.ts';
import { WorkloadPlane } from './support/workload-plane.ts';

const open = (t: ExecutionContext) => WorkloadPlane.start(t, { controllers: [cronJobController] });
const template = { spec: { containers: [{ name: 'main', image: 'app:1' }], restartPolicy: 'Never' } };

function cronJob(spec: Partial<batchV1.CronJobSpec> = {}): CronJob {
  const jobTemplate = { metadata: { labels: { from: 'cron' } }, spec: { template } };
  return { metadata: { name: 'tick' }, spec: { schedule: '*/2 * * * *', jobTemplate, ...spec } };
}

const namesOf = (jobs: readonly Job[]) => jobs.map(({ metadata }) => metadata?.name ?? '').sort();

/** Advances the time until the cron job has a number of jobs that are not being deleted. */
async function jobs(workloads: WorkloadPlane, count: number, advanceMs = 5000): Promise<Job[]> {
  return until(async () => {
    const found = (await workloads.list(Job)).filter(({ metadata }) => metadata?.deletionTimestamp === undefined);
    if (found.length === count) return found;
    if (advanceMs > 0) workloads.clock.advance(advanceMs);
    return undefined;
  }, `${count} jobs`);
}

/** Ends a job as its controller would. */
async function end(
  workloads: WorkloadPlane,
  name: string,
  type: 'Complete' | 'Failed',
  startTime?: string,
): Promise<string> {
  const time = formatTime(new Date(workloads.clock.now()));
  const condition = (of: string) => ({ type: of, status: 'True', lastProbeTime: time, lastTransitionTime: time });
  const interim = condition(type === 'Complete' ? 'SuccessCriteriaMet' : 'FailureTarget');
  const status = { startTime: startTime ?? time, conditions: [interim, condition(type)] };
  const last = type === 'Complete' ? { ...status, completionTime: time } : status;
  await workloads.objects(Job).patchSubresource(name, 'status', 'merge', { status: last });
  return time;
}

const hasActive = (count: number) => (found: CronJob) => (found.status?.active?.length ?? 0) === count;

test('a job is made at each time of the schedule, with a name of the time, and followed to its end', async (t) => {
  const workloads = await open(t);
  await workloads.objects(CronJob).create(cronJob({ timeZone: 'Asia/Kolkata' }));
  const [job] = await jobs(workloads, 1);
  const { name = '', annotations, labels, ownerReferences } = job?.metadata ?? {};
  const minutes = Number(name.replace('tick-', ''));
  t.is(minutes % 2, 0);
  const scheduled = annotations?.['batch.kubernetes.io/cronjob-scheduled-timestamp'] ?? '';
  t.regex(scheduled, /\+05:30$/);
  t.is(Date.parse(scheduled), minutes * 60_000);
  t.is(labels?.['from'], 'cron');
  t.like(ownerReferences?.[0], { kind: 'CronJob', name: 'tick', controller: true });
  const active = await workloads.reaches(CronJob, 'tick', hasActive(1));
  t.is(Date.parse(active.status?.lastScheduleTime ?? ''), minutes * 60_000);
  t.like(active.status?.active?.[0], { kind: 'Job', apiVersion: 'batch/v1', name, namespace: 'default' });
  await workloads.recorded('tick', 'SuccessfulCreate', new RegExp(`^Created job ${name}$`));
  const endedAt = await end(workloads, name, 'Complete');
  const ended = await workloads.reaches(CronJob, 'tick', hasActive(0));
  t.is(ended.status?.lastSuccessfulTime, endedAt);
  await workloads.recorded('tick', 'SawCompletedJob', new RegExp(`^Saw completed job: ${name}, condition: Complete$`));
  const later = namesOf(await jobs(workloads, 2));
  t.deepEqual(later, [name, `tick-${minutes + 2}`]);
});

test('Forbid starts no second job, Replace deletes the first, and Allow keeps both', async (t) => {
  for (const [concurrencyPolicy, expected] of [
    ['Allow', 2],
    ['Forbid', 1],
    ['Replace', 1],
  ] as const) {
    const workloads = await open(t);
    await workloads.objects(CronJob).create(cronJob({ concurrencyPolicy }));
    const [first] = await jobs(workloads, 1);
    await workloads.reaches(CronJob, 'tick', hasActive(1));
    if (concurrencyPolicy === 'Allow') await jobs(workloads, expected);
    for (let second = 0; second < 120; second += 5) {
      workloads.clock.advance(5000);
      await new Promise((next) => setImmediate(next));
    }
    if (concurrencyPolicy === 'Forbid') {
      const message = 'Not starting job because prior execution is running and concurrency policy is Forbid';
      await workloads.recorded('tick', 'JobAlreadyActive', new RegExp(message));
      t.deepEqual(namesOf(await workloads.list(Job)), [first?.metadata?.name ?? '']);
    }
    if (concurrencyPolicy === 'Replace') {
      await workloads.recorded('tick', 'SuccessfulDelete', new RegExp(`^Deleted job ${first?.metadata?.name}$`));
      const [second] = await until(async () => {
        const found = await workloads.list(Job);
        return found.length === 1 && found[0]?.metadata?.uid !== first?.metadata?.uid ? found : undefined;
      });
      await workloads.reaches(CronJob, 'tick', hasActive(1));
      t.not(second?.metadata?.name, first?.metadata?.name);
    }
    await workloads.close();
  }
});

test('a suspended cron job makes no jobs; afterwards only the last time is made up, within its deadline', async (t) => {
  const workloads = await open(t);
  await workloads
    .objects(CronJob)
    .create(cronJob({ schedule: '*/10 * * * *', suspend: true, startingDeadlineSeconds: 120 }));
  const created = await workloads.objects(CronJob).get('tick');
  const began = Date.parse(created.metadata?.creationTimestamp ?? '');
  // The last occurrence is five minutes ago, and its deadline of two minutes is over.
  workloads.clock.advance(25 * 60_000 - (workloads.clock.now() - began));
  await workloads.objects(CronJob).patch('tick', 'merge', { spec: { suspend: false } });
  await workloads.recorded('tick', 'MissSchedule', /^Missed scheduled time to start a job: \w{3}, \d\d .* \+0000$/);
  t.deepEqual(await workloads.list(Job), []);
  await workloads.objects(CronJob).patch('tick', 'merge', { spec: { startingDeadlineSeconds: 400 } });
  const [job] = await jobs(workloads, 1, 0);
  t.is(job?.metadata?.name, `tick-${(began + 20 * 60_000) / 60_000}`);
});

test('more jobs than the history limits are deleted, the oldest first', async (t) => {
  const workloads = await open(t);
  await workloads.objects(CronJob).create(cronJob({ successfulJobsHistoryLimit: 1, failedJobsHistoryLimit: 0 }));
  const [first] = namesOf(await jobs(workloads, 1));
  await workloads.reaches(CronJob, 'tick', hasActive(1));
  await end(workloads, first ?? '', 'Complete');
  const [, second] = namesOf(await jobs(workloads, 2));
  await end(workloads, second ?? '', 'Failed');
  await workloads.recorded('tick', 'SuccessfulDelete', new RegExp(`^Deleted job ${second}$`));
  const [, third] = namesOf(await jobs(workloads, 2));
  await workloads.reaches(CronJob, 'tick', hasActive(1));
  // Its name is the last one, but it has started before all others.
  await end(workloads, third ?? '', 'Complete', '2000-01-01T00:00:00Z');
  await workloads.recorded('tick', 'SuccessfulDelete', new RegExp(`^Deleted job ${third}$`));
  t.deepEqual(namesOf(await jobs(workloads, 1, 0)), [first]);
});

test('an active job that is gone leaves the list, and many missed times are reported', async (t) => {
  const workloads = await open(t);
  await workloads.objects(CronJob).create(cronJob({ schedule: '* * * * *' }));
  const [job] = await jobs(workloads, 1);
  const name = job?.metadata?.name ?? '';
  await workloads.reaches(CronJob, 'tick', hasActive(1));
  await workloads.stopControllers();
  await workloads.objects(Job).delete(name, { propagationPolicy: 'Background' });
  workloads.clock.advance(101 * 60_000);
  await workloads.startControllers();
  await workloads.recorded('tick', 'MissingJob', new RegExp(`^Active job went missing: ${name}$`));
  await workloads.recorded('tick', 'TooManyMissedTimes', /^too many missed start times\. Set or decrease /);
  t.is((await jobs(workloads, 1, 0)).length, 1);
});

test('the last time that is due is found without listing all of them', (t) => {
  const at = (text: string) => new Date(`2026-${text}:00Z`);
  for (const [schedule, zone, since, now, due, tooMany] of [
    ['0 * * * *', undefined, '03-01T10:00', '03-01T10:59', undefined, false],
    ['0 * * * *', undefined, '03-01T10:00', '03-01T11:00', '03-01T11:00', false],
    ['0 * * * *', undefined, '03-01T10:00', '03-04T09:30', '03-04T09:00', false],
    ['0 * * * *', undefined, '01-01T00:00', '03-04T09:30', '03-04T09:00', true],
    ['* 0 1 1 *', undefined, '01-01T00:00', '06-04T09:30', '01-01T00:59', false],
    ['30 12 * * *', 'Europe/Berlin', '07-01T00:00', '07-03T10:29', '07-02T10:30', false],
    ['@every 45m', undefined, '03-01T10:00', '03-01T13:10', '03-01T13:00', false],
    ['0 0 30 2 *', undefined, '01-01T00:00', '03-04T09:30', undefined, false],
  ] as const) {
    const found = dueTime(parseSchedule(schedule), zone, at(since), at(now));
    t.deepEqual(found?.time, due === undefined ? undefined : at(due), schedule);
    t.is(found?.tooMany ?? false, tooMany, schedule);
  }
});
