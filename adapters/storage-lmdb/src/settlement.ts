import { type Clock, StorageError, StorageErrorCode } from '@keelson/core';

/** A write is on disk sooner as a rule: only who waits longer than this listens for its caller's leaving, which costs as much as the write. */
const settledSoonMs = 20;

/** What those that have begun to wait lately do when the time above is over. */
const recent = new Set<() => void>();
let scheduled = false;

function soon(listen: () => void): void {
  recent.add(listen);
  if (scheduled) return;
  scheduled = true;
  setTimeout(() => {
    scheduled = false;
    const waiting = [...recent];
    recent.clear();
    for (const each of waiting) each();
  }, settledSoonMs);
}

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
    const giveUp = (message: string, cause: unknown) => {
      release();
      // What comes later has no effect.
      reject(new StorageError(StorageErrorCode.OutcomeUnknown, message, cause === undefined ? {} : { cause }));
    };
    const abort = () => giveUp('the call was aborted while the write was under way', signal?.reason);
    const listen = () => {
      if (signal?.aborted) abort();
      else signal?.addEventListener('abort', abort, { once: true });
    };
    const cancel =
      timeoutMs === undefined
        ? undefined
        : clock.after(timeoutMs, () => giveUp(`the write did not finish within ${timeoutMs} ms`, undefined));
    const release = () => {
      if (!recent.delete(listen)) signal?.removeEventListener('abort', abort);
      cancel?.();
    };
    if (signal !== undefined) soon(listen);
    outcome.then(
      (value) => {
        if (signal?.aborted) abort();
        release();
        resolve(value);
      },
      (error: unknown) => {
        release();
        reject(error);
      },
    );
  });
}
