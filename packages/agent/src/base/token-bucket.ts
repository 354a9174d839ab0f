import type { Clock } from '@keelson/core/runtime';

/** Limits a rate to `perSecond` on average and `burst` at once. */
export class TokenBucket {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #burst: number;
  #tokens: number;
  #lastMs: number;

  constructor(clock: Clock, perSecond: number, burst: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#burst = Math.max(1, burst);
    this.#tokens = this.#burst;
    this.#lastMs = clock.monotonic();
  }

  /** Takes a token if one is available. */
  tryTake(): boolean {
    this.#refill();
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  /** Milliseconds until a token is available. */
  waitMs(): number {
    this.#refill();
    return this.#tokens >= 1 ? 0 : Math.ceil(((1 - this.#tokens) / this.#perSecond) * 1000);
  }

  /** True when the bucket contains all `burst` tokens. */
  get full(): boolean {
    this.#refill();
    return this.#tokens >= this.#burst;
  }

  #refill(): void {
    const nowMs = this.#clock.monotonic();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((nowMs - this.#lastMs) / 1000) * this.#perSecond);
    this.#lastMs = nowMs;
  }
}
