import type { HistoryWatch } from '../storage/history-watch.ts';
import type { ObjectPredicate, WatchEvent } from '../storage/resource-storage.ts';
import { InitialWatchEvent } from '../storage/resource-watch.ts';
import type { Revision } from '../storage/store.ts';
import type { EventWindow } from './event-window.ts';
import type { IndexSnapshot } from './ordered-index.ts';

/** One call of `take` inspects at most this many objects or events, however few of them match. */
const scanLimit = 256;

/** Events that a watch reads before it has caught up with the live events. */
export interface EventSource {
  /** At most `maxEvents` events. An empty result does not mean that the source is finished. */
  take(maxEvents: number): readonly WatchEvent[];
  /** Whether `take` would return events, inspect further ones, or finish the source. */
  readonly ready: boolean;
  readonly finished: boolean;
  /** All changes up to this revision have been taken; 0 before the initial state is complete. */
  readonly revision: Revision;
  dispose(): void;
}

/** An ADDED event for every matching object of a snapshot, then the bookmark, if one was given. */
export class InitialState implements EventSource {
  readonly #state: IndexSnapshot;
  readonly #predicate: ObjectPredicate;
  readonly #revision: Revision;
  #rank: number;
  readonly #end: number;
  #bookmark: WatchEvent | undefined;

  constructor(
    state: IndexSnapshot,
    from: number,
    to: number,
    predicate: ObjectPredicate,
    revision: Revision,
    bookmark?: WatchEvent,
  ) {
    this.#state = state;
    this.#rank = from;
    this.#end = to;
    this.#predicate = predicate;
    this.#revision = revision;
    this.#bookmark = bookmark;
  }

  readonly ready = true;

  get finished(): boolean {
    return this.#rank >= this.#end && this.#bookmark === undefined;
  }

  get revision(): Revision {
    return this.#rank >= this.#end ? this.#revision : 0;
  }

  take(maxEvents: number): readonly WatchEvent[] {
    const events: WatchEvent[] = [];
    const { everything } = this.#predicate;
    const stop = Math.min(this.#end, this.#rank + (everything ? maxEvents : scanLimit));
    for (const object of this.#state.items(this.#rank, stop)) {
      if (events.length === maxEvents) return events;
      this.#rank++;
      if (everything || this.#predicate.matches(object)) events.push(new InitialWatchEvent(object.readable()));
    }
    if (this.#rank >= this.#end && this.#bookmark !== undefined && events.length < maxEvents) {
      events.push(this.#bookmark);
      this.#bookmark = undefined;
    }
    return events;
  }

  dispose(): void {
    this.#rank = this.#end;
  }
}

/** The events of the window from one sequence number to another, for a watch that starts in the past. */
export class Backlog implements EventSource {
  readonly #window: EventWindow;
  readonly #prefix: string;
  readonly #predicate: ObjectPredicate;
  #sequence: number;
  readonly #end: number;
  #revision: Revision;

  constructor(window: EventWindow, after: Revision, prefix: string, predicate: ObjectPredicate) {
    this.#window = window;
    this.#sequence = window.after(after);
    this.#end = window.endSequence;
    this.#revision = after;
    this.#prefix = prefix;
    this.#predicate = predicate;
  }

  readonly ready = true;

  get finished(): boolean {
    return this.#sequence >= this.#end;
  }

  /** Whether the next event left the window before it was taken. */
  get lost(): boolean {
    return this.#sequence < this.#end && this.#sequence < this.#window.firstSequence;
  }

  get revision(): Revision {
    return this.#revision;
  }

  take(maxEvents: number): readonly WatchEvent[] {
    const events: WatchEvent[] = [];
    const { key } = this.#predicate;
    const stop = Math.min(this.#end, this.#sequence + scanLimit);
    while (this.#sequence < stop && events.length < maxEvents) {
      const event = this.#window.at(this.#sequence);
      if (event === undefined) break;
      this.#sequence++;
      this.#revision = event.revision;
      if (key === undefined ? !event.key.startsWith(this.#prefix) : event.key !== key) continue;
      const shown = event.eventFor(this.#predicate);
      if (shown !== undefined) events.push(shown);
    }
    return events;
  }

  dispose(): void {
    this.#sequence = this.#end;
  }
}

/** The history of the store, for a watch whose position is older than the window; finished when it has reached it. */
export class PastEvents implements EventSource {
  readonly #window: EventWindow;
  #watch: HistoryWatch | undefined;
  #revision: Revision;
  #disposed = false;

  constructor(window: EventWindow, after: Revision) {
    this.#window = window;
    this.#revision = after;
  }

  attach(watch: HistoryWatch): void {
    this.#watch = watch;
    if (this.#disposed) watch.close();
  }

  get ready(): boolean {
    return this.#watch?.readable === true || this.finished;
  }

  get finished(): boolean {
    const watch = this.#watch;
    return watch !== undefined && !watch.readable && watch.revision >= this.#window.startRevision;
  }

  get revision(): Revision {
    return this.#watch?.revision ?? this.#revision;
  }

  take(maxEvents: number): readonly WatchEvent[] {
    return this.#watch?.read(maxEvents) ?? [];
  }

  dispose(): void {
    this.#disposed = true;
    this.#watch?.close();
  }
}
