import { fieldError, timeMs } from '@keelson/core';
import { checkUnique, type Errors, invalidWithoutValue, sameJson } from '../../validation/checks.ts';
import { checkCounts } from '../../workload/status-counts.ts';
import { commonIndex, countIndexes } from './indexes.ts';
import type { Job, JobStatus } from './schema/index.ts';

/** True when the status has a condition of this type with the status True. */
export function hasJobCondition(status: JobStatus | undefined, type: string): boolean {
  return status?.conditions?.some((condition) => condition.type === type && condition.status === 'True') ?? false;
}

/** The state of a job according to its conditions. */
function stateOf(status: JobStatus) {
  const complete = hasJobCondition(status, 'Complete');
  const failed = hasJobCondition(status, 'Failed');
  const failureTarget = hasJobCondition(status, 'FailureTarget');
  const criteriaMet = hasJobCondition(status, 'SuccessCriteriaMet');
  return { complete, failed, failureTarget, criteriaMet, finished: complete || failed };
}

type State = ReturnType<typeof stateOf>;

/** The new status and the stored one. A rule is applied only if a field that it checks has changed. */
interface Change {
  readonly job: Job;
  readonly status: JobStatus;
  readonly before: JobStatus;
  readonly now: State;
  readonly was: State;
  readonly changed: (...fields: (keyof JobStatus)[]) => boolean;
}

/** Validates the status of a job, because an external controller may write it. */
export function checkJobStatus(job: Job, old: Job, errors: Errors): void {
  const [status, before] = [job.status ?? {}, old.status ?? {}];
  const changed = (...fields: (keyof JobStatus)[]) => fields.some((field) => !sameJson(status[field], before[field]));
  const change: Change = { job, status, before, now: stateOf(status), was: stateOf(before), changed };
  checkCounts(status, ['active', 'succeeded', 'failed', 'ready', 'terminating'], errors);
  checkUncounted(status, errors);
  checkConditions(change, errors);
  checkTimes(change, old, errors);
  checkFinished(change, errors);
  checkIndexes(change, errors);
  checkProgress(change, errors);
}

function checkUncounted({ uncountedTerminatedPods: pods }: JobStatus, errors: Errors): void {
  const seen = new Set<string>();
  for (const field of ['succeeded', 'failed'] as const) {
    for (const [i, uid] of (pods?.[field] ?? []).entries()) {
      const path = `status.uncountedTerminatedPods.${field}[${i}]`;
      if (uid === '') errors.push(fieldError.invalid(path, uid, 'must not be empty'));
      else checkUnique(uid, seen, path, errors);
    }
  }
}

function checkConditions({ job, now, was, changed }: Change, errors: Errors): void {
  const reject = (detail: string) => errors.push(invalidWithoutValue('status.conditions', detail));
  const completed = now.complete !== was.complete;
  if ((completed || now.failed !== was.failed) && now.complete && now.failed) {
    reject('cannot set Complete=True and Failed=true conditions');
  }
  if ((completed || now.failureTarget !== was.failureTarget) && now.complete && now.failureTarget) {
    reject('cannot set Complete=True and FailureTarget=true conditions');
  }
  if ((now.failed !== was.failed || changed('failedIndexes')) && now.failed && !now.failureTarget) {
    reject('cannot set Failed=True condition without the FailureTarget=true condition');
  }
  if ((completed || now.criteriaMet !== was.criteriaMet) && now.complete && !now.criteriaMet) {
    reject('cannot set Complete=True condition without the SuccessCriteriaMet=true condition');
  }
  if (now.criteriaMet && now.failed) reject('cannot set SuccessCriteriaMet=True and Failed=true conditions');
  if (now.criteriaMet && now.failureTarget) {
    reject('cannot set SuccessCriteriaMet=True and FailureTarget=true conditions');
  }
  if (job.spec.successPolicy && !now.criteriaMet && now.complete) {
    reject('cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True');
  }
  for (const [type, key] of [
    ['Failed', 'failed'],
    ['Complete', 'complete'],
    ['FailureTarget', 'failureTarget'],
  ] as const) {
    if (was[key] && !now[key]) reject(`cannot disable the terminal ${type}=True condition`);
  }
  if (was.criteriaMet && !now.criteriaMet) reject('cannot disable the SuccessCriteriaMet=True condition');
  if (was.complete && !was.criteriaMet && now.criteriaMet) {
    reject('cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions');
  }
}

