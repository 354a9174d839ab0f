import type { ReconcileRun } from '@keelson/controller-kit';
import type { Pod } from '@keelson/kinds';
import { rankedForDeletion } from '../replicaset/deletion-rank.ts';
import { isReady } from '../workload/pod-state.ts';
import { burstReplicas, createPod, deletePod, inParallel, slowStart } from '../workload/pod-writes.ts';
import { IndexSet } from './index-set.ts';
import { allFailures, endedAt, indexOf, isIndexed, jobPod, replacesOnlyFailed, stopTracking } from './job-pods.ts';
import type { JobState } from './job-state.ts';
import { type FailureRun, pauseAfter } from './pod-backoff.ts';

/** The number of pods of a job, updated when a run creates or deletes pods. */
export class PodCounts {
  active: number;
  ready: number;
  terminating: number;

  constructor({ active, terminating }: JobState) {
    this.active = active.length;
    this.ready = active.filter(isReady).length;
    this.terminating = terminating.length;
  }

  deleted(pod: Pod): void {
    this.active -= 1;
    if (isReady(pod)) this.ready -= 1;
    this.terminating += 1;
  }
}

/** Deletes the active pods of a job that ends. They keep the finalizer, because they are counted as failed. */
export async function deleteActivePods(run: ReconcileRun, state: JobState, counts: PodCounts): Promise<void> {
  await inParallel(state.active, async (pod) => {
    await deletePod(run, state.job, pod);
    counts.deleted(pod);
  });
}

/** Creates or deletes pods. Returns the milliseconds until the next pod may be created, if a creation is delayed. */
export async function managePods(
  run: ReconcileRun,
  state: JobState,
  counts: PodCounts,
  failures: FailureRun,
): Promise<number | undefined> {
  const { job, active } = state;
  const wanted = wantedPods(state);
  const surplus = surplusPods(state, Math.max(0, active.length - wanted), run.clock.now()).slice(0, burstReplicas);
  if (surplus.length > 0) {
    await inParallel(surplus, async (pod) => {
      // The finalizer is removed first, because the deletion of a surplus pod must not count as a failure.
      await stopTracking(run, pod);
      await deletePod(run, job, pod);
      counts.deleted(pod);
    });
    return undefined;
  }
  const occupied = active.length + (replacesOnlyFailed(job) ? state.terminating.length : 0);
  const missing = Math.min(wanted - occupied, burstReplicas);
  if (missing <= 0) return undefined;
  const now = run.clock.now();
  const perIndex = job.spec.backoffLimitPerIndex !== undefined;
  const pause = perIndex ? 0 : pauseAfter(failures, now);
  if (pause > 0) return pause;
  let indexes: (number | undefined)[] = Array.from({ length: missing }, () => undefined);
  let next: number | undefined;
  if (isIndexed(job)) {
    const pending = pendingIndexes(state, missing);
    const pauses = new Map(pending.map((index) => [index, pauseOfIndex(state.awaitingReplacement.get(index), now)]));
    indexes = pending.filter((index) => pauses.get(index) === 0);
    for (const other of pauses.values()) if (other > 0) next = Math.min(next ?? other, other);
  }
  await slowStart(indexes, async (index) => {
    const replaced = index === undefined ? undefined : state.awaitingReplacement.get(index);
    await createPod(run, job, jobPod(job, index, replaced));
    counts.active += 1;
  });
  return next;
}

function wantedPods({ job, active, succeeded }: JobState): number {
  const { parallelism = 1, completions, suspend } = job.spec;
  if (suspend) return 0;
  if (completions === undefined) return succeeded > 0 ? active.length : parallelism;
  return Math.max(0, Math.min(completions - succeeded, parallelism));
}

/** Pods to delete. Of an indexed job, these are first the pods without a valid index and duplicates of an index. */
function surplusPods({ job, active }: JobState, least: number, now: number): Pod[] {
  const ranked = () => rankedForDeletion(active, { related: [], minReadySeconds: 0, now });
  if (!isIndexed(job)) return least === 0 ? [] : ranked().slice(0, least);
  const seen = new Set<number>();
  const surplus: Pod[] = [];
  const rest: Pod[] = [];
  // Of several pods with one index, the last in the order of deletion is kept.
  for (const pod of ranked().reverse()) {
    const index = indexOf(pod, job);
    if (index === undefined || seen.has(index)) surplus.push(pod);
    else {
      seen.add(index);
      rest.unshift(pod);
    }
  }
  return [...surplus, ...rest.slice(0, Math.max(0, least - surplus.length))];
}

/** The first indexes without a pod that have neither succeeded nor failed. */
function pendingIndexes({ job, active, terminating, indexes }: JobState, count: number): number[] {
  const occupying = replacesOnlyFailed(job) ? [...active, ...terminating] : active;
  const occupied = IndexSet.of(occupying.flatMap((pod) => indexOf(pod, job) ?? []));
  const others = [indexes?.succeeded, indexes?.failed].filter((set) => set !== undefined);
  return occupied.with(...others).missing(count, job.spec.completions ?? 0);
}

function pauseOfIndex(replaced: Pod | undefined, now: number): number {
  if (replaced === undefined) return 0;
  return pauseAfter({ failures: allFailures(replaced) + 1, lastAt: endedAt(replaced) }, now);
}
