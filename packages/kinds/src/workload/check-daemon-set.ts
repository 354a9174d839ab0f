import { fieldError } from '@keelson/core';
import type { Errors } from '../validation/checks.ts';
import { checkNonNegative } from '../validation/checks.ts';
import { checkWorkload, type WorkloadSpec } from './check-workload.ts';
import { checkDaemonSetPace, type RollingUpdate } from './rolling-update.ts';
import { checkCounts } from './status-counts.ts';

interface DaemonSetSpec extends WorkloadSpec {
  readonly updateStrategy?: { readonly type?: string; readonly rollingUpdate?: RollingUpdate };
  readonly revisionHistoryLimit?: number;
}

/** Validates the spec of a DaemonSet of all versions. */
export function checkDaemonSet(spec: DaemonSetSpec, errors: Errors): void {
  checkWorkload(spec, 'DaemonSet', errors);
  checkNonNegative(spec.revisionHistoryLimit, 'spec.revisionHistoryLimit', errors);
  const strategy = spec.updateStrategy ?? {};
  const path = 'spec.updateStrategy';
  if (strategy.type === 'RollingUpdate') {
    if (strategy.rollingUpdate) checkDaemonSetPace(strategy.rollingUpdate, `${path}.rollingUpdate`, errors);
    else errors.push(fieldError.required(`${path}.rollingUpdate`));
  } else if (strategy.type !== 'OnDelete') {
    errors.push(fieldError.notSupported(`${path}.type`, strategy.type ?? '', ['OnDelete', 'RollingUpdate']));
  }
}

interface DaemonSetStatus {
  readonly currentNumberScheduled?: number;
  readonly numberMisscheduled?: number;
  readonly desiredNumberScheduled?: number;
  readonly numberReady?: number;
  readonly observedGeneration?: number;
  readonly updatedNumberScheduled?: number;
  readonly numberAvailable?: number;
  readonly numberUnavailable?: number;
  readonly collisionCount?: number;
}

const counts = [
  'currentNumberScheduled',
  'numberMisscheduled',
  'desiredNumberScheduled',
  'numberReady',
  'observedGeneration',
  'updatedNumberScheduled',
  'numberAvailable',
  'numberUnavailable',
  'collisionCount',
] as const;

/** Validates the status of a DaemonSet. */
export function checkDaemonSetStatus(
  status: DaemonSetStatus | undefined,
  old: DaemonSetStatus | undefined,
  errors: Errors,
): void {
  if (!status) return;
  checkCounts(status, counts, errors);
  if ((status.collisionCount ?? 0) < (old?.collisionCount ?? 0)) {
    errors.push(fieldError.invalid('status.collisionCount', status.collisionCount ?? 0, 'cannot be decremented'));
  }
}
