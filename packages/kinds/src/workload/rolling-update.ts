import { fieldError, percentOf } from '@keelson/core';
import { checkNonNegative } from '../validation/checks.ts';
import type { Errors } from '../validation/errors.ts';

/** How many may be missing and how many may be too many during a rolling update: numbers or percentages. */
export interface RollingUpdate {
  readonly maxUnavailable?: number | string;
  readonly maxSurge?: number | string;
}

/** A count or a percentage, not negative. */
function checkCount(value: number | string | undefined, path: string, errors: Errors): void {
  if (typeof value === 'number') checkNonNegative(value, path, errors);
  else if (value !== undefined && percentOf(value) === undefined) {
    errors.push(fieldError.invalid(path, value, "must be an integer or percentage (e.g '5%')"));
  }
}

function checkNotAll(value: number | string | undefined, path: string, errors: Errors): void {
  if (typeof value === 'string' && (percentOf(value) ?? 0) > 100) {
    errors.push(fieldError.invalid(path, value, 'must not be greater than 100%'));
  }
}

/** `0`, `0%` and absent. */
function isNothing(value: number | string | undefined): boolean {
  return value === undefined || value === 0 || (typeof value === 'string' && percentOf(value) === 0);
}

/** The pace of a Deployment: at least one of the two must leave room. */
export function checkDeploymentPace(pace: RollingUpdate, path: string, errors: Errors): void {
  checkCount(pace.maxUnavailable, `${path}.maxUnavailable`, errors);
  checkCount(pace.maxSurge, `${path}.maxSurge`, errors);
  if (isNothing(pace.maxUnavailable) && isNothing(pace.maxSurge)) {
    errors.push(
      fieldError.invalid(`${path}.maxUnavailable`, pace.maxUnavailable ?? 0, 'may not be 0 when `maxSurge` is 0'),
    );
  }
  checkNotAll(pace.maxUnavailable, `${path}.maxUnavailable`, errors);
}

/** The pace of a DaemonSet: exactly one of the two, because a node has one pod. */
export function checkDaemonSetPace(pace: RollingUpdate, path: string, errors: Errors): void {
  for (const field of ['maxUnavailable', 'maxSurge'] as const) {
    checkCount(pace[field], `${path}.${field}`, errors);
    checkNotAll(pace[field], `${path}.${field}`, errors);
  }
  const unavailable = !isNothing(pace.maxUnavailable);
  const surge = !isNothing(pace.maxSurge);
  if (!unavailable && !surge) {
    errors.push(fieldError.required(`${path}.maxUnavailable`, 'cannot be 0 when maxSurge is 0'));
  } else if (unavailable && surge) {
    errors.push(
      fieldError.invalid(`${path}.maxSurge`, pace.maxSurge, 'may not be set when maxUnavailable is non-zero'),
    );
  }
}
