import type { Check, CheckContext } from './check/check.ts';
import { cgroupChecks } from './check/check-cgroups.ts';
import { evictionChecks } from './check/check-eviction.ts';
import { networkChecks } from './check/check-network.ts';
import { podChecks } from './check/check-pods.ts';
import { runtimeChecks } from './check/check-runtime.ts';
import { servingChecks } from './check/check-serving.ts';
import { UsageError } from './usage-error.ts';

const checks: readonly Check[] = [
  ...servingChecks,
  ...runtimeChecks,
  ...podChecks,
  ...cgroupChecks,
  ...evictionChecks,
  ...networkChecks,
];

/**
 * Rejects values that are well-formed but out of range, or contradict each other.
 *
 * @throws UsageError with the first problem
 */
export function checkOptions(context: CheckContext): void {
  for (const check of checks) for (const problem of check(context)) throw new UsageError(problem);
}
