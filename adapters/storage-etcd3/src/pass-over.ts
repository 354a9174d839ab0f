import { StorageError, StorageErrorCode } from '@keelson/core';
import type { Logger } from '@keelson/core/runtime';
import type { Revision } from '@keelson/core/storage-adapter';
import type { Cluster } from './net/cluster.ts';
import type { KeySpace } from './wire/key-space.ts';
import { encodePut } from './wire/requests.ts';
import { decodeTxn } from './wire/responses.ts';

/** Revisions that may have been assigned after the highest one that was recorded. */
const margin = 5000;
/** More revisions than this would take minutes: each revision is one transaction. */
const maxMissing = 200_000;
const inFlight = 64;
const nothing = Buffer.alloc(0);

/**
 * Whether the revision after `current` may have been assigned before a snapshot was restored.
 *
 * @param highest the highest revision that was observed; 0 when none was
 */
export function mayHaveBeenAssigned(current: Revision, highest: Revision): boolean {
  return highest > 0 && current < highest + margin;
}

/**
 * Raises the revision of etcd above the highest revision that was observed before a snapshot was restored, and above
 * those that may have been assigned after it. A running etcd cannot skip revisions, so that they are used up by writes
 * to an internal record. Another server may be using them up at the same time.
 *
 * @throws StorageError `Unavailable`, with the remedy, when too many revisions are missing
 */
export async function useUpRevisions(
  { cluster, keys, logger }: { readonly cluster: Cluster; readonly keys: KeySpace; readonly logger: Logger },
  current: Revision,
  highest: Revision,
): Promise<void> {
  const missing = highest - current;
  if (missing > maxMissing) {
    throw new StorageError(
      StorageErrorCode.Unavailable,
      `etcd is at revision ${current}, but has been at ${highest}: an older snapshot was restored; ` +
        `restore it again with etcdutl snapshot restore --bump-revision ${missing + 1_000_000} --mark-compacted, or stop all servers and ` +
        'their clients and start once with --accept-new-store',
    );
  }
  logger.warn('an older snapshot was restored, missing revisions are used up by writes', { current, highest });
  let reached = current;
  const request = encodePut(keys.cookie, nothing);
  const writer = async () => {
    while (mayHaveBeenAssigned(reached, highest)) {
      const { header } = await cluster.write('/etcdserverpb.KV/Txn', request, decodeTxn, { uninspected: true });
      reached = Math.max(reached, header.revision);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, writer));
}
