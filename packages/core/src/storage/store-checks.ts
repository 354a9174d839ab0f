import { StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import type { Revision } from './store.ts';

/** @throws StorageError `Compacted` when `revision` is below the bound. */
export function checkNotCompacted(revision: Revision, compacted: Revision): void {
  if (revision >= compacted) return;
  throw new StorageError(
    StorageErrorCode.Compacted,
    `revision ${revision} is compacted, history begins at ${compacted}`,
    {
      revision: compacted,
    },
  );
}

/** @throws StorageError `Timeout` (nothing has happened) when the caller has given up already. */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted)
    throw new StorageError(StorageErrorCode.Timeout, 'the call was aborted', { cause: signal.reason });
}
