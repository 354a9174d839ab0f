import { addAbortListener, type Clock, removeAbortListener } from '@keelson/core/runtime';

/** Growing pauses between attempts; a success resets them. */
export class Backoff {
  readonly #clock: Clock;
  readonly #firstMs: number;
  readonly #maxMs: number;
  #attempts = 0;

  constructor(clock: Clock, firstMs = 100, maxMs = 30_000) {
    this.#clock = clock;
    this.#firstMs = firstMs;
    this.#maxMs = maxMs;
  }

  reset(): void {
    this.#attempts = 0;
  }

  /**
   * Returns the next pause in milliseconds. It doubles each time up to the maximum; up to a quarter is added at random,
   * so that clients do not retry at the same time.
   */
  next(): number {
    const base = Math.min(this.#maxMs, this.#firstMs * 2 ** Math.min(this.#attempts, 30));
    this.#attempts += 1;
    // Not injected: jitter, which spreads load over time and decides no result.
    return base * (1 + Math.random() / 4);
  }

  /** Waits for the next pause, or until the signal aborts. */
  async wait(signal: AbortSignal): Promise<void> {
    await pause(this.#clock, this.next(), signal);
  }
}

/** Resolves after `ms` of the clock, or when the signal aborts. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      cancel();
      removeAbortListener(signal, done);
      resolve();
    };
    const cancel = clock.after(ms, done);
    addAbortListener(signal, done);
  });
}
