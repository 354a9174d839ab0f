import {
  AdvanceWaiters,
  addAbortListener,
  checkNotCompacted,
  type OrderedRange,
  type Revision,
  removeAbortListener,
  type StorageError,
  streamClosed,
  type WatchBatch,
  type WatchStream,
} from '@keelson/core';
import { CatchUp } from './catch-up.ts';
import type { SharedWatch } from './shared-watch.ts';

type Result = IteratorResult<WatchBatch, undefined>;

interface Pending<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

const done: Result = { done: true, value: undefined };
/** A consumer far behind gets this many batches at once before other work of the process gets its turn. */
const burst = 8;

/**
 * A {@link WatchStream} that is a place in a {@link SharedWatch}, or, when it has fallen out of that, in history. Ends
 * quietly by `close`, `return` or abort, loudly (once) by a failure.
 */
export class EtcdWatchStream implements WatchStream, AsyncIterator<WatchBatch, undefined> {
  readonly #shared: SharedWatch;
  readonly #range: OrderedRange;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = () => this.#finish();
  #frontier: Revision;
  #catchUp: CatchUp | undefined;
  #waiters: Pending<Result>[] = [];
  readonly #advances = new AdvanceWaiters();
  #failure: StorageError | undefined;
  #ended = false;
  #inBurst = 0;

  /** @param current the revision the store had when `after` was checked. */
  constructor(
    shared: SharedWatch,
    range: OrderedRange,
    after: Revision,
    current: Revision,
    signal: AbortSignal | undefined,
  ) {
    this.#shared = shared;
    this.#range = range;
    this.#frontier = after;
    this.#signal = signal;
    addAbortListener(signal, this.#onAbort);
    shared.join(this, after, current);
  }

  get frontier(): Revision {
    return this.#frontier;
  }

  /** @internal The place in the store's own history. */
  get position(): Revision {
    return Math.max(this.#frontier, this.#shared.options.begin());
  }

  [Symbol.asyncIterator](): AsyncIterator<WatchBatch, undefined> {
    return this;
  }

  next(): Promise<Result> {
    if (this.#failure !== undefined) {
      const failure = this.#failure;
      this.#failure = undefined;
      return Promise.reject(failure);
    }
    if (this.#ended) return Promise.resolve(done);
    return new Promise((resolve, reject) => {
      this.#waiters.push({ resolve, reject });
      if (this.#waiters.length > 1) return;
      if (++this.#inBurst >= burst) {
        this.#inBurst = 0;
        setImmediate(() => this.pump());
      } else {
        this.pump();
      }
    });
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
    this.#shared.want(revision);
    this.#catchUp?.want(revision);
    return reached;
  }

  /** @internal Hands out what there is; called when there may be more. */
  pump(): void {
    if (this.#ended) return;
    try {
      for (;;) {
        if (this.#waiters.length === 0) break;
        const batch = this.#read();
        if (batch === undefined) break;
        this.#frontier = batch.frontier;
        this.#waiters.shift()?.resolve({ done: false, value: batch });
      }
    } catch (error) {
      this.fail(error as StorageError);
      return;
    }
    if (this.#waiters.length > 0) this.#inBurst = 0;
    this.#shared.setWaiting(this, this.#waiters.length > 0);
    this.#advances.reached(this.#frontier);
  }

  /** @internal The shared watch is another one now and knows of no wishes. */
  seekAgain(): void {
    for (const revision of this.#advances.revisions) this.#shared.want(revision);
    this.pump();
  }

  /** @internal Ends the stream with an error, which the consumer sees once. */
  fail(error: StorageError): void {
    if (this.#ended) return;
    const first = this.#waiters.shift();
    if (first === undefined) this.#failure = error;
    else first.reject(error);
    this.#finish(error);
  }

  #read(): WatchBatch | undefined {
    checkNotCompacted(this.#frontier, this.#shared.options.bound());
    const { ring } = this.#shared;
    if (ring === undefined) return undefined;
    const { position } = this;
    if (position >= ring.floor) {
      this.#catchUp?.close();
      this.#catchUp = undefined;
      return ring.frontier > position ? ring.read(position, this.#range) : undefined;
    }
    this.#catchUp ??= this.#startCatchUp(ring.floor);
    return this.#catchUp.take(this.#range);
  }

  #startCatchUp(floor: Revision): CatchUp {
    const catchUp = new CatchUp(
      this.#shared.options,
      this.position,
      () => this.pump(),
      (error) => this.fail(error),
    );
    // The ring may begin at a revision of somebody else's: no change of this store would ever bring the watch there.
    catchUp.want(Math.max(floor, ...this.#advances.revisions));
    return catchUp;
  }

  #finish(failure: StorageError = streamClosed()): void {
    if (this.#ended) return;
    this.#ended = true;
    removeAbortListener(this.#signal, this.#onAbort);
    this.#catchUp?.close();
    this.#catchUp = undefined;
    this.#shared.leave(this);
    for (const waiter of this.#waiters) waiter.resolve(done);
    this.#advances.fail(failure);
    this.#waiters = [];
  }
}
