import { StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import { addAbortListener, removeAbortListener } from '../meta/abort-listeners.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Revision, Store } from './store.ts';
import { throwIfAborted } from './store-helpers.ts';

/** How long a read waits for a revision that has not been reached: see docs/reference/api-rules.md#future-revisions. */
export const futureRevisionWaitMs = 3_000;

export function futureRevision(wanted: Revision, current: Revision): StorageError {
  return new StorageError(
    StorageErrorCode.FutureRevision,
    `revision ${wanted} has not been reached, the store is at ${current}`,
    {
      revision: current,
    },
  );
}

/**
 * Resolves when the store has reached `wanted`. Polls the store at growing intervals while a caller waits.
 *
 * @throws StorageError `FutureRevision` after three seconds.
 */
export async function awaitRevision(store: Store, clock: Clock, wanted: Revision, signal?: AbortSignal): Promise<void> {
  const deadline = clock.monotonic() + futureRevisionWaitMs;
  for (let pauseMs = 10; ; pauseMs = Math.min(pauseMs * 2, 250)) {
    throwIfAborted(signal);
    const current = await store.currentRevision(signal === undefined ? {} : { signal });
    if (current >= wanted) return;
    const left = deadline - clock.monotonic();
    if (left <= 0) throw futureRevision(wanted, current);
    await pause(clock, Math.min(pauseMs, left), signal);
  }
}

/** Resolves after the time, or at once when aborted. */
export function pause(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = () => {
      cancel();
      removeAbortListener(signal, finish);
      resolve();
    };
    const cancel = clock.after(ms, finish);
    addAbortListener(signal, finish);
  });
}
