import { pause } from '@keelson/client';
import type { Clock } from '@keelson/core';

const lookMs = 20;
const never = new AbortController().signal;

/**
 * Looks until something is so; false when it is not in time. Nothing tells of the end of a process that is not this
 * one's child.
 */
export async function waitUntil(isSo: () => Promise<boolean>, withinMs: number, clock: Clock): Promise<boolean> {
  const deadline = clock.monotonic() + withinMs;
  while (!(await isSo())) {
    if (clock.monotonic() >= deadline) return false;
    await pause(clock, lookMs, never);
  }
  return true;
}
