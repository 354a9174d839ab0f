import type { Clock } from '@keelson/core';

const idleMs = 1000;
const alertMs = 250;
/** How long after a change others are expected. */
const alertForMs = 5000;

export interface PollerOptions {
  readonly clock: Clock;
  /** Whether notifications can be relied on. */
  readonly healthy: () => boolean;
  readonly watched: () => boolean;
  /** Asks the database; tells whether there was something new. */
  readonly poll: () => Promise<boolean>;
}

/**
 * Asks now and then how far the store is, since any notification may be lost: every second while somebody watches, four
 * times as often when notifications do not arrive or something was written lately.
 */
export class Poller {
  readonly #options: PollerOptions;
  #cancel: (() => void) | undefined;
  #alertUntil = 0;
  #stopped = false;

  constructor(options: PollerOptions) {
    this.#options = options;
  }

  /** Somebody watches now. */
  start(): void {
    if (!this.#stopped) this.#cancel ??= this.#arm();
  }

  /** The store has moved. */
  moved(): void {
    this.#alertUntil = this.#options.clock.monotonic() + alertForMs;
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #arm(): () => void {
    const { clock, healthy } = this.#options;
    const alert = !healthy() || clock.monotonic() < this.#alertUntil;
    return clock.after(alert ? alertMs : idleMs, () => void this.#poll());
  }

  async #poll(): Promise<void> {
    try {
      if (this.#options.watched() && (await this.#options.poll()))
        this.#alertUntil = this.#options.clock.monotonic() + alertForMs;
    } catch {
      // The database is away; the next poll is the next attempt.
    }
    this.#cancel = undefined;
    if (this.#options.watched()) this.start();
  }
}
