import {
  type ControllerDefinition,
  claim,
  conditionOf,
  patchStatus,
  type ReconcileResult,
  type ReconcileRun,
} from '@keelson/controller-kit';
import { type LabelSelector, nothingSelector } from '@keelson/core';
import { Job, Pod } from '@keelson/kinds';
import { timeOf } from '../workload/object-status.ts';
import { relatedOrphans, selectorOf } from '../workload/selector.ts';
import { isFailed, trackingFinalizer } from './job-pods.ts';
import { isFinished, JobState, type Verdict } from './job-state.ts';
import { deleteActivePods, managePods, PodCounts } from './manage-pods.ts';
import { afterEnds, type FailureRun } from './pod-backoff.ts';
import { type StatusFields, trackPods, withJobCondition } from './track-pods.ts';

/** Value of `spec.managedBy` for jobs that this controller runs. */
const controllerName = 'kubernetes.io/job-controller';
const completionsReached: Verdict = {
  outcome: 'Complete',
  reason: 'CompletionsReached',
  message: 'Reached expected number of succeeded pods',
};

/**
 * The recorded failures of unfinished jobs by uid of the job. They determine the pause before the next pod is created.
 */
type Failures = Map<string, { readonly key: string; readonly run: FailureRun }>;

/** True for jobs that another controller runs. */
export function isManagedByOther({ spec }: Job): boolean {
  return spec.managedBy !== undefined && spec.managedBy !== controllerName;
}

/** Runs the pods of jobs and counts how they end. */
export const jobController: ControllerDefinition<Job> = createJobController();

function createJobController(): ControllerDefinition<Job> {
  const failures: Failures = new Map();
  return {
    name: 'job-controller',
    kind: Job,
    workers: 5,
    owns: [Pod],
    related: [relatedOrphans(Pod, Job, selectorOfJob)],
    reconcile: (job, run) => reconcile(job, run, failures),
    deleted: async ({ key }) => {
      for (const [uid, entry] of failures) if (entry.key === key) failures.delete(uid);
      return undefined;
    },
  };
}

function selectorOfJob({ spec }: Job): LabelSelector {
  const { selector } = spec;
  return selector === undefined ? nothingSelector : selectorOf({ spec: spec as typeof spec & { selector: object } });
}

async function reconcile(job: Job, run: ReconcileRun, known: Failures): Promise<ReconcileResult> {
  const { uid = '' } = job.metadata ?? {};
  if (isManagedByOther(job)) return undefined;
  if (isFinished(job)) {
    known.delete(uid);
    return undefined;
  }
  const selector = selectorOfJob(job);
  const pods = await claim(run, { owner: Job, object: job, kind: Pod, selector, finalizer: trackingFinalizer });
  const state = new JobState(job, pods);
  const failures = failuresOf(state, known.get(uid)?.run);
  const counts = new PodCounts(state);
  const now = run.clock.now();
  const isDeleting = job.metadata?.deletionTimestamp !== undefined;
  const pauses: number[] = [];
  let failure: { readonly error: unknown } | undefined;
  let verdict = state.verdict(now);
  try {
    if (verdict !== undefined) await deleteActivePods(run, state, counts);
    else if (!isDeleting) pauses.push((await managePods(run, state, counts, failures)) ?? Number.POSITIVE_INFINITY);
  } catch (error) {
    failure = { error };
    // The job is not finished until all its pods are deleted.
    verdict = undefined;
  }
  if (run.signal.aborted) return undefined;
  if (verdict === undefined && failure === undefined && isComplete(state, counts)) verdict = completionsReached;
  const fields = statusFields(run, state, counts, verdict, failure === undefined && !isDeleting);
  const remember = () => known.set(uid, { key: run.key, run: failures });
  const tracked = await trackPods(run, state, verdict, fields, remember);
  recordSuspension(run, state.job, tracked.job);
  await finish(run, tracked, verdict, counts);
  if (failure !== undefined) throw failure.error;
  pauses.push(state.untilDeadline(now) ?? Number.POSITIVE_INFINITY);
  const againAfterMs = Math.min(...pauses);
  return verdict === undefined && Number.isFinite(againAfterMs) && !isDeleting ? { againAfterMs } : undefined;
}

