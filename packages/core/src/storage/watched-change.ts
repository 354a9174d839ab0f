import type { ObjectPredicate, WatchEventType } from './resource-storage.ts';
import type { StoredObject } from './stored-object.ts';

/**
 * What a watcher with this predicate sees of a change from `prev` to `current`, or undefined when it sees nothing. Objects that
 * begin to match appear as ADDED, objects that cease to match as DELETED.
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
