import { StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import { addAbortListener, removeAbortListener } from '../meta/abort-listeners.ts';
import type { KeyRange, Revision, WatchBatch, WatchStream } from './store.ts';
import { checkNotCompacted, OrderedRange, throwIfAborted } from './store-helpers.ts';

interface Waiter {
  readonly revision: Revision;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** The pending calls of `advanceTo` of a watch stream. */
export class AdvanceWaiters {
  #waiters: Waiter[] = [];

  /** The revisions of the pending calls. */
  get revisions(): readonly Revision[] {
    return this.#waiters.map(({ revision }) => revision);
  }

  /**
   * Resolves when {@link reached} is called with the revision or a later one. Fails with `Timeout` on abort, or with
   * the error of {@link fail}.
   */
  wait(revision: Revision, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      throwIfAborted(signal);
      const abort = () => {
        this.#waiters = this.#waiters.filter((other) => other !== waiter);
        reject(new StorageError(StorageErrorCode.Timeout, 'the call was aborted', { cause: signal?.reason }));
      };
      const settled = () => removeAbortListener(signal, abort);
      const waiter: Waiter = {
        revision,
        resolve: () => {
          settled();
          resolve();
        },
        reject: (error) => {
          settled();
          reject(error);
        },
      };
      addAbortListener(signal, abort);
      this.#waiters.push(waiter);
    });
  }

  /** Resolves the calls up to this frontier. Free of cost while no call is pending. */
  reached(frontier: Revision): void {
    if (this.#waiters.length === 0) return;
    const ready = this.#waiters.filter(({ revision }) => revision <= frontier);
    if (ready.length === 0) return;
    this.#waiters = this.#waiters.filter(({ revision }) => revision > frontier);
    for (const waiter of ready) waiter.resolve();
  }

  /** Rejects all pending calls, because the stream has ended. */
  fail(error: StorageError): void {
    for (const waiter of this.#waiters.splice(0)) waiter.reject(error);
  }
}

/** What calls on an ended watch stream fail with. */
export function streamClosed(): StorageError {
  return new StorageError(StorageErrorCode.Closed, 'the watch stream is closed');
}

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

/** A change log in memory that is read synchronously by revision, as stores inside the process have it. */
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

interface OpenOptions {
  readonly after: Revision;
  readonly prevValue?: boolean;
  readonly signal?: AbortSignal;
}

/** A position in the log of a hub. */
class HubWatchStream extends LogWatchStream {
  readonly #hub: WatchHub;
  readonly #range: OrderedRange;
  readonly #prevValue: boolean;

  constructor(hub: WatchHub, range: OrderedRange, options: OpenOptions) {
    super(options.after, options.signal);
    this.#hub = hub;
    this.#range = range;
    this.#prevValue = options.prevValue === true;
  }

  protected read(): WatchBatch | undefined {
    const { log } = this.#hub;
    return log.head > this.frontier ? log.read(this.frontier, this.#range, this.#prevValue) : undefined;
  }

  protected setWaiting(waiting: boolean): void {
    this.#hub.setWaiting(this, waiting);
  }

  protected release(): void {
    this.#hub.forget(this);
  }
}

/**
 * The watch streams over one {@link ChangeLog}. A stream is a position in the log and nothing else; those whose
 * consumer waits at the head are woken together, once per turn.
 */
export class WatchHub {
  readonly log: ChangeLog;
  readonly #open = new Set<LogWatchStream>();
  readonly #waiting = new Set<LogWatchStream>();
  #wakeQueued = false;
  #closed = false;

  constructor(log: ChangeLog) {
    this.log = log;
  }

  /** Number of open streams. */
  get size(): number {
    return this.#open.size;
  }

  /**
   * @throws StorageError `Compacted` when `after` is below `compacted`, `Timeout` when the signal is aborted already.
   */
  open(range: KeyRange, options: OpenOptions, compacted: Revision): WatchStream {
    if (this.#closed) throw new StorageError(StorageErrorCode.Closed, 'the store is closed');
    throwIfAborted(options.signal);
    checkNotCompacted(options.after, compacted);
    const stream = new HubWatchStream(this, new OrderedRange(range), options);
    this.#open.add(stream);
    return stream;
  }

  /** Notifies the streams that `log.head` has changed. Consumers run in a later microtask of this turn. */
  wake(): void {
    if (this.#wakeQueued || this.#waiting.size === 0) return;
    this.#wakeQueued = true;
    queueMicrotask(() => {
      this.#wakeQueued = false;
      for (const stream of [...this.#waiting]) stream.pump();
    });
  }

  /** Ends every stream with `Closed`. */
  close(): void {
    this.#closed = true;
    for (const stream of [...this.#open]) {
      stream.fail(new StorageError(StorageErrorCode.Closed, 'the store was closed while it was watched'));
    }
  }

  /** @internal Used only by the streams. */
  setWaiting(stream: LogWatchStream, waiting: boolean): void {
    if (waiting) this.#waiting.add(stream);
    else this.#waiting.delete(stream);
  }

  /** @internal Used only by the streams. */
  forget(stream: LogWatchStream): void {
    this.#open.delete(stream);
    this.#waiting.delete(stream);
  }
}
