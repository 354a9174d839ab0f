import { StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import { addAbortListener, removeAbortListener } from '../meta/abort-listeners.ts';
import { AdvanceWaiters, streamClosed } from './advance-waiters.ts';
import type { OrderedRange } from './key-order.ts';
import type { Revision, WatchBatch, WatchStream } from './store.ts';

/** A change log that can be read synchronously by revision, as the stores inside the process have it. */
export interface ChangeLog {
  /** The newest revision that may be delivered. */
  readonly head: Revision;
  /**
   * A bounded piece of the log after `after`, which is below `head`; the frontier of the answer is above `after`.
   *
   * @throws StorageError `Compacted` when changes after `after` are gone.
   */
  read(after: Revision, range: OrderedRange, prevValue: boolean): WatchBatch;
}

/** What a stream needs of the hub that holds it. */
export interface StreamHost {
  readonly log: ChangeLog;
  /** The stream's consumer waits at the head, or does no longer. */
  setWaiting(stream: LogWatchStream, waiting: boolean): void;
  /** The stream has ended. */
  forget(stream: LogWatchStream): void;
}

type Result = IteratorResult<WatchBatch, undefined>;

interface Pending<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

const done: Result = { done: true, value: undefined };

/** A consumer far behind gets this many batches at once before other work of the process gets its turn. */
const burst = 8;

/**
 * A {@link WatchStream} that is a position in a {@link ChangeLog}. Each `next()` reads a bounded piece; at the head it
 * waits to be pumped. Ends quietly by `close`, `return` or abort, loudly (once) by `fail` or a failing read.
 */
export class LogWatchStream implements WatchStream, AsyncIterator<WatchBatch, undefined> {
  readonly #hub: StreamHost;
  readonly #range: OrderedRange;
  readonly #prevValue: boolean;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = () => this.#finish();
  #frontier: Revision;
  #waiters: Pending<Result>[] = [];
  readonly #advances = new AdvanceWaiters();
  #failure: StorageError | undefined;
  #ended = false;
  #inBurst = 0;

  /** Made by the hub alone. */
  constructor(
    hub: StreamHost,
    range: OrderedRange,
    options: { readonly after: Revision; readonly prevValue?: boolean; readonly signal?: AbortSignal },
  ) {
    this.#hub = hub;
    this.#range = range;
    this.#prevValue = options.prevValue === true;
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
    if (this.#failure !== undefined) {
      const failure = this.#failure;
      this.#failure = undefined;
      return Promise.reject(failure);
    }
    if (this.#ended) return Promise.resolve(done);
    return new Promise((resolve, reject) => {
      this.#waiters.push({ resolve, reject });
      if (this.#waiters.length > 1) return;
      if (this.#hub.log.head > this.#frontier && ++this.#inBurst >= burst) {
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
    return this.#advances.wait(revision, options.signal);
  }

  /** @internal Hands out what the log has; called by the hub when the head has moved. */
  pump(): void {
    try {
      while (this.#waiters.length > 0 && !this.#ended && this.#hub.log.head > this.#frontier) {
        const batch = this.#hub.log.read(this.#frontier, this.#range, this.#prevValue);
        this.#frontier = batch.frontier;
        this.#waiters.shift()?.resolve({ done: false, value: batch });
      }
    } catch (error) {
      this.fail(error);
      return;
    }
    if (this.#ended) return;
    this.#hub.setWaiting(this, this.#waiters.length > 0);
    if (this.#waiters.length > 0) this.#inBurst = 0;
    this.#advances.reached(this.#frontier);
  }

  /** @internal Ends the stream with an error, which the consumer sees once. */
  fail(error: unknown): void {
    if (this.#ended) return;
    const failure =
      error instanceof StorageError
        ? error
        : new StorageError(StorageErrorCode.Unavailable, 'the change log cannot be read', { cause: error });
    const first = this.#waiters.shift();
    if (first === undefined) this.#failure = failure;
    else first.reject(failure);
    this.#finish(failure);
  }

  #finish(failure: StorageError = streamClosed()): void {
    if (this.#ended) return;
    this.#ended = true;
    removeAbortListener(this.#signal, this.#onAbort);
    this.#hub.forget(this);
    for (const waiter of this.#waiters) waiter.resolve(done);
    this.#advances.fail(failure);
    this.#waiters = [];
  }
}
