import type { Pod } from '@keelson/kinds';
import { endedAt } from './job-pods.ts';

/** Pause after the first failure of a pod, and the longest one. */
const firstMs = 10_000;
const maxMs = 6 * 60_000;

/** The number of failed pods of a job since the last success. */
export interface FailureRun {
  readonly failures: number;
  /** Epoch milliseconds. */
  readonly lastAt: number;
}

/** The failures of a job after further pods have ended. A success resets them. */
export function afterEnds(
  before: FailureRun | undefined,
  succeeded: readonly Pod[],
  failed: readonly Pod[],
): FailureRun {
  const isReset = succeeded.length > 0;
  const lastSuccess = latest(succeeded.map(endedAt));
  const later = failed.map(endedAt).filter((end) => !isReset || end > lastSuccess);
  const { failures = 0, lastAt = 0 } = (isReset ? undefined : before) ?? {};
  return { failures: failures + later.length, lastAt: latest([lastAt, ...later]) };
}

function latest(times: readonly number[]): number {
  return times.reduce((last, time) => Math.max(last, time), 0);
}

/** Milliseconds until the next pod may be created; 0: now. */
export function pauseAfter({ failures, lastAt }: FailureRun, now: number): number {
  if (failures === 0) return 0;
  // The exponent is limited against overflow: the pause reaches its maximum after a few doublings.
  const pause = Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 20));
  return Math.max(0, lastAt + pause - now);
}
