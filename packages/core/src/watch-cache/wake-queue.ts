import type { Clock } from '../runtime/clock.ts';
import type { WaitingWatch } from './watch-view.ts';

/** Waking watchers may hold up everything else of the process no longer than this at a time. */
const sliceMs = 2;
const checkEvery = 64;

/** Wakes watchers in fair slices: at once as far as the slice reaches, the rest after other work had its turn. */
export class WakeQueue {
  readonly #clock: Clock;
  readonly #onError: (error: unknown) => void;
  #watches: WaitingWatch[] = [];
  #scheduled = false;

  /** A reader that throws is told of, and harms nobody else. */
  constructor(clock: Clock, onError: (error: unknown) => void) {
    this.#clock = clock;
    this.#onError = onError;
  }

  add(watches: readonly WaitingWatch[]): void {
    if (this.#watches.length === 0) this.#watches = watches as WaitingWatch[];
    else this.#watches = this.#watches.concat(watches);
  }

  flush(): void {
    if (!this.#scheduled && this.#watches.length > 0) this.#run();
  }

  #run(): void {
    const watches = this.#watches;
    this.#watches = [];
    const start = this.#clock.monotonic();
    for (let i = 0; i < watches.length; i++) {
      try {
        (watches[i] as WaitingWatch).wakeIfReadable();
      } catch (error) {
        this.#onError(error);
      }
      if (i % checkEvery === checkEvery - 1 && this.#clock.monotonic() - start > sliceMs) {
        this.#watches = watches.slice(i + 1).concat(this.#watches);
        break;
      }
    }
    if (this.#watches.length === 0) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#run();
    });
  }
}
