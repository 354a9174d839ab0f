import type { CallOptions } from '@keelson/container-runtime';
import { addAbortListener, type Clock, removeAbortListener } from '@keelson/core';
import { NetworkError } from '../network-error.ts';

/**
 * Runs `work` with a signal that fires when the caller gives up or the time is over; the signal's reason is the error
 * to throw. Unlike a bounded call it waits for `work` to end, which takes back what it began.
 */
export async function withinDeadline<T>(
  clock: Clock,
  what: string,
  limitMs: number,
  { signal, timeoutMs = limitMs }: CallOptions,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const ending = new AbortController();
  const ms = Math.min(limitMs, timeoutMs);
  const giveUp = () =>
    ending.abort(new NetworkError('Aborted', `${what}: the caller gave up`, { cause: signal?.reason }));
  const cancel = clock.after(ms, () =>
    ending.abort(new NetworkError('DeadlineExceeded', `${what}: not done within ${ms} ms`)),
  );
  addAbortListener(signal, giveUp);
  if (signal?.aborted) giveUp();
  try {
    ending.signal.throwIfAborted();
    return await work(ending.signal);
  } finally {
    cancel();
    removeAbortListener(signal, giveUp);
  }
}
