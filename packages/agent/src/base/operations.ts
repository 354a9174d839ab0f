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

/**
 * Processes all items, at most `atOnce` at the same time. Rejects with the first error after all started items have
 * been processed.
 */
export async function inParallel<T>(
  items: Iterable<T>,
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const left = items[Symbol.iterator]();
  const worker = async () => {
    for (let next = left.next(); !next.done; next = left.next()) await work(next.value);
  };
  const ends = await Promise.allSettled(Array.from({ length: atOnce }, worker));
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}
