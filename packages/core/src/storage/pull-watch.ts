import { StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import { addAbortListener, removeAbortListener } from '../meta/abort-listeners.ts';
import type { ResourceWatch, WatchEvent } from './resource-storage.ts';
import type { Revision } from './store.ts';

const chunk = 256;

/** What every {@link ResourceWatch} does alike: telling the reader once, ending once, and being iterated. */
export abstract class PullWatch implements ResourceWatch {
  #callback: (() => void) | undefined = undefined;
  #failure: StorageError | undefined = undefined;
  #closed = false;
  #signal: AbortSignal | undefined;
  #onAbort: (() => void) | undefined;
  #release: (() => void) | undefined = undefined;

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
    if (signal !== undefined) {
      this.#onAbort = () => this.close();
      addAbortListener(signal, this.#onAbort);
    }
  }

  abstract readonly revision: Revision;
  abstract requestBookmark(): void;
  /** Events that are there now. */
  protected abstract take(maxEvents: number): readonly WatchEvent[];
  /** True when `take` would return events, or must be called to continue the search for some. */
  protected abstract available(): boolean;
  /** The reader has found nothing and now waits. */
  protected abstract idle(): void;
  /** Gives up whatever the watch holds; called once. */
  protected abstract dispose(): void;

  get closed(): boolean {
    return this.#closed;
  }

  read(maxEvents: number): readonly WatchEvent[] {
    if (this.#closed) return [];
    const events = this.take(maxEvents);
    if (events.length === 0 && this.#failure !== undefined && !this.available()) {
      const failure = this.#failure;
      this.close();
      throw failure;
    }
    return events;
  }

  onReadable(callback: () => void): void {
    if (this.#closed) return;
    this.#callback = callback;
    if (this.#failure !== undefined || this.available()) setImmediate(() => this.wakeIfReadable());
    else this.idle();
  }

  /** Calls the waiting reader, if there is one. */
  wake(): void {
    const callback = this.#callback;
    if (callback === undefined) return;
    this.#callback = undefined;
    callback();
  }

  /** Calls the waiting reader, unless it has read everything by itself in the meantime. */
  wakeIfReadable(): void {
    if (this.#closed || this.#callback === undefined) return;
    if (this.#failure !== undefined || this.available()) this.wake();
    else this.idle();
  }

  /** Ends the watch once everything before has been read. */
  fail(error: unknown): void {
    if (this.#closed || this.#failure !== undefined) return;
    this.#failure =
      error instanceof StorageError
        ? error
        : new StorageError(StorageErrorCode.Unavailable, 'the watch cannot continue', { cause: error });
    this.wake();
  }

  protected get failed(): boolean {
    return this.#failure !== undefined;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#callback = undefined;
    if (this.#onAbort !== undefined) removeAbortListener(this.#signal, this.#onAbort);
    this.#signal = undefined;
    this.#onAbort = undefined;
    this.dispose();
    this.#release?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchEvent, void, undefined> {
    try {
      while (!this.#closed) {
        const events = this.read(chunk);
        yield* events;
        if (events.length === 0) await this.#readable();
      }
    } finally {
      this.close();
    }
  }

  #readable(): Promise<void> {
    return new Promise((resolve) => {
      this.#release = resolve;
      this.onReadable(resolve);
      if (this.#closed) resolve();
    });
  }
}
