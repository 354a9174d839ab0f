import { conditionOf, isConditionTrue } from '@keelson/controller-kit';
import { timeMs } from '@keelson/core';
import type { Job, Pod } from '@keelson/kinds';
import { isActive, isTerminating } from '../workload/pod-state.ts';
import { failureDecision } from './failure-policy.ts';
import { IndexSet } from './index-set.ts';
import { allFailures, countedFailures, endedAt, indexOf, isFailed, isIndexed, isTracked } from './job-pods.ts';

/** How a job ends. */
export interface Verdict {
  readonly outcome: 'Complete' | 'Failed';
  readonly reason: string;
  readonly message: string;
}

export function isFinished({ status }: Job): boolean {
  return isConditionTrue(status?.conditions, 'Complete') || isConditionTrue(status?.conditions, 'Failed');
}

/** The state of a job and its pods at the beginning of a run. */
export class JobState {
  readonly job: Job;
  readonly pods: readonly Pod[];
  readonly active: readonly Pod[];
  readonly terminating: readonly Pod[];
  /** Pods that have ended and are neither counted nor listed in the status. */
  readonly newSucceeded: readonly Pod[];
  readonly newFailed: readonly Pod[];
  readonly uncounted: { readonly succeeded: ReadonlySet<string>; readonly failed: ReadonlySet<string> };
  /** The counts of the status increased by the newly ended pods. */
  readonly succeeded: number;
  readonly failed: number;
  /**
   * The completion indexes of an indexed job: succeeded ones of the status, succeeded ones including new pods, and
   * failed ones.
   */
  readonly indexes: { readonly before: IndexSet; readonly succeeded: IndexSet; readonly failed?: IndexSet } | undefined;
  /** Failed pods that wait for their replacement, by index. The replacement continues their failure counts. */
  readonly awaitingReplacement: ReadonlyMap<number, Pod>;

  constructor(job: Job, pods: readonly Pod[]) {
    const { status = {} } = job;
    const listed = status.uncountedTerminatedPods;
    const succeededUids = new Set(listed?.succeeded);
    const failedUids = new Set(listed?.failed);
    this.job = job;
    this.pods = pods;
    this.uncounted = { succeeded: succeededUids, failed: failedUids };
    this.active = pods.filter(isActive);
    this.terminating = pods.filter(isTerminating);
    const isNew = (pod: Pod) => {
      const uid = pod.metadata?.uid ?? '';
      const isListed = succeededUids.has(uid) || failedUids.has(uid);
      return isTracked(pod) && !isListed && (!isIndexed(job) || indexOf(pod, job) !== undefined);
    };
    this.newSucceeded = pods.filter((pod) => pod.status?.phase === 'Succeeded' && isNew(pod));
    this.newFailed = pods.filter((pod) => isFailed(pod, job) && isNew(pod));
    const counted = this.newFailed.filter((pod) => failureDecision(job, pod)?.action !== 'Ignore');
    this.failed = (status.failed ?? 0) + failedUids.size + counted.length;
    this.indexes = isIndexed(job) ? this.#indexes() : undefined;
    this.succeeded =
      this.indexes?.succeeded.size ?? (status.succeeded ?? 0) + succeededUids.size + this.newSucceeded.length;
    this.awaitingReplacement = this.#awaitingReplacement();
  }

