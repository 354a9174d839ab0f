import { StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import { LogWatchStream } from './log-watch-stream.ts';
import type { KeyRange, Revision, WatchBatch, WatchStream } from './store.ts';
import { checkNotCompacted, OrderedRange, throwIfAborted } from './store-checks.ts';

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

  /** @internal Used by the streams alone. */
  setWaiting(stream: LogWatchStream, waiting: boolean): void {
    if (waiting) this.#waiting.add(stream);
    else this.#waiting.delete(stream);
  }

  /** @internal Used by the streams alone. */
  forget(stream: LogWatchStream): void {
    this.#open.delete(stream);
    this.#waiting.delete(stream);
  }
}
