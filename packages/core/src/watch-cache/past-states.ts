import type { Clock } from '../runtime/clock.ts';
import type { Revision } from '../storage/store.ts';
import type { EventWindow } from './event-window.ts';
import type { IndexSnapshot } from './ordered-index.ts';
import { OrderedIndex } from './ordered-index.ts';

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
