import type { ObjectPredicate, WatchEvent } from '../storage/resource-storage.ts';
import type { Revision } from '../storage/store.ts';

/** A watcher that has read everything and waits for more. */
export interface WaitingWatch {
  /** Calls its reader, unless that has come by itself in the meantime. */
  wakeIfReadable(): void;
  /** Set by the view while the watch stands in its line. */
  waiting: boolean;
}

const nothing: readonly WatchEvent[] = [];

/**
 * The events that all watchers of one scope with one predicate see, decided once for all of them. A watcher is a place
 * in this log. Nothing is kept that every watcher has read, or that has left the event window.
 */
export class WatchView {
  readonly predicate: ObjectPredicate;
  #log: WatchEvent[] = [];
  /** Place of `#log[0]`. */
  #base = 0;
  #members = 0;
  #line: WaitingWatch[] = [];
  #waitingCount = 0;
  /** The piece read last, with its place: watchers at the same place read the very same array. */
  #piece = nothing;
  #pieceAt = -1;
  #pieceLimit = 0;
  /** There are events that those who wait have not been told of. */
  #touched = false;

  constructor(predicate: ObjectPredicate) {
    this.predicate = predicate;
  }

  get members(): number {
    return this.#members;
  }

  /** Place behind the last event. */
  get end(): number {
    return this.#base + this.#log.length;
  }

  /** First place that can still be read from. */
  get start(): number {
    return this.#base;
  }

  /** A new watcher's place. */
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

  /** Answers true when those who wait have not been told of anything yet. */
  append(event: WatchEvent): boolean {
    const first = !this.#touched;
    if (first) {
      this.#touched = true;
      if (this.#waitingCount === this.#members) this.#dropUntil(this.#log.length);
    }
    this.#log.push(event);
    return first;
  }

  /** Lets go of the events up to this revision, which have left the window. */
  trim(startRevision: Revision): void {
    let gone = 0;
    while (gone < this.#log.length && (this.#log[gone] as WatchEvent).object.revision <= startRevision) gone++;
    this.#dropUntil(gone);
  }

  /** Events from `place` on, shared by all who read the same; `place` must not be before `start`. */
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

  /** Puts a watch that has read everything in line. */
  wait(watch: WaitingWatch): void {
    if (watch.waiting) return;
    watch.waiting = true;
    this.#waitingCount++;
    this.#line.push(watch);
  }

  /** Everybody in line, who then no longer is. */
  takeWaiting(): readonly WaitingWatch[] {
    const line = this.#line;
    for (const watch of line) watch.waiting = false;
    this.#line = [];
    this.#waitingCount = 0;
    this.#touched = false;
    return line;
  }

  #dropUntil(index: number): void {
    if (index === 0) return;
    this.#log = this.#log.slice(index);
    this.#base += index;
    this.#piece = nothing;
    this.#pieceAt = -1;
  }
}
