import { StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import { addAbortListener, removeAbortListener } from '../meta/abort-listeners.ts';
import { AdvanceWaiters, streamClosed } from './advance-waiters.ts';
import type { Revision, WatchBatch, WatchStream } from './store.ts';

type Result = IteratorResult<WatchBatch, undefined>;

interface Pull {
  readonly resolve: (value: Result) => void;
  readonly reject: (error: unknown) => void;
}

const done: Result = { done: true, value: undefined };

/** A consumer far behind receives this many batches at once before other work of the process gets its turn. */
const burst = 8;

/**
 * Base class of watch streams that are a position in a log of changes. Each `next()` is answered by {@link read}, or,
 * when that has nothing, by the first {@link pump} that finds something. The stream ends without an error on `close`,
 * `return` and abort. It ends with an error, which the consumer receives once, on {@link fail} and when `read` throws.
 *
 * A subclass calls `pump` whenever `read` may have more, for example when the head of its log has moved.
 */
export abstract class LogWatchStream implements WatchStream, AsyncIterator<WatchBatch, undefined> {
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = () => this.#finish();
  #frontier: Revision;
  #pulls: Pull[] = [];
  readonly #advances = new AdvanceWaiters();
  #failure: StorageError | undefined;
  #ended = false;
  #inBurst = 0;

  /** @param after the stream delivers the changes after this revision. */
  constructor(after: Revision, signal: AbortSignal | undefined) {
    this.#frontier = after;
    this.#signal = signal;
    addAbortListener(signal, this.#onAbort);
  }

  /**
   * A bounded batch of the changes after {@link frontier}, whose own frontier is greater; undefined when there is none
   * at present. An error ends the stream; errors other than `StorageError` become `Unavailable`.
   */
  protected abstract read(): WatchBatch | undefined;

  /** Called after each pump: whether the consumer waits for a batch that `read` does not have. */
  protected abstract setWaiting(waiting: boolean): void;

  /** Called once, when the stream has ended. */
  protected abstract release(): void;

  /** Called when a caller of `advanceTo` waits for a revision. */
  protected requestAdvance(_revision: Revision): void {}

  get frontier(): Revision {
    return this.#frontier;
  }

  protected get ended(): boolean {
    return this.#ended;
  }

  /** The revisions for which callers of `advanceTo` wait. */
  protected get requestedRevisions(): readonly Revision[] {
    return this.#advances.revisions;
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
      this.#pulls.push({ resolve, reject });
      if (this.#pulls.length > 1) return;
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
    this.requestAdvance(revision);
    return reached;
  }

  /** Answers waiting calls of `next` as far as the log reaches. */
  pump(): void {
    if (this.#ended) return;
    try {
      while (this.#pulls.length > 0 && !this.#ended) {
        const batch = this.read();
        if (batch === undefined) break;
        this.#frontier = batch.frontier;
        this.#pulls.shift()?.resolve({ done: false, value: batch });
      }
    } catch (error) {
      this.fail(error);
      return;
    }
    if (this.#ended) return;
    const waiting = this.#pulls.length > 0;
    if (waiting) this.#inBurst = 0;
    this.setWaiting(waiting);
    this.#advances.reached(this.#frontier);
  }

  /** Ends the stream with an error. */
  fail(error: unknown): void {
    if (this.#ended) return;
    const failure =
      error instanceof StorageError
        ? error
        : new StorageError(StorageErrorCode.Unavailable, 'the change log cannot be read', { cause: error });
    const first = this.#pulls.shift();
    if (first === undefined) this.#failure = failure;
    else first.reject(failure);
    this.#finish(failure);
  }

  #finish(failure: StorageError = streamClosed()): void {
    if (this.#ended) return;
    this.#ended = true;
    removeAbortListener(this.#signal, this.#onAbort);
    this.release();
    for (const pull of this.#pulls) pull.resolve(done);
    this.#advances.fail(failure);
    this.#pulls = [];
  }
}
