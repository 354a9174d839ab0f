import { addAbortListener, removeAbortListener } from '../meta/abort-listeners.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Revision } from '../storage/store.ts';

interface Waiter {
  readonly revision: Revision;
  readonly settle: (reached: boolean) => void;
}

/** Reads that wait until a revision has been reached, each no longer than its time. */
export class FrontierWaiters {
  readonly #clock: Clock;
  #waiters: Waiter[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True once {@link reached} has been told of the revision, false when the time is over or the caller gave up. */
  wait(revision: Revision, timeoutMs: number, signal?: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const waiter: Waiter = {
        revision,
        settle: (reached) => {
          cancel();
          removeAbortListener(signal, giveUp);
          resolve(reached);
        },
      };
      const giveUp = () => {
        this.#waiters = this.#waiters.filter((other) => other !== waiter);
        waiter.settle(false);
      };
      const cancel = this.#clock.after(timeoutMs, giveUp);
      addAbortListener(signal, giveUp);
      this.#waiters.push(waiter);
    });
  }

  /** The greatest revision that somebody waits for, 0 when nobody does. */
  get highest(): Revision {
    return this.#waiters.reduce((highest, { revision }) => Math.max(highest, revision), 0);
  }

  reached(revision: Revision): void {
    if (this.#waiters.length === 0) return;
    const ready = this.#waiters.filter((waiter) => waiter.revision <= revision);
    if (ready.length === 0) return;
    this.#waiters = this.#waiters.filter((waiter) => waiter.revision > revision);
    for (const waiter of ready) waiter.settle(true);
  }
}
