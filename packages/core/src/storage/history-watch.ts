import { StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import type { ObjectPredicate, WatchEvent } from './resource-storage.ts';
import {
  type BookmarkStamp,
  bookmarkEvent,
  InitialWatchEvent,
  PullWatch,
  SharedWatchEvent,
  shownBefore,
  watchedChange,
} from './resource-watch.ts';
import type { ObjectSource } from './storage-memory.ts';
import { type Change, type KeyRange, prefixRange, type Revision, type Store, type WatchStream } from './store.ts';
import { StoredObject } from './stored-object.ts';

export interface HistoryWatchOptions {
  readonly prefix: string;
  readonly predicate: ObjectPredicate;
  /** Changes after this revision are delivered. */
  readonly after: Revision;
  /** Objects shown as ADDED first: the state at `after`. */
  readonly initial?: readonly StoredObject[];
  readonly endBookmark?: boolean;
  readonly stamp: BookmarkStamp;
  readonly source: ObjectSource;
  readonly signal?: AbortSignal | undefined;
  /** Called when the watch has advanced, with events or without, and when it has failed. */
  readonly onProgress?: (() => void) | undefined;
  /** Called when the watch has ended. */
  readonly onEnd?: ((watch: HistoryWatch) => void) | undefined;
}

/** The keys that a watch examines. */
export function watchedRange(prefix: string, predicate: ObjectPredicate): KeyRange {
  const { key } = predicate;
  if (key === undefined || Buffer.byteLength(key) >= 1024) return prefixRange(prefix);
  return { start: key, end: `${key}\u0001` };
}

/**
 * A watch of its own on the store's history. The next batch is pulled when everything before has been read, so that no
 * events are queued for a slow reader.
 */
export class HistoryWatch extends PullWatch {
  readonly #options: HistoryWatchOptions;
  readonly #stream: WatchStream;
  #queue: WatchEvent[];
  #next = 0;
  #position: Revision;
  #frontier: Revision;
  #bookmark = false;
  #drained: (() => void) | undefined;

  private constructor(options: HistoryWatchOptions, stream: WatchStream) {
    super(options.signal);
    this.#options = options;
    this.#stream = stream;
    this.#queue = (options.initial ?? []).map((object) => new InitialWatchEvent(object));
    this.#position = this.#queue.length > 0 ? 0 : options.after;
    this.#frontier = options.after;
    if (options.endBookmark)
      this.#queue.push(
        bookmarkEvent(options.stamp, options.after, { memory: options.source.memory, initialEventsEnd: true }),
      );
    void this.#pump();
  }

  /** @throws StorageError `Compacted` when the store no longer has the changes after `after`. */
  static async open(store: Store, options: HistoryWatchOptions): Promise<HistoryWatch> {
    const { signal } = options;
    const stream = await store.watch(watchedRange(options.prefix, options.predicate), {
      after: options.after,
      prevValue: true,
      ...(signal === undefined ? {} : { signal }),
    });
    const watch = new HistoryWatch(options, stream);
    if (signal?.aborted) watch.close();
    return watch;
  }

  get revision(): Revision {
    return this.#next >= this.#queue.length ? this.#frontier : this.#position;
  }

  /** True when `read` would return something or throw. */
  get readable(): boolean {
    return this.failed || this.available();
  }

  requestBookmark(): void {
    this.#bookmark = true;
    if (this.#next >= this.#queue.length) this.wake();
  }

  protected available(): boolean {
    return this.#next < this.#queue.length || this.#bookmark;
  }

  protected take(maxEvents: number): readonly WatchEvent[] {
    const events = this.#queue.slice(this.#next, this.#next + maxEvents);
    this.#next += events.length;
    const last = events.at(-1);
    if (last !== undefined && !(last instanceof InitialWatchEvent)) this.#position = last.object.revision;
    if (this.#next < this.#queue.length) return events;
    if (this.#next > 0) {
      this.#queue = [];
      this.#next = 0;
      this.#position = this.#frontier;
    }
    if (events.length === 0 && this.#bookmark) {
      this.#bookmark = false;
      return [bookmarkEvent(this.#options.stamp, this.#frontier, { memory: this.#options.source.memory })];
    }
    this.#drained?.();
    return events;
  }

  protected idle(): void {}

  protected dispose(): void {
    this.#drained?.();
    this.#options.onEnd?.(this);
    // The consumer has ended the watch, so an error of close has no effect on it.
    this.#stream.close().catch(() => {});
  }

  async #pump(): Promise<void> {
    try {
      for await (const batch of this.#stream) {
        if (this.closed) return;
        await this.#untilDrained();
        if (this.closed) return;
        for (const change of batch.changes) this.#accept(change);
        this.#frontier = batch.frontier;
        if (this.available()) this.wake();
        this.#options.onProgress?.();
      }
      this.fail(new StorageError(StorageErrorCode.Closed, 'the store was closed'));
    } catch (error) {
      this.fail(error);
    }
    this.#options.onProgress?.();
  }

  #untilDrained(): Promise<void> | undefined {
    if (this.#next >= this.#queue.length) return undefined;
    return new Promise((resolve) => {
      this.#drained = () => {
        this.#drained = undefined;
        resolve();
      };
    });
  }

  #accept(change: Change): void {
    const { source } = this.#options;
    const { key } = this.#options.predicate;
    if (key !== undefined && key !== change.key) return;
    const prev =
      change.prev === undefined ? undefined : shownBefore(StoredObject.fromEntry(change.prev, source), change.revision);
    const current = change.entry === undefined ? undefined : StoredObject.fromEntry(change.entry, source);
    const type = watchedChange(this.#options.predicate, prev, current);
    if (type === undefined) return;
    const object = type === 'DELETED' ? prev?.restamped(change.revision) : current;
    if (object !== undefined) this.#queue.push(new SharedWatchEvent(type, object.readable()));
  }
}
