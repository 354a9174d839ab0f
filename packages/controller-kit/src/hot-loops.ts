import type { Clock } from '@keelson/core/runtime';

/** Number of consecutive runs of a key that its own writes may trigger without delay. */
export const maxOwnRuns = 20;
const firstDelayMs = 1_000;
const maxDelayMs = 60_000;
/** A requested pause of this length is not a busy loop. */
const longPauseMs = 1_000;

interface State {
  /** Number of consecutive runs that were triggered by the writes of the controller and made writes themselves. */
  runs: number;
  /** Monotonic time before which the next run does not start. */
  notBefore: number;
}

/** Detects keys whose runs are triggered only by the writes of the run before, and delays them. */
export class HotLoops {
  readonly #clock: Clock;
  readonly #states = new Map<string, State>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Milliseconds until a run may start. A change by others ends the sequence. */
  delayOf(key: string, isOwn: boolean): number {
    const state = this.#states.get(key);
    if (!isOwn) this.#states.delete(key);
    if (!isOwn || state === undefined) return 0;
    return Math.max(0, state.notBefore - this.#clock.monotonic());
  }

  /**
   * Counts a run. Returns the number of runs in sequence and the delay of the next one when that is a hot loop.
   *
   * @param againAfterMs the pause that the run requested
   */
  ran(key: string, isOwn: boolean, wrote: boolean, againAfterMs = 0): { runs: number; delayMs: number } | undefined {
    if (!wrote || againAfterMs >= longPauseMs) {
      this.#states.delete(key);
      return undefined;
    }
    const state = this.#states.get(key) ?? { runs: 0, notBefore: 0 };
    this.#states.set(key, state);
    if (isOwn) state.runs += 1;
    if (state.runs < maxOwnRuns) return undefined;
    const delayMs = Math.min(maxDelayMs, firstDelayMs * 2 ** Math.min(state.runs - maxOwnRuns, 20));
    state.notBefore = this.#clock.monotonic() + delayMs;
    return { runs: state.runs, delayMs };
  }

  /** Removes the state of a deleted object. */
  forget(key: string): void {
    this.#states.delete(key);
  }

  get size(): number {
    return this.#states.size;
  }
}
