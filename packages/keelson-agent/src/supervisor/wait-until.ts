import { type Clock, pause } from '@keelson/core/runtime';

const pollMs = 20;
const never = new AbortController().signal;

/**
 * Polls until a condition holds; false when it does not hold in time. The kernel reports the end of a process to its
 * parent only, so that other processes are polled.
 */
export async function waitUntil(holds: () => Promise<boolean>, withinMs: number, clock: Clock): Promise<boolean> {
  const deadline = clock.monotonic() + withinMs;
  while (!(await holds())) {
    if (clock.monotonic() >= deadline) return false;
    await pause(clock, pollMs, never);
  }
  return true;
}
