import type { Clock } from '../runtime/clock.ts';
import type { ObjectSource } from '../storage/storage-memory.ts';
import { type Change, prefixRange, type Revision, type Store } from '../storage/store.ts';
import { StoredObject } from '../storage/stored-object.ts';
import { type EventWindow, KindEvent } from './event-window.ts';

/**
 * Reads the store's history into the window for watchers that start before it, once for all of them: after a restart of
 * the process every client resumes from a revision that no window has yet.
 */
export class WindowExtension {
  readonly #store: Store;
  readonly #source: ObjectSource;
  readonly #prefix: string;
  readonly #window: EventWindow;
  readonly #clock: Clock;
  #running: Promise<void> | undefined;
  /** From here on back the window cannot be extended: too much has happened since, or the store has forgotten it. */
  #hopeless: Revision = 0;

  constructor(store: Store, source: ObjectSource, prefix: string, window: EventWindow, clock: Clock) {
    this.#store = store;
    this.#source = source;
    this.#prefix = prefix;
    this.#window = window;
    this.#clock = clock;
  }

  /** Afterwards the window begins at the revision or before, if that can be had; never fails. */
  async reach(revision: Revision): Promise<void> {
    while (revision < this.#window.startRevision && revision > this.#hopeless) {
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
      // Whoever wanted these events asks the store himself, and hears from it why they cannot be had.
    }
    this.#hopeless = Math.max(this.#hopeless, after);
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

  /** States that two events have in common are one object, as in a window that was filled live. */
  #eventOf(change: Change, newest: Map<string, StoredObject>, at: number): KindEvent {
    const { key, entry, prev: before, revision } = change;
    const known = newest.get(key);
    const prev =
      before === undefined || known?.revision === before.modRevision
        ? known
        : StoredObject.fromEntry(before, this.#source);
    const object = entry === undefined ? undefined : StoredObject.fromEntry(entry, this.#source);
    if (object === undefined) newest.delete(key);
    else newest.set(key, object);
    return new KindEvent(revision, key, object, before === undefined ? undefined : prev, at);
  }
}
