import {
  type ControllerDefinition,
  isConditionTrue,
  isControlledBy,
  ownerReference,
  patchStatus,
  type ReconcileResult,
  type ReconcileRun,
} from '@keelson/controller-kit';
import { formatTime, isStatusError, StatusReason, timeMs } from '@keelson/core';
import {
  CronJob,
  type coreV1,
  Job,
  nextTime,
  offsetOf,
  parseSchedule,
  type Schedule,
  ScheduleError,
} from '@keelson/kinds';
import { isFinished } from '../job/job-state.ts';
import { isNamespaceTerminating, textOf } from '../workload/pod-writes.ts';
import { dueTime } from './schedule-times.ts';

const timestampAnnotation = 'batch.kubernetes.io/cronjob-scheduled-timestamp';
/** Delay after a scheduled time, so that the limited resolution of clocks never starts a run before that time. */
const paddingMs = 100;
/** Delay before the next run when the local copy is older than the stored object, unless an event comes earlier. */
const staleMs = 1000;
/** Longest delay of a timer: one day. Timers of JavaScript are limited to 24.8 days. */
const maxWaitMs = 24 * 60 * 60_000;

/** Makes jobs at the times of a schedule and deletes old ones. */
export const cronJobController: ControllerDefinition<CronJob> = {
  name: 'cronjob-controller',
  kind: CronJob,
  workers: 5,
  owns: [Job],
  reconcile,
};

/** The fields of the status that a run changes. */
interface Progress {
  active: coreV1.ObjectReference[];
  lastScheduleTime: string | undefined;
  lastSuccessfulTime: string | undefined;
}

async function reconcile(cronJob: CronJob, run: ReconcileRun): Promise<ReconcileResult> {
  const { active = [], lastScheduleTime, lastSuccessfulTime } = cronJob.status ?? {};
  const progress: Progress = { active: [...active], lastScheduleTime, lastSuccessfulTime };
  const jobs = run.read(Job).controlledBy(cronJob);
  let failure: { readonly error: unknown } | undefined;
  let result: ReconcileResult;
  try {
    await deleteOldJobs(cronJob, run, jobs, progress);
    await followJobs(cronJob, run, jobs, progress);
    if (cronJob.metadata?.deletionTimestamp === undefined) result = await schedule(cronJob, run, progress);
  } catch (error) {
    failure = { error };
  }
  await patchStatus(run, CronJob, cronJob, {
    active: progress.active.length > 0 ? progress.active : undefined,
    lastScheduleTime: progress.lastScheduleTime,
    lastSuccessfulTime: progress.lastSuccessfulTime,
  });
  if (failure !== undefined) throw failure.error;
  return result;
}

async function deleteOldJobs(cronJob: CronJob, run: ReconcileRun, jobs: readonly Job[], progress: Progress) {
  const { successfulJobsHistoryLimit, failedJobsHistoryLimit } = cronJob.spec;
  for (const [condition, limit] of [
    ['Complete', successfulJobsHistoryLimit],
    ['Failed', failedJobsHistoryLimit],
  ] as const) {
    if (limit === undefined) continue;
    const ended = jobs.filter(
      ({ metadata, status }) =>
        metadata?.deletionTimestamp === undefined && isConditionTrue(status?.conditions, condition),
    );
    ended.sort(byStart);
    for (const job of ended.slice(0, Math.max(0, ended.length - limit))) await deleteJob(cronJob, run, job, progress);
  }
}

function byStart(a: Job, b: Job): number {
  const [left, right] = [a, b].map(({ status }) => timeMs(status?.startTime ?? '') ?? Number.POSITIVE_INFINITY);
  if (left !== right) return (left ?? 0) < (right ?? 0) ? -1 : 1;
  return (a.metadata?.name ?? '') < (b.metadata?.name ?? '') ? -1 : 1;
}

async function deleteJob(cronJob: CronJob, run: ReconcileRun, job: Job, progress: Progress): Promise<void> {
  const { name = '', namespace = '', uid = '' } = job.metadata ?? {};
  try {
    const options = { propagationPolicy: 'Background', preconditions: { uid } } as const;
    await run.client.resource(Job).namespace(namespace).delete(name, options);
  } catch (error) {
    if (!isStatusError(error, StatusReason.NotFound)) {
      run.event(cronJob, 'Warning', 'FailedDelete', `Deleted job: ${textOf(error)}`);
      throw error;
    }
  }
  progress.active = progress.active.filter((reference) => reference.uid !== uid);
  run.event(cronJob, 'Normal', 'SuccessfulDelete', `Deleted job ${name}`);
}

