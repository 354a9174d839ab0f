import type { Clock } from '@keelson/core/runtime';
import { type Expiry, ExpiryQueue } from './expiry-queue.ts';

/** Timers follow monotonic time. This bounds the delay after which a step of the wall clock takes effect. */
const maxWaitMs = 30_000;

/** Calls a function for every expired key. Expiry follows the wall clock; no key expires early. */
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
