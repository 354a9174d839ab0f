import { addAbortListener, type Clock, removeAbortListener } from '@keelson/core';

/** A deadline passed, by the agent's clock. */
export class DeadlineError extends Error {
  constructor(ms: number) {
    super(`not done within ${ms} ms`);
    this.name = 'DeadlineError';
  }
}

/**
 * Runs something with a signal that aborts when `ms` are over or the outer one aborts. Settles at the deadline even
 * when what runs does not heed the signal. @throws DeadlineError
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
