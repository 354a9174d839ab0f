import type { Clock } from '@keelson/core';
import { type Expiry, ExpiryQueue } from './expiry-queue.ts';

/** Timers follow monotonic time; looking this often bounds how late a step of the wall clock is noticed. */
const maxWaitMs = 30_000;

/** Calls back for every key whose time has come by the wall clock, never earlier. */
export class Expirer {
  readonly #clock: Clock;
  readonly #expire: (ordered: string, revision: number) => void;
  readonly #queue = new ExpiryQueue();
  #armed: { readonly at: number; readonly cancel: () => void } | undefined;

  constructor(clock: Clock, expire: (ordered: string, revision: number) => void) {
    this.#clock = clock;
    this.#expire = expire;
  }

  add(expiry: Expiry): void {
    this.#queue.push(expiry);
    if (this.#armed === undefined || expiry.at < this.#armed.at) this.#arm();
  }

  stop(): void {
    this.#armed?.cancel();
    this.#armed = undefined;
  }

  #arm(): void {
    this.stop();
    const first = this.#queue.first;
    if (first === undefined) return;
    const wait = Math.min(Math.max(first.at - this.#clock.now(), 0), maxWaitMs);
    this.#armed = { at: first.at, cancel: this.#clock.after(wait, () => this.#sweep()) };
  }

  #sweep(): void {
    this.#armed = undefined;
    const now = this.#clock.now();
    for (let first = this.#queue.first; first !== undefined && first.at <= now; first = this.#queue.first) {
      this.#queue.shift();
      this.#expire(first.ordered, first.revision);
    }
    this.#arm();
  }
}
