import type { ObjectPredicate } from '../storage/resource-storage.ts';
import { SharedWatchEvent } from '../storage/shared-watch-event.ts';
import type { Key, Revision } from '../storage/store.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import { shownBefore, watchedChange } from '../storage/watched-change.ts';

/** One change of one kind, with the state before it, and what watchers see of it. */
export class KindEvent {
  readonly revision: Revision;
  readonly key: Key;
  /** Undefined when the key was deleted. */
  readonly object: StoredObject | undefined;
  /** Undefined when the key was created. */
  readonly prev: StoredObject | undefined;
  /** Monotonic milliseconds. */
  readonly at: number;
  #added: SharedWatchEvent | undefined = undefined;
  #modified: SharedWatchEvent | undefined = undefined;
  #deleted: SharedWatchEvent | undefined = undefined;

  constructor(
    revision: Revision,
    key: Key,
    object: StoredObject | undefined,
    prev: StoredObject | undefined,
    at: number,
  ) {
    this.revision = revision;
    this.key = key;
    this.object = object;
    this.prev = prev;
    this.at = at;
  }

  /** Bytes that stay in memory only because of this event. */
  get heldBytes(): number {
    // A deletion's last state exists a second time, stamped with the deletion's revision.
    return (this.prev?.byteLength ?? 0) * (this.object === undefined ? 2 : 1) + 256;
  }

  /** The event as watchers with this predicate see it; the same object for all that see it the same way. */
  seenBy(predicate: ObjectPredicate): SharedWatchEvent | undefined {
    const { object, prev } = this;
    switch (watchedChange(predicate, shownBefore(prev, this.revision), object?.readable())) {
      case 'ADDED':
        if (object === undefined) return undefined;
        this.#added ??= new SharedWatchEvent('ADDED', object);
        return this.#added;
      case 'MODIFIED':
        if (object === undefined) return undefined;
        this.#modified ??= new SharedWatchEvent('MODIFIED', object);
        return this.#modified;
      case 'DELETED':
        if (prev === undefined) return undefined;
        this.#deleted ??= new SharedWatchEvent('DELETED', prev.restamped(this.revision));
        return this.#deleted;
      default:
        return undefined;
    }
  }
}