/** The failures of a job. Without a record of earlier runs, they are derived from the existing pods. */
function failuresOf(state: JobState, known: FailureRun | undefined): FailureRun {
  const { job, pods, newSucceeded, newFailed } = state;
  if (known !== undefined) return afterEnds(known, newSucceeded, newFailed);
  const succeeded = pods.filter(({ status }) => status?.phase === 'Succeeded');
  return afterEnds(
    undefined,
    succeeded,
    pods.filter((pod) => isFailed(pod, job)),
  );
}

function isComplete({ job, succeeded }: JobState, { active }: PodCounts): boolean {
  const { completions } = job.spec;
  if (active > 0) return false;
  return completions === undefined ? succeeded > 0 : succeeded >= completions;
}

/**
 * The status fields that do not depend on which pods are counted. `isManaged` is true when the run could create and
 * delete pods.
 */
function statusFields(
  run: ReconcileRun,
  { job }: JobState,
  { active, ready, terminating }: PodCounts,
  verdict: Verdict | undefined,
  isManaged: boolean,
): StatusFields {
  const { suspend } = job.spec;
  const before = job.status?.conditions;
  let startTime = job.status?.startTime ?? (suspend ? undefined : timeOf(run));
  let conditions = [...(before ?? [])];
  if (verdict === undefined && isManaged) {
    conditions = withJobCondition(
      run,
      before,
      suspend
        ? { type: 'Suspended', status: 'True', reason: 'JobSuspended', message: 'Job suspended' }
        : { type: 'Suspended', status: 'False', reason: 'JobResumed', message: 'Job resumed' },
    );
    const suspended = conditionOf(conditions, 'Suspended')?.status;
    // The active deadline is measured from the start or the last resumption.
    if (suspended !== conditionOf(before, 'Suspended')?.status && !suspend) startTime = timeOf(run);
  }
  return {
    active: active || undefined,
    ready,
    terminating,
    startTime,
    conditions: conditions.length > 0 ? conditions : undefined,
  };
}

function recordSuspension(run: ReconcileRun, before: Job, after: Job): void {
  const [was, is] = [before, after].map(({ status }) => conditionOf(status?.conditions, 'Suspended')?.status);
  if (was === is || is === undefined) return;
  if (is === 'True') run.event(after, 'Normal', 'Suspended', 'Job suspended');
  else run.event(after, 'Normal', 'Resumed', 'Job resumed');
}

/**
 * Writes the counts. When all pods have ended and are counted, also writes the final condition and records the events.
 */
async function finish(
  run: ReconcileRun,
  { job, status, complete }: Awaited<ReturnType<typeof trackPods>>,
  verdict: Verdict | undefined,
  { terminating }: PodCounts,
): Promise<void> {
  const { succeeded = [], failed = [] } = status.uncountedTerminatedPods ?? {};
  const ends = verdict !== undefined && complete && terminating === 0 && succeeded.length + failed.length === 0;
  const last: StatusFields = { ...status };
  if (ends) {
    const { outcome: type } = verdict;
    last.conditions = withJobCondition(run, status.conditions, { ...verdict, type, status: 'True' });
    if (type === 'Complete') last.completionTime = timeOf(run);
  }
  await patchStatus(run, Job, job, last);
  if (!ends) return;
  if (verdict.outcome === 'Failed') {
    run.event(job, 'Warning', verdict.reason, verdict.message);
    return;
  }
  if (job.spec.completions !== undefined && (last.succeeded ?? 0) > job.spec.completions) {
    const message = 'Too many succeeded pods running after completion count reached';
    run.event(job, 'Warning', 'TooManySucceededPods', message);
  }
  run.event(job, 'Normal', 'Completed', 'Job completed');
}
