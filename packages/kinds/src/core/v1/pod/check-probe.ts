import { fieldError } from '@keelson/core';
import type { Errors } from '../../../validation/checks.ts';
import { checkNonNegative, checkPositive } from '../../../validation/checks.ts';
import type { Probe } from '../schema/index.ts';
import { checkHandler } from './check-handler.ts';

/** Validates a probe. Liveness and startup probes require `successThreshold` 1. */
export function checkProbe(
  probe: Probe | undefined,
  role: 'liveness' | 'readiness' | 'startup',
  path: string,
  errors: Errors,
): void {
  if (!probe) return;
  checkHandler(probe, 0, path, errors);
  checkNonNegative(probe.initialDelaySeconds, `${path}.initialDelaySeconds`, errors);
  checkNonNegative(probe.timeoutSeconds, `${path}.timeoutSeconds`, errors);
  checkNonNegative(probe.periodSeconds, `${path}.periodSeconds`, errors);
  checkNonNegative(probe.successThreshold, `${path}.successThreshold`, errors);
  checkNonNegative(probe.failureThreshold, `${path}.failureThreshold`, errors);
  checkPositive(probe.terminationGracePeriodSeconds, `${path}.terminationGracePeriodSeconds`, errors);
  if (role === 'readiness') {
    if (probe.terminationGracePeriodSeconds !== undefined) {
      errors.push(
        fieldError.invalid(
          `${path}.terminationGracePeriodSeconds`,
          probe.terminationGracePeriodSeconds,
          'must not be set for readinessProbes',
        ),
      );
    }
  } else if (probe.successThreshold !== undefined && probe.successThreshold !== 1) {
    errors.push(fieldError.invalid(`${path}.successThreshold`, probe.successThreshold, 'must be 1'));
  }
}
