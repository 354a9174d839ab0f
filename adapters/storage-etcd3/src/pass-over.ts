import { type Logger, type Revision, StorageError, StorageErrorCode } from '@keelson/core';
import type { Cluster } from './net/cluster.ts';
import type { KeySpace } from './wire/key-space.ts';
import { encodePut } from './wire/requests.ts';
import { decodeTxn } from './wire/responses.ts';

/** Revisions that may have been given out after the last one that somebody wrote down. */
const margin = 5000;
/** More than this would take minutes: etcd has one revision per transaction. */
const most = 200_000;
const inFlight = 64;
const nothing = Buffer.alloc(0);

/**
 * Brings etcd above a revision that it had before a snapshot was put in its place. etcd cannot be told to skip
 * revisions while it runs, so they are used up by writes to a record that nobody sees.
 *
 * @returns the revision that is current then
 * @throws StorageError `Unavailable`, with what to do, when there are too many.
 */
export async function useUpRevisions(
  { cluster, keys, logger }: { readonly cluster: Cluster; readonly keys: KeySpace; readonly logger: Logger },
  current: Revision,
  seen: Revision,
): Promise<Revision> {
  const missing = seen - current;
  if (missing <= 0) return current;
  if (missing > most) {
    throw new StorageError(
      StorageErrorCode.Unavailable,
      `etcd is at revision ${current}, but has been at ${seen}: an older snapshot was restored; restore it again with ` +
        `etcdutl snapshot restore --bump-revision ${missing + 1_000_000} --mark-compacted, or stop all servers and their clients and start once with --accept-new-store`,
    );
  }
  logger.warn('an older snapshot was restored, its missing revisions are used up', { current, seen });
  let reached = current;
  const request = encodePut(keys.cookie, nothing);
  const writer = async () => {
    while (reached < seen + margin) {
      const { header } = await cluster.write('/etcdserverpb.KV/Txn', request, decodeTxn, { uninspected: true });
      reached = Math.max(reached, header.revision);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, writer));
  return reached;
}
