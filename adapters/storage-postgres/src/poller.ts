import type { Clock } from '@keelson/core/runtime';

const idleMs = 1000;
const alertMs = 250;
/** Time after a change during which further changes are expected. */
const alertForMs = 5000;

export interface PollerOptions {
  readonly clock: Clock;
  /** Whether notifications arrive. */
  readonly healthy: () => boolean;
  readonly watched: () => boolean;
  /** Reads the position of the store; returns whether it had changed. */
  readonly poll: () => Promise<boolean>;
}

/**
 * Polls the newest revision of the store, since any notification may be lost: every second while there are watchers,
 * and four times as often when notifications do not arrive or a change was recent.
 */
export class Poller {
  readonly #options: PollerOptions;
  #cancel: (() => void) | undefined;
  #alertUntil = 0;
  #stopped = false;

  constructor(options: PollerOptions) {
    this.#options = options;
  }

  /** Starts polling for the first watcher. */
  start(): void {
    if (!this.#stopped) this.#cancel ??= this.#arm();
  }

  /** Reports that the store has changed. */
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
      // The database is unreachable; the next poll is the next attempt.
    }
    this.#cancel = undefined;
    if (this.#options.watched()) this.start();
  }
}
