import type { Clock, Logger } from '@keelson/core';

/** Whoever is refused may come again at once: more lines than this would be theirs to fill a disk with. */
const periodMs = 60_000;

/** Logs refusals of connections, at most one line a minute. */
export class Refusals {
  readonly #logger: Logger;
  readonly #clock: Clock;
  #loggedAt: number | undefined;
  #unlogged = 0;

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  add(reason: string): void {
    const now = this.#clock.monotonic();
    if (this.#loggedAt !== undefined && now - this.#loggedAt < periodMs) {
      this.#unlogged += 1;
      return;
    }
    this.#logger.warn('connection refused', {
      reason,
      ...(this.#unlogged > 0 && { othersSinceLastLine: this.#unlogged }),
    });
    this.#loggedAt = now;
    this.#unlogged = 0;
  }
}
