import type { Clock, Logger } from '@keelson/core/runtime';

export interface RepeaterOptions {
  readonly clock: Clock;
  /** Time from the end of one run to the start of the next. */
  readonly periodMs: number;
  readonly logger: Logger;
  /** Names the task in the log when a run fails. */
  readonly what: string;
  readonly run: (signal: AbortSignal) => Promise<void>;
}

/** Runs a task periodically, never twice at the same time. A request during a run starts another run after it. */
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

  /** Starts the first run immediately. */
  start(): void {
    this.now();
  }

  /** Starts the first run after one period. */
  startLater(): void {
    const { clock, periodMs } = this.#options;
    this.#cancel = clock.after(periodMs, () => this.now());
  }

  /** Starts a run as soon as possible; the period starts again after it. */
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

  /** Aborts the current run and starts no other. */
  async stop(): Promise<void> {
    this.#abort.abort();
    this.#cancel?.();
    await this.#running;
  }

  async #loop(): Promise<void> {
    const { run, logger, what } = this.#options;
    do {
      this.#again = false;
      try {
        await run(this.#abort.signal);
      } catch (err) {
        if (!this.stopped) logger.warn(`${what} failed`, { err });
      }
    } while (this.#again && !this.stopped);
    this.#running = undefined;
    if (!this.stopped) this.startLater();
  }
}
