import type { Clock } from '@keelson/core';
import { FrameJoiner } from './frame-joiner.ts';

/** Longest uninterrupted time of serving watchers, so that other requests are answered in between. */
const sliceMs = 2;
/** Watchers served between two looks at the clock. */
const stride = 16;

/** Something that has events to send. */
export interface Pump {
  pump(): void;
}

/**
 * Serves watchers that have become readable: all of one turn of the event loop together and in fair slices. Waiting
 * until the turn is over joins the events of several writes into one send per watcher.
 */
export class WatchScheduler {
  readonly joiner = new FrameJoiner();
  readonly #clock: Clock;
  #ready: Pump[] = [];
  #next = 0;
  #scheduled = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(pump: Pump): void {
    this.#ready.push(pump);
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(this.#run);
  }

  readonly #run = (): void => {
    const until = this.#clock.monotonic() + sliceMs;
    // Watchers that become ready while others are served wait for the next slice.
    const count = this.#ready.length;
    while (this.#next < count) {
      this.#ready[this.#next]?.pump();
      this.#next += 1;
      if (this.#next % stride === 0 && this.#clock.monotonic() >= until) break;
    }
    if (this.#next >= this.#ready.length) {
      this.#ready = [];
      this.#next = 0;
      this.#scheduled = false;
      this.joiner.clear();
      return;
    }
    if (this.#next >= count) {
      this.#ready = this.#ready.slice(count);
      this.#next = 0;
    }
    setImmediate(this.#run);
  };
}
