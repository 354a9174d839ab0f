import { StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import type { ObjectPredicate, WatchEventType } from './resource-storage.ts';
import type { Revision } from './store.ts';
import type { StoredObject } from './stored-object.ts';

/**
 * What a watcher with this predicate sees of a change from `prev` to `current`, or undefined when it sees nothing.
 * Objects that begin to match appear as ADDED, objects that cease to match as DELETED.
 */
export function watchedChange(
  predicate: ObjectPredicate,
  prev: StoredObject | undefined,
  current: StoredObject | undefined,
): WatchEventType | undefined {
  const before = prev !== undefined && (predicate.everything || predicate.matches(prev));
  const after = current !== undefined && (predicate.everything || predicate.matches(current));
  if (after) return before ? 'MODIFIED' : 'ADDED';
  return before ? 'DELETED' : undefined;
}

/**
 * The state before a change, for an event. When its bytes are damaged the change cannot be shown, and the watch ends
 * with `Compacted`: its client lists again and receives the state after the change.
 */
export function shownBefore(prev: StoredObject | undefined, revision: Revision): StoredObject | undefined {
  if (!prev?.corrupt) return prev;
  throw new StorageError(
    StorageErrorCode.Compacted,
    `the state of ${prev.key} before revision ${revision} is damaged`,
    {
      key: prev.key,
      revision,
    },
  );
}