/** Removes ended and missing jobs from the list of active ones. */
async function followJobs(cronJob: CronJob, run: ReconcileRun, jobs: readonly Job[], progress: Progress) {
  for (const job of jobs) {
    const { name, uid } = job.metadata ?? {};
    const isListed = progress.active.some((reference) => reference.uid === uid);
    if (!isFinished(job)) {
      if (isListed || job.metadata?.deletionTimestamp !== undefined) continue;
      const message = `Saw a job that the controller did not create or forgot: ${name}`;
      run.event(cronJob, 'Warning', 'UnexpectedJob', message);
      continue;
    }
    const succeeded = isConditionTrue(job.status?.conditions, 'Complete');
    if (isListed) {
      progress.active = progress.active.filter((reference) => reference.uid !== uid);
      const condition = succeeded ? 'Complete' : 'Failed';
      run.event(cronJob, 'Normal', 'SawCompletedJob', `Saw completed job: ${name}, condition: ${condition}`);
    }
    const completed = succeeded ? job.status?.completionTime : undefined;
    const last = timeMs(progress.lastSuccessfulTime ?? '') ?? Number.NEGATIVE_INFINITY;
    if (completed !== undefined && (timeMs(completed) ?? 0) > last) progress.lastSuccessfulTime = completed;
  }
  const known = new Set(jobs.map(({ metadata }) => metadata?.uid));
  for (const { name = '', namespace = '', uid } of [...progress.active]) {
    if (known.has(uid) || (await jobOf(run, namespace, name))?.metadata?.uid === uid) continue;
    progress.active = progress.active.filter((reference) => reference.uid !== uid);
    run.event(cronJob, 'Normal', 'MissingJob', `Active job went missing: ${name}`);
  }
}

async function jobOf(run: ReconcileRun, namespace: string, name: string): Promise<Job | undefined> {
  try {
    return await run.client.resource(Job).namespace(namespace).get(name);
  } catch (error) {
    if (isStatusError(error, StatusReason.NotFound)) return undefined;
    throw error;
  }
}

/** Creates the job that is due, and returns the delay until the next scheduled time. */
async function schedule(cronJob: CronJob, run: ReconcileRun, progress: Progress): Promise<ReconcileResult> {
  const { spec } = cronJob;
  if (spec.suspend) return undefined;
  const now = new Date(run.clock.now());
  const times = parsed(cronJob, run);
  if (times === undefined) return undefined;
  const last = timeMs(progress.lastScheduleTime ?? cronJob.metadata?.creationTimestamp ?? '') ?? now.getTime();
  const deadlineMs =
    spec.startingDeadlineSeconds === undefined ? undefined : Number(spec.startingDeadlineSeconds) * 1000;
  const since = Math.max(last, deadlineMs === undefined ? last : now.getTime() - deadlineMs);
  const due = dueTime(times, spec.timeZone, new Date(since), now);
  const missed = dueTime(times, spec.timeZone, new Date(last), now)?.time;
  const next = nextTime(times, times.type === 'every' ? (missed ?? new Date(last)) : now, spec.timeZone);
  const again: ReconcileResult =
    next === undefined ? undefined : { againAfterMs: Math.min(maxWaitMs, next.getTime() + paddingMs - now.getTime()) };
  if (due === undefined) {
    if (missed !== undefined) reportMissed(cronJob, run, missed);
    else if (next === undefined) {
      // The 31st of February and similar dates. The reason is the one that Kubernetes gives.
      const problem = 'time difference between two schedules is less than 1 second';
      run.event(cronJob, 'Warning', 'InvalidSchedule', `invalid schedule: ${spec.schedule} : ${problem}`);
    }
    return again;
  }
  if (due.tooMany) {
    const message = 'too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew';
    run.event(cronJob, 'Warning', 'TooManyMissedTimes', message);
  }
  if (deadlineMs !== undefined && due.time.getTime() + deadlineMs < now.getTime()) {
    reportMissed(cronJob, run, due.time);
    return again;
  }
  const name = nameAt(cronJob, due.time);
  if (progress.active.some((reference) => reference.name === name)) return again;
  if (timeMs(progress.lastScheduleTime ?? '') === due.time.getTime()) return again;
  if (spec.concurrencyPolicy === 'Forbid' && progress.active.length > 0) {
    const message = 'Not starting job because prior execution is running and concurrency policy is Forbid';
    run.event(cronJob, 'Normal', 'JobAlreadyActive', message);
    return again;
  }
  // The status in the local copy may lack active jobs, and the creation of a second job cannot be undone.
  const { name: own = '', namespace: place = '', resourceVersion: version } = cronJob.metadata ?? {};
  const { metadata } = await run.client.resource(CronJob).namespace(place).get(own);
  if (metadata?.resourceVersion !== version) return { againAfterMs: staleMs };
  if (spec.concurrencyPolicy === 'Replace') {
    for (const { name: other = '', namespace = '' } of [...progress.active]) {
      const job = await jobOf(run, namespace, other);
      if (job !== undefined) await deleteJob(cronJob, run, job, progress);
    }
  }
  const created = await createJob(cronJob, run, due.time);
  if (created === undefined) return again;
  const { namespace = '', uid = '', resourceVersion = '' } = created.metadata ?? {};
  progress.active.push({ kind: Job.kind, apiVersion: Job.apiVersion, namespace, name, uid, resourceVersion });
  progress.lastScheduleTime = formatTime(due.time);
  return again;
}

