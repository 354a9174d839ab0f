import { isRuntimeError } from '@keelson/container-runtime';
import type { Clock } from '@keelson/core';
import { pause } from './pause.ts';

const lookAgainMs = 50;
const rounds = 100;

/** Stopping and removing what is not there does nothing. */
export async function unlessGone(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!isRuntimeError(error, 'NotFound')) throw error;
  }
}

/**
 * Removes something that somebody else may be removing or starting at this moment, which daemons refuse: resolves when
 * it is gone.
 */
export async function removed(clock: Clock, remove: () => Promise<unknown>, signal?: AbortSignal): Promise<void> {
  for (let round = 1; ; round += 1) {
    try {
      await unlessGone(remove());
      return;
    } catch (error) {
      if (!isRuntimeError(error, 'InvalidState') || round === rounds) throw error;
    }
    await pause(clock, lookAgainMs, signal);
  }
}
