import type { Clock } from '@keelson/core';

/** A pull was ended because nothing came any more. */
export class PullStalled extends Error {}

/**
 * Runs a pull and ends it when it has made no progress for `deadlineMs` (0 = however long it takes). The pull calls
 * `onProgress` and listens to the signal it is given. @throws PullStalled
 */
export async function withProgressDeadline<T>(
  clock: Clock,
  deadlineMs: number,
  signal: AbortSignal,
  pull: (onProgress: () => void, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (deadlineMs <= 0) return pull(() => {}, signal);
  const stalled = new AbortController();
  let cancel = () => {};
  const rearm = () => {
    cancel();
    cancel = clock.after(deadlineMs, () => stalled.abort());
  };
  rearm();
  try {
    return await pull(rearm, AbortSignal.any([signal, stalled.signal]));
  } catch (error) {
    if (stalled.signal.aborted && !signal.aborted) {
      throw new PullStalled(`no progress for ${deadlineMs / 1000} s, the pull was cancelled`, { cause: error });
    }
    throw error;
  } finally {
    cancel();
  }
}
