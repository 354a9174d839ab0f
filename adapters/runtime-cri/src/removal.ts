import { isRuntimeError } from '@keelson/container-runtime';
import type { Clock } from '@keelson/core/runtime';
import { pause } from './pause.ts';

const pollIntervalMs = 50;
const maxAttempts = 100;

/** Ignores `NotFound`: stopping or removing a missing object has no effect. */
export async function ignoreNotFound(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!isRuntimeError(error, 'NotFound')) throw error;
  }
}

/**
 * Repeats a removal that the daemon rejects with `InvalidState` because another client is removing or starting the same
 * object. Resolves when the object no longer exists.
 */
export async function removeWithRetries(
  clock: Clock,
  remove: () => Promise<unknown>,
  signal?: AbortSignal,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await ignoreNotFound(remove());
      return;
    } catch (error) {
      if (!isRuntimeError(error, 'InvalidState') || attempt === maxAttempts) throw error;
    }
    await pause(clock, pollIntervalMs, signal);
  }
}