  #indexes(): NonNullable<JobState['indexes']> {
    const { job } = this;
    const { completions = 0, backoffLimitPerIndex } = job.spec;
    const indexesOf = (pods: readonly Pod[]) => IndexSet.of(pods.map((pod) => indexOf(pod, job) ?? 0));
    const before = IndexSet.parse(job.status?.completedIndexes, completions);
    const succeeded = before.with(indexesOf(this.newSucceeded));
    if (backoffLimitPerIndex === undefined) return { before, succeeded };
    const exhausted = this.pods.filter((pod) => {
      if (!isTracked(pod) || !isFailed(pod, job) || indexOf(pod, job) === undefined) return false;
      const action = failureDecision(job, pod)?.action;
      return action === 'FailIndex' || (action !== 'Ignore' && countedFailures(pod) >= backoffLimitPerIndex);
    });
    const failed = IndexSet.parse(job.status?.failedIndexes, completions);
    // An index with a succeeded pod does not fail because of another pod of the same index.
    const newly = indexesOf(exhausted.filter((pod) => !succeeded.has(indexOf(pod, job) ?? 0)));
    return { before, succeeded, failed: failed.with(newly) };
  }

  #awaitingReplacement(): Map<number, Pod> {
    const found = new Map<number, Pod>();
    const { job, indexes } = this;
    if (indexes?.failed === undefined) return found;
    const active = new Set(this.active.map((pod) => indexOf(pod, job)));
    for (const pod of this.pods) {
      const index = indexOf(pod, job);
      if (index === undefined || !isTracked(pod) || !isFailed(pod, job)) continue;
      if (active.has(index) || indexes.succeeded.has(index) || indexes.failed.has(index)) continue;
      const other = found.get(index);
      const isLater = other === undefined || (allFailures(other) <= allFailures(pod) && endedAt(other) <= endedAt(pod));
      if (isLater) found.set(index, pod);
    }
    return found;
  }

  /** The outcome of a job that must end, without regard to the number of completions; undefined when it continues. */
  verdict(now: number): Verdict | undefined {
    const { job, indexes } = this;
    const { spec, status } = job;
    const met = conditionOf(status?.conditions, 'SuccessCriteriaMet');
    if (met?.status === 'True') return verdictOf('Complete', met.reason, met.message);
    const target = conditionOf(status?.conditions, 'FailureTarget');
    if (target?.status === 'True') return verdictOf('Failed', target.reason, target.message);
    for (const pod of this.pods) {
      const decision = isFailed(pod, job) ? failureDecision(job, pod) : undefined;
      if (decision?.action === 'FailJob') return verdictOf('Failed', 'PodFailurePolicy', decision.message);
    }
    const limit = spec.backoffLimit ?? 6;
    if (this.failed > limit || this.#restartsExceed(limit))
      return verdictOf('Failed', 'BackoffLimitExceeded', 'Job has reached the specified backoff limit');
    if (this.untilDeadline(now) === 0)
      return verdictOf('Failed', 'DeadlineExceeded', 'Job was active longer than specified deadline');
    if (indexes === undefined) return undefined;
    const { completions = 0, maxFailedIndexes } = spec;
    const failed = indexes.failed?.size ?? 0;
    if (maxFailedIndexes !== undefined && failed > maxFailedIndexes) {
      const message = 'Job has exceeded the specified maximal number of failed indexes';
      return verdictOf('Failed', 'MaxFailedIndexesExceeded', message);
    }
    if (failed > 0 && failed + indexes.succeeded.size >= completions)
      return verdictOf('Failed', 'FailedIndexes', 'Job has failed indexes');
    const rule = this.#successRule(indexes.succeeded, completions);
    return rule === undefined ? undefined : verdictOf('Complete', 'SuccessPolicy', `Matched rules at index ${rule}`);
  }

  /** Milliseconds until the active deadline; undefined without one, or while the job is suspended. */
  untilDeadline(now: number): number | undefined {
    const { spec, status } = this.job;
    const started = timeMs(status?.startTime ?? '');
    if (spec.activeDeadlineSeconds === undefined || spec.suspend) return undefined;
    return Math.max(0, (started ?? now) + Number(spec.activeDeadlineSeconds) * 1000 - now);
  }

  /** Containers that are restarted in place count as failures as well. */
  #restartsExceed(limit: number): boolean {
    if (this.job.spec.template.spec?.restartPolicy !== 'OnFailure') return false;
    let restarts = 0;
    for (const { status } of this.pods) {
      if (status?.phase !== 'Running' && status?.phase !== 'Pending') continue;
      for (const container of [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])])
        restarts += container.restartCount ?? 0;
    }
    return limit === 0 ? restarts > 0 : restarts >= limit;
  }

  #successRule(succeeded: IndexSet, completions: number): number | undefined {
    if (succeeded.size === 0) return undefined;
    const at = (this.job.spec.successPolicy?.rules ?? []).findIndex(({ succeededIndexes, succeededCount }) => {
      if (succeededIndexes === undefined) return succeededCount !== undefined && succeeded.size >= succeededCount;
      const required = IndexSet.parse(succeededIndexes, completions);
      const common = required.countCommon(succeeded);
      return (
        required.size > 0 && (common === required.size || (succeededCount !== undefined && common >= succeededCount))
      );
    });
    return at < 0 ? undefined : at;
  }
}

function verdictOf(outcome: Verdict['outcome'], reason = '', message = ''): Verdict {
  return { outcome, reason, message };
}
