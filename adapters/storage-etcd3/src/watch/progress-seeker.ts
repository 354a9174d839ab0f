import type { Clock, Logger } from '@keelson/core/runtime';
import type { Revision } from '@keelson/core/storage-adapter';
import type { UpstreamWatch, WatchEnvironment } from './upstream-watch.ts';

/** Source of progress for servers that do not answer progress requests reliably. */
export interface ProgressSource {
  /** The current revision, linearizable. */
  latest(): Promise<Revision>;
  /** Makes a change that every watch of the store receives, at a revision above all results of `latest`. */
  writeMark(): Promise<void>;
}

/** Changes of the store itself arrive without a request, almost always within this time. */
const graceMs = 2;
const firstRetryMs = 100;
const longestMs = 1000;

/**
 * Advances an idle watch to a revision that changed nothing under its prefix. New servers answer a progress request on
 * the stream of the watch. Old servers answer such requests wrongly; for them a mark is written under the watched
 * prefix, whose arrival proves the progress.
 */
export class ProgressSeeker {
  readonly #watch: UpstreamWatch;
  readonly #source: ProgressSource;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #wanted: Revision = 0;
  #cancelTimer: (() => void) | undefined;
  #waitMs = firstRetryMs;
  #stopped = false;

  constructor(watch: UpstreamWatch, source: ProgressSource, { clock, logger }: WatchEnvironment) {
    this.#watch = watch;
    this.#source = source;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** Ensures that the watch reaches `revision` once the store has reached it. */
  want(revision: Revision): void {
    if (revision <= this.#watch.position || this.#stopped) return;
    if (revision <= this.#wanted && this.#cancelTimer !== undefined) return;
    this.#wanted = Math.max(this.#wanted, revision);
    this.#waitMs = firstRetryMs;
    this.#arm(graceMs);
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  #arm(ms: number): void {
    this.#cancelTimer?.();
    this.#cancelTimer = this.#clock.after(ms, () => this.#seek());
  }

  #seek(): void {
    this.#cancelTimer = undefined;
    if (this.#stopped || this.#watch.position >= this.#wanted) return;
    this.#arm(this.#waitMs);
    this.#waitMs = Math.min(this.#waitMs * 1.5, longestMs);
    const { traits } = this.#watch;
    if (traits === undefined) return;
    if (traits.progress) this.#watch.requestProgress();
    else
      this.#writeMark().catch((err: unknown) =>
        this.#logger.debug('the record that reports progress to watches could not be written', { err }),
      );
  }

  /** Writes no mark for a future revision: the marks themselves would advance the store to it. */
  async #writeMark(): Promise<void> {
    const latest = await this.#source.latest();
    const { position } = this.#watch;
    if (latest < this.#wanted || position >= this.#wanted || this.#stopped) return;
    await this.#source.writeMark();
  }
}
