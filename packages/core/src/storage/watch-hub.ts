import { StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import { OrderedRange } from './key-order.ts';
import { type ChangeLog, LogWatchStream, type StreamHost } from './log-watch-stream.ts';
import type { KeyRange, Revision, WatchStream } from './store.ts';
import { checkNotCompacted, throwIfAborted } from './store-checks.ts';

/**
 * The watch streams over one {@link ChangeLog}. A stream is a position in the log and nothing else; those whose
 * consumer waits at the head are woken together, once per turn.
 */
export class WatchHub implements StreamHost {
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
  open(
    range: KeyRange,
    options: { readonly after: Revision; readonly prevValue?: boolean; readonly signal?: AbortSignal },
    compacted: Revision,
  ): WatchStream {
    if (this.#closed) throw new StorageError(StorageErrorCode.Closed, 'the store is closed');
    throwIfAborted(options.signal);
    checkNotCompacted(options.after, compacted);
    const stream = new LogWatchStream(this, new OrderedRange(range), options);
    this.#open.add(stream);
    return stream;
  }

  /** Says that `log.head` has moved. Consumers run in a later microtask of this turn. */
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
