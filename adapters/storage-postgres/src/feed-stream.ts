import {
  AdvanceWaiters,
  addAbortListener,
  type Clock,
  isStorageError,
  type OrderedRange,
  type Revision,
  removeAbortListener,
  type StorageError,
  streamClosed,
  type WatchBatch,
  type WatchStream,
} from '@keelson/core';
import type { Bounds } from './bounds.ts';
import type { WatchOptions } from './change-feed.ts';
import type { ChangeLogReader } from './change-log.ts';
import type { RecentChanges } from './recent-changes.ts';
import { translateError } from './translate-error.ts';

/** What a stream needs of the feed that holds it. */
export interface FeedHost {
  readonly recent: RecentChanges;
  readonly log: ChangeLogReader;
  readonly clock: Clock;
  hint(revision: Revision): void;
  /** @throws StorageError `Compacted` when what follows `revision` is gone. */
  assertReadable(revision: Revision): void;
  setWaiting(stream: FeedStream, waiting: boolean): void;
  forget(stream: FeedStream): void;
}

type Result = IteratorResult<WatchBatch, undefined>;

const done: Result = { done: true, value: undefined };
const ignore = () => {};
/** Errors of a reading stream that pass; it goes on where it was. */
const retryPauseMs = 250;

/**
 * A position in the log. Near the head it is served from what the feed has read for all; further back it reads for
 * itself, as fast as its consumer pulls. Ends quietly by `close`, `return` or abort, loudly (once) by a failure.
 */
export class FeedStream implements WatchStream, AsyncIterator<WatchBatch, undefined> {
  readonly prevValue: boolean;
  readonly #feed: FeedHost;
  readonly #range: OrderedRange;
  readonly #bounds: Bounds;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = () => this.#finish();
  #frontier: Revision;
  #pulls: Promise<unknown> = Promise.resolve();
  #resume: (() => void) | undefined;
  readonly #advances = new AdvanceWaiters();
  #failure: StorageError | undefined;
  #ended = false;

  /** Made by the feed alone. */
  constructor(feed: FeedHost, range: OrderedRange, bounds: Bounds, options: WatchOptions) {
    this.#feed = feed;
    this.#range = range;
    this.#bounds = bounds;
    this.prevValue = options.prevValue === true;
    this.#frontier = options.after;
    this.#signal = options.signal;
    addAbortListener(this.#signal, this.#onAbort);
  }

  get frontier(): Revision {
    return this.#frontier;
  }

  [Symbol.asyncIterator](): AsyncIterator<WatchBatch, undefined> {
    return this;
  }

  next(): Promise<Result> {
    const result = this.#pulls.then(() => this.#pull());
    this.#pulls = result.catch(ignore);
    return result;
  }

  return(): Promise<Result> {
    this.#finish();
    return Promise.resolve(done);
  }

  async close(): Promise<void> {
    this.#finish();
  }

  advanceTo(revision: Revision, options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    if (this.#frontier >= revision) return Promise.resolve();
    if (this.#ended) return Promise.reject(streamClosed());
    const reached = this.#advances.wait(revision, options.signal);
    this.#feed.hint(revision);
    return reached;
  }

  /** @internal The feed has read on, or history has changed. */
  wake(): void {
    this.#resume?.();
  }

  /** @internal Ends the stream with an error, which the consumer sees once. */
  fail(failure: StorageError): void {
    if (this.#ended) return;
    this.#failure = failure;
    this.#finish(failure);
  }

  async #pull(): Promise<Result> {
    while (!this.#ended) {
      try {
        const batch = await this.#read();
        if (batch === undefined || this.#ended) continue;
        this.#frontier = batch.frontier;
        this.#advances.reached(this.#frontier);
        return { done: false, value: batch };
      } catch (error) {
        // The database may be away for a while; the stream stands where it was.
        if (isStorageError(error, 'Unavailable') || isStorageError(error, 'Timeout')) await this.#wait(retryPauseMs);
        else this.fail(translateError(error, 'a watch'));
      }
    }
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
    return done;
  }

  /** Undefined when it is time to look again. */
  async #read(): Promise<WatchBatch | undefined> {
    const { recent, log } = this.#feed;
    this.#feed.assertReadable(this.#frontier);
    if (recent.reachesBack(this.#frontier, this.prevValue)) {
      if (recent.head > this.#frontier) return recent.read(this.#frontier, this.#range, this.prevValue);
      await this.#wait();
      return undefined;
    }
    const { changes, frontier } = await log.read(this.#frontier, this.#bounds, this.prevValue);
    if (frontier <= this.#frontier) {
      await this.#wait(retryPauseMs);
      return undefined;
    }
    return { changes: changes.map(({ plain, full }) => full ?? plain), frontier };
  }

  /** Until the feed or the end of the stream calls, or the time is over. */
  #wait(ms?: number): Promise<void> {
    if (this.#ended) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = ms === undefined ? ignore : this.#feed.clock.after(ms, () => this.#resume?.());
      this.#resume = () => {
        this.#resume = undefined;
        cancel();
        this.#feed.setWaiting(this, false);
        resolve();
      };
      this.#feed.setWaiting(this, true);
    });
  }

  #finish(failure: StorageError = streamClosed()): void {
    if (this.#ended) return;
    this.#ended = true;
    removeAbortListener(this.#signal, this.#onAbort);
    this.#feed.forget(this);
    this.#advances.fail(failure);
    this.#resume?.();
  }
}
