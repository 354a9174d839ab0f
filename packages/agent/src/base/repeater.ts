import type { Clock, Logger } from '@keelson/core';

export interface RepeaterOptions {
  readonly clock: Clock;
  /** From the end of one run to the start of the next. */
  readonly periodMs: number;
  readonly logger: Logger;
  /** For the log, when a run fails. */
  readonly what: string;
  readonly run: (signal: AbortSignal) => Promise<void>;
}

/** Does something now and then, never twice at once; a wish that comes during a run is heard after it. */
export class Repeater {
  readonly #options: RepeaterOptions;
  readonly #abort = new AbortController();
  #cancel: (() => void) | undefined;
  #running: Promise<void> | undefined;
  #again = false;

  constructor(options: RepeaterOptions) {
    this.#options = options;
  }

  get stopped(): boolean {
    return this.#abort.signal.aborted;
  }

  /** The first run begins at once. */
  start(): void {
    this.now();
  }

  /** Runs as soon as possible, and then each period again. */
  now(): void {
    if (this.stopped) return;
    if (this.#running !== undefined) {
      this.#again = true;
      return;
    }
    this.#cancel?.();
    this.#cancel = undefined;
    this.#running = this.#loop();
  }

  /** Ends the run that is under way and begins no other. */
  async stop(): Promise<void> {
    this.#abort.abort();
    this.#cancel?.();
    await this.#running;
  }

  async #loop(): Promise<void> {
    const { run, logger, what, clock, periodMs } = this.#options;
    do {
      this.#again = false;
      try {
        await run(this.#abort.signal);
      } catch (err) {
        if (!this.stopped) logger.warn(`${what} failed`, { err });
      }
    } while (this.#again && !this.stopped);
    this.#running = undefined;
    if (!this.stopped) this.#cancel = clock.after(periodMs, () => this.now());
  }
}
