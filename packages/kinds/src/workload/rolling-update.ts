import { fieldError, percentErrors, percentOf } from '@keelson/core';
import type { Errors } from '../validation/checks.ts';
import { checkNonNegative, pushInvalid } from '../validation/checks.ts';

/** Limits of a rolling update, as numbers or percentages. */
export interface RollingUpdate {
  readonly maxUnavailable?: number | string;
  readonly maxSurge?: number | string;
}

/** Requires a non-negative number or a percentage. */
export function checkCount(value: number | string | undefined, path: string, errors: Errors): void {
  if (typeof value === 'string') pushInvalid(percentErrors(value), value, path, errors);
  else checkNonNegative(value, path, errors);
}

/** Rejects a percentage above 100. */
export function checkNotAll(value: number | string | undefined, path: string, errors: Errors): void {
  if (typeof value === 'string' && (percentOf(value) ?? 0) > 100) {
    errors.push(fieldError.invalid(path, value, 'must not be greater than 100%'));
  }
}

/** True for `0`, `0%` and absent values. */
function isNothing(value: number | string | undefined): boolean {
  return value === undefined || value === 0 || (typeof value === 'string' && percentOf(value) === 0);
}

/** Validates the limits of a Deployment, of which at least one must not be zero. */
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

/** Validates the limits of a DaemonSet: exactly one of them must be greater than zero. */
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
