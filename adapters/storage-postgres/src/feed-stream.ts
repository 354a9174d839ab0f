import { isStorageError } from '@keelson/core';
import type { Clock } from '@keelson/core/runtime';
import { LogWatchStream, type OrderedRange, type Revision, type WatchBatch } from '@keelson/core/storage-adapter';
import type { Bounds } from './bounds.ts';
import type { WatchOptions } from './change-feed.ts';
import type { ChangeLogReader } from './change-log.ts';
import type { RecentChanges } from './recent-changes.ts';
import { translateError } from './translate-error.ts';

/** What a stream requires of the feed that owns it. */
export interface FeedHost {
  readonly recent: RecentChanges;
  readonly log: ChangeLogReader;
  readonly clock: Clock;
  hint(revision: Revision): void;
  /** @throws StorageError `Compacted` when changes after `revision` are compacted */
  assertReadable(revision: Revision): void;
  setWaiting(stream: FeedStream, waiting: boolean): void;
  forget(stream: FeedStream): void;
}

/** After an error that may be temporary, the log is read again from the same position after this time. */
const retryPauseMs = 250;

/**
 * A watch stream with its position in the log. A stream near the newest revision receives the changes that the feed has
 * read for all streams. A stream further back reads the log itself, one piece whenever its consumer waits.
 */
export class FeedStream extends LogWatchStream {
  readonly prevValue: boolean;
  readonly #feed: FeedHost;
  readonly #range: OrderedRange;
  readonly #bounds: Bounds;
  /** A piece of the log that follows `after`. */
  #piece: { readonly after: Revision; readonly batch: WatchBatch } | undefined;
  #reading = false;
  #cancelRetry: (() => void) | undefined;

  /** Created by the feed only. */
  constructor(feed: FeedHost, range: OrderedRange, bounds: Bounds, options: WatchOptions) {
    super(options.after, options.signal);
    this.#feed = feed;
    this.#range = range;
    this.#bounds = bounds;
    this.prevValue = options.prevValue === true;
  }

  protected override requestAdvance(revision: Revision): void {
    this.#feed.hint(revision);
  }

  protected read(): WatchBatch | undefined {
    const { frontier } = this;
    const { recent } = this.#feed;
    this.#feed.assertReadable(frontier);
    if (recent.reachesBack(frontier, this.prevValue)) {
      return recent.head > frontier ? recent.read(frontier, this.#range, this.prevValue) : undefined;
    }
    const piece = this.#piece;
    this.#piece = undefined;
    if (piece?.after === frontier) return piece.batch;
    if (!this.#reading) void this.#readLog(frontier);
    return undefined;
  }

  protected setWaiting(waiting: boolean): void {
    this.#feed.setWaiting(this, waiting);
  }

  protected release(): void {
    this.#cancelRetry?.();
    this.#feed.forget(this);
  }

  async #readLog(after: Revision): Promise<void> {
    this.#cancelRetry?.();
    this.#reading = true;
    try {
      const { changes, frontier } = await this.#feed.log.read(after, this.#bounds, this.prevValue);
      if (frontier > after) {
        this.#piece = { after, batch: { changes: changes.map(({ plain, full }) => full ?? plain), frontier } };
      }
    } catch (error) {
      // The database may be temporarily unavailable: the stream keeps its position.
      if (!isStorageError(error, 'Unavailable') && !isStorageError(error, 'Timeout')) {
        this.fail(translateError(error, 'a watch'));
      }
    } finally {
      this.#reading = false;
    }
    if (this.ended) return;
    if (this.#piece !== undefined) this.pump();
    else this.#cancelRetry = this.#feed.clock.after(retryPauseMs, () => this.pump());
  }
}
