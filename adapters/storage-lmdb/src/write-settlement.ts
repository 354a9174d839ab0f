import { addAbortListener, type Clock, removeAbortListener, StorageError, StorageErrorCode } from '@keelson/core';

/**
 * A write is on disk sooner as a rule: only who waits longer than this listens for its caller's leaving, which costs as
 * much as the write.
 */
const settledSoonMs = 20;

/** What those that have begun to wait lately do when the time above is over. */
const recent = new Set<{ listen(): void }>();
let scheduled = false;

function soon(): void {
  if (scheduled) return;
  scheduled = true;
  setTimeout(() => {
    scheduled = false;
    const waiting = [...recent];
    recent.clear();
    for (const each of waiting) each.listen();
  }, settledSoonMs);
}

/** How long the caller of a write waits for its result. */
export interface WriteOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

/**
 * What one caller of a write is told: its outcome, or `OutcomeUnknown` when the caller stops waiting. The write goes on
 * then, since others may already have been decided on top of it.
 */
export class WriteSettlement<T> {
  readonly answer: Promise<T>;
  readonly #signal: AbortSignal | undefined;
  #resolve: (value: T) => void = () => {};
  #reject: (error: unknown) => void = () => {};
  #cancelTimeout: (() => void) | undefined;
  /** Set once this call listens to its signal. */
  #onAbort: (() => void) | undefined;

  constructor(clock: Clock, { signal, timeoutMs }: WriteOptions) {
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#signal = signal;
    if (timeoutMs !== undefined) {
      this.#cancelTimeout = clock.after(timeoutMs, () =>
        this.#giveUp(`the write did not finish within ${timeoutMs} ms`),
      );
    }
    if (signal === undefined) return;
    recent.add(this);
    soon();
  }

  /** The outcome; whoever has left is not told any more. */
  resolve(value: T): void {
    if (this.#signal?.aborted) this.#aborted();
    this.#release();
    this.#resolve(value);
  }

  reject(error: unknown): void {
    this.#release();
    this.#reject(error);
  }

  /** From now on an abort rejects the call at once. */
  listen(): void {
    if (this.#signal?.aborted) {
      this.#aborted();
      return;
    }
    this.#onAbort = () => this.#aborted();
    addAbortListener(this.#signal, this.#onAbort);
  }

  #aborted(): void {
    this.#giveUp('the call was aborted while the write was under way', this.#signal?.reason);
  }

  #giveUp(message: string, cause?: unknown): void {
    this.reject(new StorageError(StorageErrorCode.OutcomeUnknown, message, cause === undefined ? {} : { cause }));
  }

  #release(): void {
    if (!recent.delete(this) && this.#onAbort !== undefined) removeAbortListener(this.#signal, this.#onAbort);
    this.#cancelTimeout?.();
  }
}
