import { type Clock, pause } from '@keelson/core/runtime';

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

/**
 * Limits a rate to `perSecond` on average and `burst` at once. Callers of `take` are served in order; one that aborts
 * releases its token.
 */
export class TokenBucket {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #burst: number;
  /** Number of available tokens. Negative: tokens that were promised in advance. */
  #tokens: number;
  #at: number;

  /** @throws Error when `perSecond` is not positive */
  constructor(clock: Clock, perSecond: number, burst: number) {
    if (!(perSecond > 0)) throw new Error('the rate of a token bucket must be greater than 0');
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#burst = Math.max(1, burst);
    this.#tokens = this.#burst;
    this.#at = clock.monotonic();
  }

  /** Waits for a token; false when the signal aborted first. */
  async take(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    const waitMs = this.reserve();
    if (waitMs === 0) return true;
    await pause(this.#clock, waitMs, signal);
    if (!signal.aborted) return true;
    this.#refill();
    this.#tokens = Math.min(this.#burst, this.#tokens + 1);
    return false;
  }

  /** Takes a token, even one that is not available yet. Returns the milliseconds until the token may be used. */
  reserve(): number {
    this.#refill();
    this.#tokens -= 1;
    return this.#tokens >= 0 ? 0 : (-this.#tokens / this.#perSecond) * 1000;
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

  #refill(): void {
    const now = this.#clock.monotonic();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#at) / 1000) * this.#perSecond);
    this.#at = now;
  }
}
