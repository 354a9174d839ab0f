import { type Clock, StorageError, StorageErrorCode } from '@keelson/core';

/**
 * The outcome of a write, or `OutcomeUnknown` when its caller stops waiting: the write goes on, since others may already have
 * been decided on top of it.
 */
export function settlement<T>(
  outcome: Promise<T>,
  clock: Clock,
  options: { readonly signal?: AbortSignal; readonly timeoutMs?: number },
): Promise<T> {
  const { signal, timeoutMs } = options;
  if (signal === undefined && timeoutMs === undefined) return outcome;
  return new Promise((resolve, reject) => {
    const release = () => {
      signal?.removeEventListener('abort', abort);
      cancel?.();
    };
    const giveUp = (message: string, cause: unknown) => {
      release();
      reject(new StorageError(StorageErrorCode.OutcomeUnknown, message, cause === undefined ? {} : { cause }));
    };
    const abort = () => giveUp('the call was aborted while the write was under way', signal?.reason);
    const cancel =
      timeoutMs === undefined
        ? undefined
        : clock.after(timeoutMs, () => giveUp(`the write did not finish within ${timeoutMs} ms`, undefined));
    signal?.addEventListener('abort', abort, { once: true });
    outcome.then(resolve, reject).finally(release);
  });
}
