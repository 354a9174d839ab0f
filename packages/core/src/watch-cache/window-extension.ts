import type { Clock } from '../runtime/clock.ts';
import type { ObjectSource } from '../storage/storage-memory.ts';
import { type Change, prefixRange, type Revision, type Store } from '../storage/store.ts';
import { StoredObject } from '../storage/stored-object.ts';
import { type EventWindow, KindEvent } from './event-window.ts';

/**
 * Reads history of the store into the window for watches that start before it, once for all of them. After a restart of
 * the process every client resumes at a revision that is before the window.
 */
export class WindowExtension {
  readonly #store: Store;
  readonly #source: ObjectSource;
  readonly #prefix: string;
  readonly #window: EventWindow;
  readonly #clock: Clock;
  #running: Promise<void> | undefined;
  /** The window cannot be extended to this revision or before: the events do not fit, or they are compacted. */
  #unreachable: Revision = 0;

  constructor(store: Store, source: ObjectSource, prefix: string, window: EventWindow, clock: Clock) {
    this.#store = store;
    this.#source = source;
    this.#prefix = prefix;
    this.#window = window;
    this.#clock = clock;
  }

  /** Extends the window to begin at the revision or before, if that is possible. Never fails. */
  async reach(revision: Revision): Promise<void> {
    while (revision < this.#window.startRevision && revision > this.#unreachable) {
      this.#running ??= this.#extend(revision).finally(() => {
        this.#running = undefined;
      });
      await this.#running;
    }
  }

  async #extend(after: Revision): Promise<void> {
    try {
      if (await this.#read(after)) return;
    } catch {
      // The watch that requires these events reads the store itself and receives the error.
    }
    this.#unreachable = Math.max(this.#unreachable, after);
  }

  async #read(after: Revision): Promise<boolean> {
    const window = this.#window;
    const events: KindEvent[] = [];
    const newest = new Map<string, StoredObject>();
    const at = window.at(window.firstSequence)?.at ?? this.#clock.monotonic();
    const stream = await this.#store.watch(prefixRange(this.#prefix), { after, prevValue: true });
    for await (const batch of stream) {
      for (const change of batch.changes) {
        if (change.revision <= window.startRevision) events.push(this.#eventOf(change, newest, at));
      }
      if (batch.frontier >= window.startRevision) return window.prepend(after, events);
      if (!window.hasRoomFor(events)) return false;
    }
    return false;
  }

  /** A state that two events share is one object, as in a window that was filled by the feed. */
  #eventOf(change: Change, newest: Map<string, StoredObject>, at: number): KindEvent {
    const { key, entry, prev: before, revision } = change;
    const latest = newest.get(key);
    const prev =
      before === undefined || latest?.revision === before.modRevision
        ? latest
        : StoredObject.fromEntry(before, this.#source);
    const object = entry === undefined ? undefined : StoredObject.fromEntry(entry, this.#source);
    if (object === undefined) newest.delete(key);
    else newest.set(key, object);
    return new KindEvent(revision, key, object, before === undefined ? undefined : prev, at);
  }
}
