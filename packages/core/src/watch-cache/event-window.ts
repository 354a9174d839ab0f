import type { Clock } from '../runtime/clock.ts';
import type { ObjectPredicate } from '../storage/resource-storage.ts';
import { SharedWatchEvent, shownBefore, watchedChange } from '../storage/resource-watch.ts';
import type { Key, Revision } from '../storage/store.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import { type IndexSnapshot, OrderedIndex } from './ordered-index.ts';

/** One change of one kind with the previous state, and the events that watches receive for it. */
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

  /** Bytes that stay in memory because of this event alone. */
  get heldBytes(): number {
    // The last state of a deleted object exists twice: once stamped with the revision of the deletion.
    return (this.prev?.byteLength ?? 0) * (this.object === undefined ? 2 : 1) + 256;
  }

  /** The event for watches with this predicate: one object for each type of event, shared by all watches. */
  eventFor(predicate: ObjectPredicate): SharedWatchEvent | undefined {
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

export interface WindowLimits {
  readonly maxEvents: number;
  /** Memory of the previous states in the events of one kind, in bytes. */
  readonly maxBytes: number;
  /**
   * Memory of the previous states in the events of all kinds together, in bytes. Each kind may use a sixteenth of it,
   * whatever the other kinds use.
   */
  readonly maxTotalBytes: number;
  /** Events older than this are removed, except the newest `minEvents`. */
  readonly maxAgeMs: number;
  readonly minEvents: number;
}

/**
 * With these limits, watches that reconnect within minutes are served from memory. Older positions are served from the
 * history of the store.
 */
export const defaultWindowLimits: WindowLimits = {
  maxEvents: 20_000,
  maxBytes: 32 * 1024 * 1024,
  maxTotalBytes: 128 * 1024 * 1024,
  maxAgeMs: 300_000,
  minEvents: 1_000,
};

/** Memory of the windows of all kinds together. */
export interface WindowTotal {
  bytes: number;
}

/**
 * The latest events of one kind without a gap. The sequence number of an event counts the events of the kind since the
 * window was opened; earlier events have negative numbers. It never changes.
 */
export class EventWindow {
  readonly #limits: WindowLimits;
  readonly #total: WindowTotal;
  #events: KindEvent[] = [];
  /** Sequence number of `#events[0]`. */
  #base = 0;
  #head = 0;
  #bytes = 0;
  #startRevision: Revision;

  constructor(startRevision: Revision, limits: WindowLimits, total: WindowTotal) {
    this.#startRevision = startRevision;
    this.#limits = limits;
    this.#total = total;
  }

  /** The window contains every event after this revision. */
  get startRevision(): Revision {
    return this.#startRevision;
  }

  get firstSequence(): number {
    return this.#base + this.#head;
  }

  /** Sequence number that the next event will get. */
  get endSequence(): number {
    return this.#base + this.#events.length;
  }

  get heldBytes(): number {
    return this.#bytes;
  }

  at(sequence: number): KindEvent | undefined {
    return sequence < this.firstSequence ? undefined : this.#events[sequence - this.#base];
  }

  /** Sequence number of the first event after the revision. */
  after(revision: Revision): number {
    let low = this.#head;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#events[middle] as KindEvent).revision <= revision) low = middle + 1;
      else high = middle;
    }
    return this.#base + low;
  }

  /** Adds the newest event and removes the oldest ones beyond the limits; returns the number of removed events. */
  push(event: KindEvent): number {
    this.#events.push(event);
    this.#count(event.heldBytes);
    const before = this.#head;
    while (this.#mustShrink(event.at)) this.#evict();
    const evicted = this.#head - before;
    if (this.#head > 256 && this.#head * 2 > this.#events.length) {
      this.#events = this.#events.slice(this.#head);
      this.#base += this.#head;
      this.#head = 0;
    }
    return evicted;
  }

  /** Whether these earlier events also fit in the limits of the window. */
  hasRoomFor(past: readonly KindEvent[]): boolean {
    const bytes = past.reduce((sum, event) => sum + event.heldBytes, this.#bytes);
    const { maxEvents, maxBytes, maxTotalBytes } = this.#limits;
    const fits = this.#total.bytes - this.#bytes + bytes <= maxTotalBytes || bytes <= maxTotalBytes / 16;
    return fits && bytes <= maxBytes && past.length + this.endSequence - this.firstSequence <= maxEvents;
  }

  /**
   * Inserts earlier events, those after `startRevision`, at the beginning of the window. The sequence numbers of the
   * present events stay the same. Returns false without a change when the events do not fit in the limits.
   */
  prepend(startRevision: Revision, past: readonly KindEvent[]): boolean {
    const events = past.filter((event) => event.revision <= this.#startRevision);
    if (!this.hasRoomFor(events)) return false;
    const base = this.firstSequence - events.length;
    this.#events = [...events, ...this.#events.slice(this.#head)];
    this.#base = base;
    this.#head = 0;
    this.#startRevision = startRevision;
    for (const event of events) this.#count(event.heldBytes);
    return true;
  }

  #mustShrink(now: number): boolean {
    const count = this.#events.length - this.#head;
    if (count <= 1) return false;
    const { maxEvents, maxBytes, maxTotalBytes } = this.#limits;
    if (count > maxEvents || this.#bytes > maxBytes) return true;
    if (this.#total.bytes > maxTotalBytes && this.#bytes > maxTotalBytes / 16) return true;
    const oldest = this.#events[this.#head];
    return count > this.#limits.minEvents && oldest !== undefined && now - oldest.at > this.#limits.maxAgeMs;
  }

  #evict(): void {
    const oldest = this.#events[this.#head] as KindEvent;
    this.#startRevision = oldest.revision;
    this.#count(-oldest.heldBytes);
    this.#head++;
  }

  /** Called when the window is no longer used: its memory is released from the total. */
  discard(): void {
    this.#count(-this.#bytes);
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#total.bytes += bytes;
  }
}

/** Number of events between checkpoints, which bounds the work to reconstruct a state of the window. */
const checkpointEvents = 1024;
/** States that are more events away are read from the store, because undoing blocks the event loop. */
const mostUndone = 4 * checkpointEvents;
/** Number of states kept for the next pages of chunked lists. */
const rememberedStates = 16;
/** The default lifetime of a continue token. */
const rememberedMs = 300_000;

/** States of the index at revisions in the event window, reconstructed by undoing events from the next checkpoint. */
export class PastStates {
  readonly #index: OrderedIndex;
  readonly #window: EventWindow;
  #checkpoints: { readonly sequence: number; readonly state: IndexSnapshot }[] = [];
  #sinceCheckpoint = 0;
  /** By requested revision, most recently used last. */
  readonly #remembered = new Map<Revision, { readonly state: IndexSnapshot; readonly usedAt: number }>();
  readonly #clock: Clock;

  constructor(index: OrderedIndex, window: EventWindow, clock: Clock) {
    this.#index = index;
    this.#window = window;
    this.#clock = clock;
  }

  /** Called before each event is applied. */
  beforeEvent(): void {
    if (++this.#sinceCheckpoint < checkpointEvents) return;
    this.#sinceCheckpoint = 0;
    const now = this.#clock.monotonic();
    for (const [revision, { usedAt }] of this.#remembered)
      if (now - usedAt > rememberedMs) this.#remembered.delete(revision);
    const first = this.#window.firstSequence;
    this.#checkpoints = this.#checkpoints.filter((checkpoint) => checkpoint.sequence > first);
    this.#checkpoints.push({ sequence: this.#window.endSequence, state: this.#index.snapshot() });
  }

  /** Keeps the state of a revision after that has left the window. */
  remember(revision: Revision, state: IndexSnapshot): void {
    this.#remembered.delete(revision);
    this.#remembered.set(revision, { state, usedAt: this.#clock.monotonic() });
    if (this.#remembered.size <= rememberedStates) return;
    for (const oldest of this.#remembered.keys()) {
      this.#remembered.delete(oldest);
      return;
    }
  }

  /** The state at a revision that the cache has reached; undefined when the window no longer has it. */
  at(revision: Revision): IndexSnapshot | undefined {
    const remembered = this.#remembered.get(revision)?.state;
    if (remembered !== undefined) {
      this.remember(revision, remembered);
      return remembered;
    }
    if (revision < this.#window.startRevision) return undefined;
    const sequence = this.#window.after(revision);
    if (sequence === this.#window.endSequence) return this.#index.snapshot();
    const state = this.#undoTo(sequence);
    if (state !== undefined) this.remember(revision, state);
    return state;
  }

  #undoTo(sequence: number): IndexSnapshot | undefined {
    const checkpoint = this.#checkpoints.find((candidate) => candidate.sequence >= sequence);
    const from = checkpoint?.sequence ?? this.#window.endSequence;
    if (from - sequence > mostUndone) return undefined;
    const past = OrderedIndex.scratch(checkpoint?.state ?? this.#index.snapshot());
    for (let i = from - 1; i >= sequence; i--) {
      const event = this.#window.at(i);
      if (event === undefined) continue;
      if (event.prev === undefined) past.delete(event.key);
      else past.set(event.prev);
    }
    return past.snapshot();
  }
}
