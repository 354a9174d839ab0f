import type { Clock } from '@keelson/core/runtime';

/** Calls back once when `touch` was not called for `limitMs`; 0 disables it. A call of `touch` does not set a timer. */
export class IdleWatch {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #onIdle: () => void;
  #lastMs: number;
  #cancel = () => {};

  constructor(clock: Clock, limitMs: number, onIdle: () => void) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#onIdle = onIdle;
    this.#lastMs = clock.monotonic();
    if (limitMs > 0) this.#wait(limitMs);
  }

  touch(): void {
    this.#lastMs = this.#clock.monotonic();
  }

  stop(): void {
    this.#cancel();
  }

  #wait(ms: number): void {
    this.#cancel = this.#clock.after(ms, () => {
      const leftMs = this.#lastMs + this.#limitMs - this.#clock.monotonic();
      if (leftMs > 0) this.#wait(leftMs);
      else this.#onIdle();
    });
  }
}
