import type { Logger, Revision } from '@keelson/core';
import type { UpstreamWatch } from './upstream-watch.ts';

/** Where progress comes from when the server cannot be asked for it. */
export interface ProgressSource {
  /** The current revision, linearizable. */
  latest(): Promise<Revision>;
  /** Makes a change that every watch of the store sees, at a revision above all that `latest` has told. */
  leaveMark(): Promise<void>;
}

/** Changes of the store itself come by themselves, nearly always within this time. */
const patienceMs = 2;
const againMs = 100;
const longestMs = 1000;

/**
 * Brings an idle watch up to a revision that belongs to nothing it watches. New servers are asked on the watch's own
 * stream. Old ones answer such questions wrongly; there a mark is left under the watched prefix, and its arrival is the
 * answer.
 */
export class ProgressSeeker {
  readonly #watch: UpstreamWatch;
  readonly #source: ProgressSource;
  readonly #logger: Logger;
  #wanted: Revision = 0;
  #timer: NodeJS.Timeout | undefined;
  #waitMs = againMs;
  #stopped = false;

  constructor(watch: UpstreamWatch, source: ProgressSource, logger: Logger) {
    this.#watch = watch;
    this.#source = source;
    this.#logger = logger;
  }

  /** Sees to it that the watch's position gets to `revision`, once the store does. */
  want(revision: Revision): void {
    if (revision <= this.#watch.position || this.#stopped) return;
    if (revision <= this.#wanted && this.#timer !== undefined) return;
    this.#wanted = Math.max(this.#wanted, revision);
    this.#waitMs = againMs;
    this.#arm(patienceMs);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #arm(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#seek(), ms);
    this.#timer.unref();
  }

  #seek(): void {
    this.#timer = undefined;
    if (this.#stopped || this.#watch.position >= this.#wanted) return;
    this.#arm(this.#waitMs);
    this.#waitMs = Math.min(this.#waitMs * 1.5, longestMs);
    const { traits } = this.#watch;
    if (traits === undefined) return;
    if (traits.progress) this.#watch.requestProgress();
    else this.#leaveMark().catch((err: unknown) => this.#logger.debug('no mark could be left for the watch', { err }));
  }

  /** Not for a revision that nobody has written yet: the marks themselves would bring the store there. */
  async #leaveMark(): Promise<void> {
    const latest = await this.#source.latest();
    const { position } = this.#watch;
    if (latest < this.#wanted || position >= this.#wanted || this.#stopped) return;
    await this.#source.leaveMark();
  }
}
