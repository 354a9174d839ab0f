import { addAbortListener, removeAbortListener } from '../meta/abort-listeners.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Key } from './store.ts';

/** Longest wait for the one before. */
const patienceMs = 1_000;

/**
 * Runs updates of one key one after the other in the order of their arrival, because of concurrent updates all but one
 * must be repeated. This is an optimisation and not a lock: compare-and-set decides what is written. The wait is
 * bounded, because an update may never end, such as one whose admission plugin updates the same object.
 */
export class KeyTurns<T> {
  readonly #clock: Clock;
  /** The latest work on each key that has not ended. */
  readonly #last = new Map<Key, Promise<T>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Runs the work at once or after what is under way, and hands it the result of the one before if that ended well just
   * now.
   */
  run(key: Key, signal: AbortSignal | undefined, work: (before: T | undefined) => Promise<T>): Promise<T> {
    const last = this.#last.get(key);
    const running = last === undefined ? work(undefined) : this.#ended(last, signal).then(work);
    this.#last.set(key, running);
    const ended = () => {
      if (this.#last.get(key) === running) this.#last.delete(key);
    };
    running.then(ended, ended);
    return running;
  }

  /**
   * Resolves when the work has ended, with its result if it had one; when time is up; or when the signal is aborted.
   */
  #ended(work: Promise<T>, signal: AbortSignal | undefined): Promise<T | undefined> {
    return new Promise((resolve) => {
      const finish = (result?: T) => {
        cancel();
        removeAbortListener(signal, giveUp);
        resolve(result);
      };
      const giveUp = () => finish();
      const cancel = this.#clock.after(patienceMs, giveUp);
      addAbortListener(signal, giveUp);
      if (signal?.aborted) giveUp();
      work.then(finish, giveUp);
    });
  }
}
