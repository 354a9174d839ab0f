import { addAbortListener, type Clock, removeAbortListener } from '@keelson/core/runtime';

/** An operation did not finish before its deadline. */
export class DeadlineError extends Error {
  constructor(ms: number) {
    super(`not done within ${ms} ms`);
    this.name = 'DeadlineError';
  }
}

/**
 * Runs an operation with a signal that aborts after `ms` milliseconds or when the outer signal aborts. Settles at the
 * deadline even when the operation ignores the signal.
 *
 * @throws DeadlineError
 */
export async function withDeadline<T>(
  clock: Clock,
  ms: number,
  outer: AbortSignal,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const onAbort = () => controller.abort(outer.reason);
  if (outer.aborted) onAbort();
  addAbortListener(outer, onAbort);
  let cancel = () => {};
  const late = new Promise<never>((_, reject) => {
    cancel = clock.after(ms, () => {
      const error = new DeadlineError(ms);
      reject(error);
      controller.abort(error);
    });
  });
  const running = run(controller.signal);
  running.catch(() => {});
  try {
    return await Promise.race([running, late]);
  } finally {
    cancel();
    removeAbortListener(outer, onAbort);
  }
}
