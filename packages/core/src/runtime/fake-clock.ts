import type { Clock } from './clock.ts';

/** A clock that moves only by `advance` and `jump`. Timers due within an `advance` run in order of their time. */
export class FakeClock implements Clock {
  #now: number;
  #monotonic = 0;
  #timers: { at: number; callback: () => void }[] = [];

  constructor(now = Date.UTC(2026, 0, 1)) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  /** Number of timers that have neither run nor been canceled. */
  get timers(): number {
    return this.#timers.length;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.#monotonic + ms, callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((t) => t !== timer);
    };
  }

  /** Moves wall and monotonic time and runs the timers that become due. */
  advance(ms: number): void {
    const end = this.#monotonic + ms;
    for (;;) {
      const due = this.#timers.filter((t) => t.at <= end).sort((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.#timers = this.#timers.filter((t) => t !== due);
      this.#now += due.at - this.#monotonic;
      this.#monotonic = due.at;
      due.callback();
    }
    this.#now += end - this.#monotonic;
    this.#monotonic = end;
  }

  /** Moves wall time only, as a step of the system clock does. */
  jump(ms: number): void {
    this.#now += ms;
  }
}
