import { type Change, orderedForm } from '@keelson/core/storage-adapter';
import { entryOf, type KeySpace } from '../wire/key-space.ts';
import type { WatchEvent } from '../wire/watch-response.ts';

/** A change that was received from etcd, not yet filtered by the range of a watcher. */
export interface LoggedChange {
  readonly revision: number;
  /** The key in the form whose code-unit order is key order; undefined for an internal record of the store. */
  readonly ordered: string | undefined;
  readonly change: Change;
  readonly sizeBytes: number;
  /** The watch requires the previous state, and the answer lacks it. */
  readonly prevMissing: boolean;
}

/** Approximate memory, in bytes, of the objects around a value. */
const overheadBytes = 300;

export function loggedChange(keys: KeySpace, event: WatchEvent, prevKv: boolean, messageBytes: number): LoggedChange {
  const { kv, deleted } = event;
  const revision = kv.modRevision;
  const key = keys.decode(kv.key);
  const entry = deleted ? undefined : entryOf(key, kv, messageBytes);
  const type = deleted ? 'delete' : kv.createRevision === revision ? 'create' : 'update';
  const prev =
    prevKv && event.prev !== undefined && type !== 'create' ? entryOf(key, event.prev, messageBytes) : undefined;
  const change: Change = prev === undefined ? { type, revision, key, entry } : { type, revision, key, entry, prev };
  return {
    revision,
    ordered: keys.isHidden(kv.key) ? undefined : orderedForm(key),
    change,
    sizeBytes: overheadBytes + key.length * 2 + (entry?.value.byteLength ?? 0) + (prev?.value.byteLength ?? 0),
    prevMissing: prevKv && prev === undefined && type !== 'create',
  };
}
