import { isStorageError } from '@keelson/core';
import type { Settings } from './settings.ts';
import { SqlState, sqlStateOf } from './sql-state.ts';
import { isConnectionLost, isOutOfConnections } from './translate-error.ts';

const firstPauseMs = 50;
const longestPauseMs = 1000;

/** Pauses grow by half to double each time, so that servers that lost the database together do not return together. */
export function nextPause(pauseMs: number, longestMs: number): number {
  return Math.min(longestMs, pauseMs * (1.5 + Math.random() / 2));
}

/**
 * Repeats something harmless while the database cannot be reached, for `connectTimeoutMs`.
 *
 * @throws the last error.
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
  // Of our own errors that of a standby may pass: it is promoted, or the address leads elsewhere.
  if (isStorageError(error)) return error.code === 'Unavailable' || error.code === 'Timeout';
  return isConnectionLost(error) || isOutOfConnections(error) || sqlStateOf(error) === SqlState.wrongState;
}