function reportMissed(cronJob: CronJob, run: ReconcileRun, time: Date): void {
  const text = time.toUTCString().replace('GMT', '+0000');
  run.event(cronJob, 'Warning', 'MissSchedule', `Missed scheduled time to start a job: ${text}`);
}

/** The parsed schedule. When the schedule or time zone is invalid: records an event and returns undefined. */
function parsed({ spec, ...cronJob }: CronJob, run: ReconcileRun): Schedule | undefined {
  try {
    const times = parseSchedule(spec.schedule);
    nextTime(times, new Date(run.clock.now()), spec.timeZone);
    return times;
  } catch (error) {
    if (error instanceof ScheduleError) {
      const text = `unparseable schedule: ${JSON.stringify(spec.schedule)} : ${error.message}`;
      run.event(cronJob, 'Warning', 'UnparseableSchedule', text);
    } else {
      const text = `invalid timeZone: ${JSON.stringify(spec.timeZone)}: ${textOf(error)}`;
      run.event(cronJob, 'Warning', 'UnknownTimeZone', text);
    }
    return undefined;
  }
}

/**
 * Creates the job of a scheduled time, or returns the one that an earlier run has created. Returns undefined when the
 * name belongs to another owner, or when the namespace is being deleted.
 */
async function createJob(cronJob: CronJob, run: ReconcileRun, time: Date): Promise<Job | undefined> {
  const { namespace = '' } = cronJob.metadata ?? {};
  const job = jobAt(cronJob, time);
  try {
    const created = await run.client.resource(Job).namespace(namespace).create(job);
    run.event(cronJob, 'Normal', 'SuccessfulCreate', `Created job ${created.metadata?.name}`);
    return created;
  } catch (error) {
    if (isNamespaceTerminating(error)) return undefined;
    if (isStatusError(error, StatusReason.AlreadyExists)) {
      const existing = await jobOf(run, namespace, job.metadata?.name ?? '');
      return existing !== undefined && isControlledBy(existing, cronJob) ? existing : undefined;
    }
    if (!run.signal.aborted) run.event(cronJob, 'Warning', 'FailedCreate', `Error creating job: ${textOf(error)}`);
    throw error;
  }
}

/** The name of a job is derived from its scheduled time, so that no time gets two jobs. */
function nameAt({ metadata }: CronJob, time: Date): string {
  return `${metadata?.name}-${Math.floor(time.getTime() / 60_000)}`;
}

function jobAt(cronJob: CronJob, time: Date): Job {
  const { jobTemplate, timeZone = 'UTC' } = cronJob.spec;
  const { labels, annotations } = jobTemplate.metadata ?? {};
  return {
    metadata: {
      name: nameAt(cronJob, time),
      ...(labels ? { labels: { ...labels } } : {}),
      annotations: { ...annotations, [timestampAnnotation]: localTime(time, timeZone) },
      ownerReferences: [ownerReference(CronJob, cronJob)],
    },
    spec: structuredClone(jobTemplate.spec),
  };
}

/** A time in RFC 3339 format with the offset of the time zone. */
function localTime(time: Date, timeZone: string): string {
  const minutes = offsetOf(time.getTime(), timeZone) / 60_000;
  if (minutes === 0) return formatTime(time);
  const wall = formatTime(new Date(time.getTime() + minutes * 60_000)).replace('Z', '');
  const two = (value: number) => String(value).padStart(2, '0');
  const ahead = Math.abs(minutes);
  return `${wall}${minutes < 0 ? '-' : '+'}${two(Math.floor(ahead / 60))}:${two(ahead % 60)}`;
}
