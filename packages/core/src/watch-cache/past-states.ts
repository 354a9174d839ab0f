import type { Clock } from '../runtime/clock.ts';
import type { Revision } from '../storage/store.ts';
import type { EventWindow } from './event-window.ts';
import type { IndexSnapshot } from './index-snapshot.ts';
import { OrderedIndex } from './ordered-index.ts';

/** A checkpoint every so many events bounds the work of going back to any state of the window. */
const checkpointEvents = 1024;
/** More events than this are not undone while everybody waits; the store tells such a state. */
const mostUndone = 4 * checkpointEvents;
/** Chunked lists in progress find the state of their first page here. */
const rememberedStates = 16;
/** The life of a continue token. */
const rememberedMs = 300_000;

/** States of the index at revisions inside the event window, made by undoing events from the next later checkpoint. */
export class PastStates {
  readonly #index: OrderedIndex;
  readonly #window: EventWindow;
  #checkpoints: { readonly sequence: number; readonly state: IndexSnapshot }[] = [];
  #sinceCheckpoint = 0;
  /** By the revision asked for, most recently used last. */
  readonly #remembered = new Map<Revision, { readonly state: IndexSnapshot; readonly usedAt: number }>();
  readonly #clock: Clock;

  constructor(index: OrderedIndex, window: EventWindow, clock: Clock) {
    this.#index = index;
    this.#window = window;
    this.#clock = clock;
  }

  /** To be called before each event is applied. */
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

  /** Keeps the state of a revision at hand after it has left the window. */
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
    const known = this.#remembered.get(revision)?.state;
    if (known !== undefined) {
      this.remember(revision, known);
      return known;
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
