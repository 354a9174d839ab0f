import { isStorageError } from '@keelson/core';
import type { Settings } from './settings.ts';
import { SqlState, sqlStateOf } from './sql-state.ts';
import { isConnectionLost, isOutOfConnections } from './translate-error.ts';

const firstPauseMs = 50;
const longestPauseMs = 1000;

/** Returns the next pause: 1.5 to 2 times the last, at random, so that servers do not reconnect at the same time. */
export function nextPause(pauseMs: number, longestMs: number): number {
  // Not injected: jitter, which spreads load over time and decides no result.
  return Math.min(longestMs, pauseMs * (1.5 + Math.random() / 2));
}

/**
 * Retries an idempotent operation for `connectTimeoutMs` while the database cannot be reached.
 *
 * @throws the last error
 */
export async function retrying<T>({ clock, connectTimeoutMs }: Settings, attempt: () => Promise<T>): Promise<T> {
  const deadline = clock.monotonic() + connectTimeoutMs;
  for (let pauseMs = firstPauseMs; ; pauseMs = nextPause(pauseMs, longestPauseMs)) {
    try {
      return await attempt();
    } catch (error) {
      if (!mayPass(error) || clock.monotonic() + pauseMs > deadline) throw error;
    }
    await new Promise<void>((resolve) => {
      clock.after(pauseMs, resolve);
    });
  }
}

function mayPass(error: unknown): boolean {
  // The adapter itself reports `Unavailable`, for example, for a standby, which may be promoted or lose its address.
  if (isStorageError(error)) return error.code === 'Unavailable' || error.code === 'Timeout';
  return isConnectionLost(error) || isOutOfConnections(error) || sqlStateOf(error) === SqlState.wrongState;
}
