import { type Clock, statusErrors } from '@keelson/core';
import type { Exchange } from '../exchange.ts';

/** How often running requests are looked at; deadlines are met with this precision. */
const sweepMs = 1000;

/**
 * Every request that is being worked on, and the clock over them. One timer serves all of them and runs only while
 * there are any: a timer for each request would be a noticeable part of a cheap request.
 */
export class RunningRequests {
  readonly #clock: Clock;
  readonly #onExpired: (exchange: Exchange) => void;
  /** In any order; each exchange knows its place, so that leaving costs nothing. */
  readonly #running: Exchange[] = [];
  #sweeping = false;
  #whenIdle: (() => void)[] = [];

  /**
   * @param onExpired called when a request has run past its deadline, to answer and remove it; its signal is aborted
   * already
   */
  constructor(clock: Clock, onExpired: (exchange: Exchange) => void) {
    this.#clock = clock;
    this.#onExpired = onExpired;
  }

  get size(): number {
    return this.#running.length;
  }

  add(exchange: Exchange): void {
    exchange.place = this.#running.length;
    this.#running.push(exchange);
    if (!this.#sweeping) this.#schedule();
  }

  /** False when the request was removed before. */
  remove(exchange: Exchange): boolean {
    if (exchange.place === -1) return false;
    const last = this.#running.pop();
    if (last !== undefined && last !== exchange) {
      this.#running[exchange.place] = last;
      last.place = exchange.place;
    }
    exchange.place = -1;
    if (this.#running.length === 0 && this.#whenIdle.length > 0) {
      for (const resolve of this.#whenIdle.splice(0)) resolve();
    }
    return true;
  }

  /** Resolves when nothing is being worked on. */
  idle(): Promise<void> {
    if (this.#running.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  /** Ends a request that has run too long. */
  expire(exchange: Exchange): void {
    exchange.abort(statusErrors.timeout('request did not complete within the allotted timeout'));
    this.#onExpired(exchange);
  }

  #schedule(): void {
    this.#sweeping = true;
    this.#clock.after(sweepMs, () => this.#sweep());
  }

  #sweep(): void {
    this.#sweeping = false;
    const now = this.#clock.monotonic();
    // A copy: ending one may end others.
    for (const exchange of [...this.#running]) {
      if (exchange.place !== -1 && !exchange.longRunning && exchange.deadlineAt <= now) this.expire(exchange);
    }
    if (this.#running.length > 0) this.#schedule();
  }
}
