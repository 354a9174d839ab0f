import type { ObjectPredicate, WatchEvent } from '../storage/resource-storage.ts';
import type { Revision } from '../storage/store.ts';

/** A watch that has read all events and waits for the next one. */
export interface WaitingWatch {
  /** Calls the reader, unless it has read the events in the meantime. */
  wakeIfReadable(): void;
  /** Set by the view while the watch is in its queue. */
  waiting: boolean;
}

const nothing: readonly WatchEvent[] = [];

/**
 * The log of events for all watches of one scope with one predicate, which is evaluated once for all of them. A watch
 * is a position in this log. Events that every watch has read, or that have left the event window, are dropped.
 */
export class WatchView {
  readonly predicate: ObjectPredicate;
  #log: WatchEvent[] = [];
  /** Position of `#log[0]`. */
  #base = 0;
  #members = 0;
  #queue: WaitingWatch[] = [];
  #waitingCount = 0;
  /** The piece read last and its position: watches at the same position receive the same array. */
  #piece = nothing;
  #pieceAt = -1;
  #pieceLimit = 0;
  /** Whether there are events for which the waiting watches have not been woken. */
  #touched = false;

  constructor(predicate: ObjectPredicate) {
    this.predicate = predicate;
  }

  get members(): number {
    return this.#members;
  }

  /** Position after the last event. */
  get end(): number {
    return this.#base + this.#log.length;
  }

  /** First position that can still be read. */
  get start(): number {
    return this.#base;
  }

  /** Adds a watch; returns its position. */
  join(): number {
    this.#members++;
    return this.end;
  }

  leave(watch: WaitingWatch): void {
    this.#members--;
    if (!watch.waiting) return;
    watch.waiting = false;
    this.#waitingCount--;
  }

  /** Returns true for the first event since the waiting watches were last taken. */
  append(event: WatchEvent): boolean {
    const first = !this.#touched;
    if (first) {
      this.#touched = true;
      if (this.#waitingCount === this.#members) this.#dropUntil(this.#log.length);
    }
    this.#log.push(event);
    return first;
  }

  /** Drops the events up to this revision, which have left the window. */
  trim(startRevision: Revision): void {
    let count = 0;
    while (count < this.#log.length && (this.#log[count] as WatchEvent).object.revision <= startRevision) count++;
    this.#dropUntil(count);
  }

  /** Events from `place` on, shared by watches that read the same ones. `place` must not be before `start`. */
  piece(place: number, maxEvents: number): readonly WatchEvent[] {
    if (place === this.end) return nothing;
    const full = this.#piece.length === this.#pieceLimit || place + this.#piece.length === this.end;
    if (place === this.#pieceAt && maxEvents === this.#pieceLimit && full) return this.#piece;
    const from = place - this.#base;
    this.#piece = this.#log.slice(from, from + maxEvents);
    this.#pieceAt = place;
    this.#pieceLimit = maxEvents;
    return this.#piece;
  }

  /** Adds a watch that has read all events to the queue. */
  wait(watch: WaitingWatch): void {
    if (watch.waiting) return;
    watch.waiting = true;
    this.#waitingCount++;
    this.#queue.push(watch);
  }

  /** Removes and returns all watches in the queue. */
  takeWaiting(): readonly WaitingWatch[] {
    const queue = this.#queue;
    for (const watch of queue) watch.waiting = false;
    this.#queue = [];
    this.#waitingCount = 0;
    this.#touched = false;
    return queue;
  }

  #dropUntil(index: number): void {
    if (index === 0) return;
    this.#log = this.#log.slice(index);
    this.#base += index;
    this.#piece = nothing;
    this.#pieceAt = -1;
  }
}
