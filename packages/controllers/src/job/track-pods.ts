import { patchStatus, type ReconcileRun } from '@keelson/controller-kit';
import { type batchV1, Job, type Pod } from '@keelson/kinds';
import { timeOf } from '../workload/object-status.ts';
import { inParallel } from '../workload/pod-writes.ts';
import { countsAsFailure } from './failure-policy.ts';
import { IndexSet } from './index-set.ts';
import { indexOf, isFailed, isTracked, stopTracking } from './job-pods.ts';
import type { JobState, Verdict } from './job-state.ts';

/** Maximum number of uids in the status, which limits their size to about 20 KB. */
const maxUncounted = 500;

export type StatusFields = { [F in keyof batchV1.JobStatus]?: batchV1.JobStatus[F] | undefined };

/** The planned status and finalizer changes. Each pod is counted exactly once, even if the process ends at any step. */
interface Tracked {
  /** Pods whose finalizer may be removed after `status` is written. */
  readonly release: readonly Pod[];
  readonly status: StatusFields;
  /** False when some ended pods must be counted in another step. */
  readonly complete: boolean;
}

/**
 * Counts the pods that have ended in three steps: their uids are written to the status, their finalizers are removed,
 * and their uids are replaced by counts. Thus, a pod with a finalizer whose uid is not listed was never counted, and a
 * listed uid of a pod without a finalizer must still be counted. Returns the updated job and the last fields of the
 * status, which the caller writes.
 *
 * @param written called when the uids are in the status
 */
export async function trackPods(
  run: ReconcileRun,
  state: JobState,
  verdict: Verdict | undefined,
  fields: StatusFields,
  written: () => void,
): Promise<{ job: Job; status: StatusFields; complete: boolean }> {
  const { release, status, complete } = tracked(run, state, verdict, fields);
  const job = await patchStatus(run, Job, state.job, status);
  written();
  await inParallel(release, (pod) => stopTracking(run, pod));
  const released = new Set(release.map(({ metadata }) => metadata?.uid));
  const keeps = (pod: Pod) => isTracked(pod) && !released.has(pod.metadata?.uid);
  return { job, status: { ...status, ...counted(status, state.pods.filter(keeps)) }, complete };
}

function tracked(run: ReconcileRun, state: JobState, verdict: Verdict | undefined, fields: StatusFields): Tracked {
  const { job, pods, indexes, uncounted, awaitingReplacement } = state;
  const uids = { succeeded: [...uncounted.succeeded], failed: [...uncounted.failed] };
  const { succeeded, failed } = job.status ?? {};
  const before: StatusFields = { ...fields, succeeded, failed, uncountedTerminatedPods: uids };
  const base = counted(before, pods.filter(isTracked));
  const { uncountedTerminatedPods: listed } = base;
  const lists = { succeeded: [...(listed?.succeeded ?? [])], failed: [...(listed?.failed ?? [])] };
  const release: Pod[] = [];
  const newIndexes = new Set<number>();
  let complete = true;
  for (const pod of pods) {
    const { uid = '' } = pod.metadata ?? {};
    const hasFailed = isFailed(pod, job);
    const index = indexOf(pod, job);
    if (!isTracked(pod)) continue;
    const ends = job.metadata?.deletionTimestamp !== undefined || verdict !== undefined;
    const waits = index !== undefined && awaitingReplacement.get(index) === pod;
    if (!ends && pod.status?.phase !== 'Succeeded' && (!hasFailed || waits)) continue;
    if (newIndexes.size + lists.succeeded.length + lists.failed.length >= maxUncounted) {
      complete = false;
      break;
    }
    release.push(pod);
    if (uncounted.failed.has(uid) || uncounted.succeeded.has(uid)) continue;
    if (indexes !== undefined && index === undefined) continue;
    if (pod.status?.phase === 'Succeeded') {
      if (index === undefined || indexes === undefined) lists.succeeded.push(uid);
      else if (!indexes.before.has(index)) newIndexes.add(index);
    } else if ((hasFailed || verdict?.outcome === 'Failed') && countsAsFailure(job, pod)) lists.failed.push(uid);
  }
  const status: StatusFields = { ...fields, ...base, uncountedTerminatedPods: withoutEmpty(lists) };
  if (indexes !== undefined) {
    const completed = indexes.before.with(IndexSet.of(newIndexes));
    status.succeeded = completed.size || undefined;
    status.completedIndexes = completed.toString() || undefined;
    status.failedIndexes = indexes.failed?.toString();
  }
  if (verdict !== undefined) {
    const type = verdict.outcome === 'Complete' ? 'SuccessCriteriaMet' : 'FailureTarget';
    status.conditions = withJobCondition(run, fields.conditions, { ...verdict, type, status: 'True' });
  }
  return { release, status, complete };
}

/**
 * The conditions with one condition set. A change of its status, reason or message also sets its times. A missing
 * condition with the status False is not added.
 */
export function withJobCondition(
  run: ReconcileRun,
  conditions: readonly batchV1.JobCondition[] = [],
  { type, status, reason, message }: Pick<batchV1.JobCondition, 'type' | 'status' | 'reason' | 'message'>,
): batchV1.JobCondition[] {
  const at = conditions.findIndex((condition) => condition.type === type);
  const before = conditions[at];
  if (before === undefined && status === 'False') return [...conditions];
  if (before?.status === status && before.reason === reason && before.message === message) return [...conditions];
  const time = timeOf(run);
  const after: batchV1.JobCondition = { type, status, lastProbeTime: time, lastTransitionTime: time };
  if (reason !== undefined) after.reason = reason;
  if (message !== undefined) after.message = message;
  return before === undefined ? [...conditions, after] : conditions.with(at, after);
}

/** Replaces the uids of pods that have lost the finalizer by counts. */
function counted(status: StatusFields, withFinalizer: readonly Pod[]): StatusFields {
  const kept = new Set(withFinalizer.map(({ metadata }) => metadata?.uid));
  const { succeeded = [], failed = [] } = status.uncountedTerminatedPods ?? {};
  const remaining = {
    succeeded: succeeded.filter((uid) => kept.has(uid)),
    failed: failed.filter((uid) => kept.has(uid)),
  };
  return {
    succeeded: (status.succeeded ?? 0) + succeeded.length - remaining.succeeded.length || undefined,
    failed: (status.failed ?? 0) + failed.length - remaining.failed.length || undefined,
    uncountedTerminatedPods: withoutEmpty(remaining),
  };
}

function withoutEmpty({
  succeeded,
  failed,
}: {
  succeeded: string[];
  failed: string[];
}): batchV1.UncountedTerminatedPods {
  return { ...(succeeded.length > 0 ? { succeeded } : {}), ...(failed.length > 0 ? { failed } : {}) };
}
