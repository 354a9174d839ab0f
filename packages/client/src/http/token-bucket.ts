import type { Clock } from '@keelson/core/runtime';
import { pause } from '../retry/backoff.ts';

/**
 * Allows bursts of `burst` requests and `qps` requests per second on average. Waiting requests are served in order; an
 * aborted one releases its token.
 */
export class TokenBucket {
  readonly #clock: Clock;
  readonly #qps: number;
  readonly #burst: number;
  /** Negative: number of tokens promised in advance. */
  #tokens: number;
  #at: number;

  constructor(clock: Clock, qps: number, burst: number) {
    if (!(qps > 0)) throw new Error('qps must be greater than 0');
    this.#clock = clock;
    this.#qps = qps;
    this.#burst = Math.max(1, burst);
    this.#tokens = this.#burst;
    this.#at = clock.monotonic();
  }

  /** Resolves when a request may be sent; false when the signal aborted first. */
  async take(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    this.#refill();
    this.#tokens -= 1;
    if (this.#tokens >= 0) return true;
    await pause(this.#clock, (-this.#tokens / this.#qps) * 1000, signal);
    if (!signal.aborted) return true;
    this.#refill();
    this.#tokens = Math.min(this.#burst, this.#tokens + 1);
    return false;
  }

  #refill(): void {
    const now = this.#clock.monotonic();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#at) / 1000) * this.#qps);
    this.#at = now;
  }
}
