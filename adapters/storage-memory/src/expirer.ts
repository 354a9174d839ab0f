import type { Clock } from '@keelson/core/runtime';

/**
 * Longest delay of the timer. Timers follow monotonic time, so that a step of the wall clock takes effect after this
 * time at the latest.
 */
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

/** A key to be removed, provided that its revision is unchanged. */
export interface Expiry {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly ordered: string;
  readonly revision: number;
}

/** Binary heap by expiry time. Entries of keys that were put again remain until their time, and are ignored then. */
export class ExpiryQueue {
  readonly #heap: Expiry[] = [];

  get first(): Expiry | undefined {
    return this.#heap[0];
  }

  push(expiry: Expiry): void {
    const heap = this.#heap;
    let i = heap.push(expiry) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      const above = heap[parent] as Expiry;
      if (above.at <= expiry.at) break;
      heap[i] = above;
      i = parent;
    }
    heap[i] = expiry;
  }

  shift(): Expiry | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && (heap[child + 1] as Expiry).at < (heap[child] as Expiry).at) child++;
      const below = heap[child] as Expiry;
      if (below.at >= last.at) break;
      heap[i] = below;
      i = child;
    }
    heap[i] = last;
    return first;
  }
}
