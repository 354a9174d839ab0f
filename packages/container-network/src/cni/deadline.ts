import type { CallOptions } from '@keelson/container-runtime';
import { addAbortListener, type Clock, removeAbortListener } from '@keelson/core/runtime';
import { NetworkError } from '../network-error.ts';

/**
 * Runs `work` with a signal that fires when the caller cancels or the deadline passes. The reason of the signal is the
 * error to throw. Unlike `boundedCall`, it waits until `work` has ended, so that `work` can clean up.
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
    ending.abort(new NetworkError('Aborted', `${what}: canceled by the caller`, { cause: signal?.reason }));
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