function checkTimes({ job, status, before, now, was, changed }: Change, old: Job, errors: Errors): void {
  const { startTime, completionTime } = status;
  const completing = now.complete !== was.complete || changed('completionTime');
  const path = 'status.completionTime';
  if (completing && completionTime && !now.complete) {
    const detail = 'cannot set completionTime when there is no Complete=True condition';
    errors.push(fieldError.invalid(path, completionTime, detail));
  }
  if (completing && !completionTime && now.complete) {
    errors.push(fieldError.required(path, 'completionTime is required for Complete jobs'));
  }
  if (changed('startTime', 'completionTime') && startTime && completionTime) {
    if ((timeMs(completionTime) ?? 0) < (timeMs(startTime) ?? 0)) {
      errors.push(fieldError.invalid(path, completionTime, 'must be equal to or after `startTime`'));
    }
  }
  if (completionTime && before.completionTime && completionTime !== before.completionTime) {
    errors.push(fieldError.invalid(path, completionTime, 'field is immutable'));
  }
  const resumed =
    hasJobCondition(old.status, 'Suspended') &&
    status.conditions?.some(({ type, status: value }) => type === 'Suspended' && value === 'False');
  if (before.startTime && before.startTime !== startTime && !job.spec.suspend && !resumed) {
    errors.push(fieldError.required('status.startTime', 'startTime cannot be removed for unsuspended job'));
  }
}

function checkFinished({ job, status, now, was, changed }: Change, errors: Errors): void {
  const ended = now.finished !== was.finished;
  const { active = 0, ready, terminating = 0, uncountedTerminatedPods: pods } = status;
  if (changed('ready', 'active') && ready !== undefined && ready > active) {
    errors.push(fieldError.invalid('status.ready', ready, 'cannot set more ready pods than active'));
  }
  if (!now.finished) return;
  if ((ended || changed('active')) && active > 0) {
    errors.push(fieldError.invalid('status.active', active, 'active>0 is invalid for finished job'));
  }
  const neverStarted = job.spec.suspend && job.spec.completions === 0;
  if ((ended || changed('startTime')) && !neverStarted && !status.startTime) {
    errors.push(fieldError.required('status.startTime', 'startTime is required for finished job'));
  }
  if ((ended || changed('uncountedTerminatedPods')) && (pods?.failed?.length || pods?.succeeded?.length)) {
    errors.push(fieldError.invalid('status.uncountedTerminatedPods', pods, 'must be empty for finished job'));
  }
  if ((ended || changed('terminating')) && terminating > 0) {
    errors.push(fieldError.invalid('status.terminating', terminating, 'terminating>0 is invalid for finished job'));
  }
}

function checkIndexes({ job, status, changed }: Change, errors: Errors): void {
  const { completions, completionMode, backoffLimitPerIndex } = job.spec;
  const { completedIndexes = '', failedIndexes } = status;
  const checkFormat = (field: 'completedIndexes' | 'failedIndexes', text: string) => {
    const counted = countIndexes(text, completions ?? 0);
    if ('count' in counted) return;
    errors.push(fieldError.invalid(`status.${field}`, text, `error parsing ${field}: ${counted.problem}`));
  };
  if (changed('completedIndexes')) {
    if (completions !== undefined) checkFormat('completedIndexes', completedIndexes);
    if (completedIndexes !== '' && completionMode !== 'Indexed') {
      const detail = 'cannot set non-empty completedIndexes when non-indexed completion mode';
      errors.push(fieldError.invalid('status.completedIndexes', completedIndexes, detail));
    }
  }
  if (failedIndexes === undefined) return;
  if (changed('failedIndexes')) {
    if (backoffLimitPerIndex === undefined) {
      const detail = 'cannot set non-null failedIndexes when backoffLimitPerIndex is null';
      errors.push(fieldError.invalid('status.failedIndexes', failedIndexes, detail));
    } else if (completions !== undefined) {
      checkFormat('failedIndexes', failedIndexes);
    }
  }
  if (completions === undefined || !changed('failedIndexes', 'completedIndexes')) return;
  const common = commonIndex(completedIndexes, failedIndexes, completions);
  if (common === undefined) return;
  const detail = `failedIndexes and completedIndexes overlap at index: ${common}`;
  errors.push(fieldError.invalid('status.failedIndexes', failedIndexes, detail));
}

/** Rejects counts that shrink; an indexed job whose completions equal its parallelism can be scaled down. */
function checkProgress({ job, status, before }: Change, errors: Errors): void {
  const { completions, parallelism, completionMode } = job.spec;
  if ((status.failed ?? 0) < (before.failed ?? 0)) {
    errors.push(fieldError.invalid('status.failed', status.failed ?? 0, 'cannot decrease the failed counter'));
  }
  const scalable = completionMode === 'Indexed' && completions === parallelism;
  if (!scalable && (status.succeeded ?? 0) < (before.succeeded ?? 0)) {
    const detail = 'cannot decrease the succeeded counter';
    errors.push(fieldError.invalid('status.succeeded', status.succeeded ?? 0, detail));
  }
}
