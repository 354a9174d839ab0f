import { isStorageError, StorageError, StorageErrorCode } from '@keelson/core';
import { entryOf } from '../wire/key-space.ts';
import { encodeRange } from '../wire/requests.ts';
import { decodeRange } from '../wire/responses.ts';
import type { LoggedChange } from './logged-change.ts';
import type { WatchEnvironment } from './upstream-watch.ts';

/**
 * Adds the previous state to changes for which the server did not send it, by reading each key at the revision before.
 *
 * @throws StorageError `Compacted` when that revision is compacted
 */
export async function fillPrevious(
  { cluster, keys }: WatchEnvironment,
  changes: readonly LoggedChange[],
): Promise<readonly LoggedChange[]> {
  const filled: LoggedChange[] = [];
  for (const logged of changes) {
    if (!logged.prevMissing || logged.ordered === undefined) {
      filled.push(logged);
      continue;
    }
    const { key, revision } = logged.change;
    const compacted = (cause?: unknown) =>
      new StorageError(StorageErrorCode.Compacted, `the state before revision ${revision} is compacted`, {
        key,
        revision,
        cause,
      });
    const request = encodeRange({ key: keys.encode(key), revision: revision - 1 });
    const answer = await cluster.read('/etcdserverpb.KV/Range', request, decodeRange).catch((error: unknown) => {
      throw isStorageError(error, 'Compacted') ? compacted(error) : error;
    });
    const [kv] = answer.kvs;
    if (kv === undefined) throw compacted();
    const prev = entryOf(key, kv, kv.value.length);
    filled.push({ ...logged, change: { ...logged.change, prev }, sizeBytes: logged.sizeBytes + prev.value.byteLength });
  }
  return filled;
}
