import { isStorageError, StorageError, StorageErrorCode } from '@keelson/core';
import type { Clock } from '@keelson/core/runtime';
import {
  type KeyRange,
  OrderedRange,
  type Revision,
  throwIfAborted,
  type WatchStream,
} from '@keelson/core/storage-adapter';
import { boundsOf } from './bounds.ts';
import { allKeys, type ChangeLogReader } from './change-log.ts';
import { type FeedHost, FeedStream } from './feed-stream.ts';
import type { StoreMetrics } from './metrics.ts';
import { RecentChanges } from './recent-changes.ts';
import type { Position } from './rows.ts';
import type { Settings } from './settings.ts';
import type { StoreReader } from './store-reader.ts';
import { closedError } from './translate-error.ts';

export interface WatchOptions {
  readonly after: Revision;
  readonly prevValue?: boolean;
  readonly signal?: AbortSignal;
}

/**
 * All watch streams of this process and the reader that feeds them. The reader reads the log once for all streams,
 * whenever a notification, a write or a poll reports a higher revision. Without streams it is idle.
 */
export class ChangeFeed implements FeedHost {
  readonly recent = new RecentChanges();
  readonly log: ChangeLogReader;
  readonly clock: Clock;
  readonly #reader: StoreReader;
  readonly #metrics: StoreMetrics;
  readonly #settings: Settings;
  readonly #streams = new Set<FeedStream>();
  readonly #waiting = new Set<FeedStream>();
  readonly #prevStreams = new Set<FeedStream>();
  /** Called when the first stream opens. */
  onWatched: () => void = () => {};
  #reported: Revision = 0;
  #hints = 0;
  #reading = false;
  #wakeQueued = false;
  #closed = false;

  constructor(settings: Settings, log: ChangeLogReader, reader: StoreReader, metrics: StoreMetrics) {
    this.#settings = settings;
    this.clock = settings.clock;
    this.log = log;
    this.#reader = reader;
    this.#metrics = metrics;
  }

  get watched(): boolean {
    return this.#streams.size > 0;
  }

  /** The highest revision that was reported by any source. */
  get reported(): Revision {
    return Math.max(this.#reported, this.recent.head);
  }

  /** @param position position of the store, read from the database after this watch was requested */
  open(range: KeyRange, options: WatchOptions, position: Position): WatchStream {
    if (this.#closed) throw closedError();
    throwIfAborted(options.signal);
    const ordered = new OrderedRange(range);
    const bounds = boundsOf(range);
    this.assertReadable(options.after);
    if (this.#streams.size === 0 && position.head > this.recent.head) this.recent.restart(position.head);
    const stream = new FeedStream(this, ordered, bounds, options);
    this.#streams.add(stream);
    if (stream.prevValue) this.#prevStreams.add(stream);
    this.#metrics.streams(this.#streams.size);
    if (this.#streams.size === 1) this.onWatched();
    this.hint(position.head);
    return stream;
  }

  /** Reports that the store may have reached `revision`. A wrong hint is harmless, since the log is read. */
  hint(revision: Revision): void {
    if (revision <= this.recent.head) return;
    this.#hints++;
    if (revision > this.#reported) this.#reported = revision;
    this.#read();
  }

  /**
   * Reads the log up to `revision`, for at most one second, and waits until the streams near the newest revision have
   * received the changes. Called before a compaction at `revision`, so that these streams are not interrupted.
   */
  async catchUp(revision: Revision): Promise<void> {
    const deadline = this.clock.monotonic() + 1000;
    this.hint(revision);
    while (this.watched && this.recent.head < revision && this.clock.monotonic() < deadline) {
      await new Promise<void>((resolve) => {
        this.clock.after(1, resolve);
      });
    }
    if (this.watched) await new Promise((resolve) => setImmediate(resolve));
  }

  /** Reports that the compacted revision may have changed. */
  compacted(): void {
    this.#wake();
  }

  /** Starts again at `head` after history was rewound; cached changes may be void. */
  restart(head: Revision): void {
    this.recent.restart(head);
    this.#reported = head;
    this.#wake();
  }

  /** Ends every stream with `Closed`. */
  close(): void {
    this.#closed = true;
    const failure = new StorageError(StorageErrorCode.Closed, 'the store was closed while it was watched');
    for (const stream of [...this.#streams]) stream.fail(failure);
  }

  assertReadable(revision: Revision): void {
    this.#reader.assertReadable(
      revision,
      { stamp: '', head: this.recent.head, compacted: this.#reader.compacted },
      false,
    );
  }

  setWaiting(stream: FeedStream, waiting: boolean): void {
    if (waiting) this.#waiting.add(stream);
    else this.#waiting.delete(stream);
  }

  forget(stream: FeedStream): void {
    this.#streams.delete(stream);
    this.#waiting.delete(stream);
    this.#prevStreams.delete(stream);
    this.#metrics.streams(this.#streams.size);
  }

  #read(): void {
    if (this.#reading || this.#closed || !this.watched || this.#reported <= this.recent.head) return;
    this.#reading = true;
    void this.#readAhead().finally(() => {
      this.#reading = false;
    });
  }

  async #readAhead(): Promise<void> {
    while (!this.#closed && this.watched && this.#reported > this.recent.head) {
      const from = this.recent.head;
      const hints = this.#hints;
      try {
        const { changes, frontier, position } = await this.log.read(from, allKeys, this.#prevStreams.size > 0);
        // A restart has replaced the position during the read.
        if (this.recent.head !== from) continue;
        this.recent.append(changes, frontier);
        // A reported revision may not exist. If none was reported during this read, the position that was read replaces
        // the highest reported revision.
        if (this.#hints === hints) this.#reported = Math.max(position.head, frontier);
        this.#metrics.lag(Math.max(this.#reported - frontier, 0));
      } catch (error) {
        if (!isStorageError(error, StorageErrorCode.Compacted)) {
          this.#settings.logger.debug('the log cannot be read, the next poll retries', {
            error: String(error),
          });
          return;
        }
        // The reader is too far behind. Each stream determines its own position.
        this.recent.restart(Math.max(this.recent.head, error.revision ?? 0));
      }
      this.#wake();
    }
  }

  #wake(): void {
    if (this.#wakeQueued || this.#waiting.size === 0) return;
    this.#wakeQueued = true;
    queueMicrotask(() => {
      this.#wakeQueued = false;
      for (const stream of [...this.#waiting]) stream.pump();
    });
  }
}
