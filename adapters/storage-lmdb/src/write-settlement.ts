import { StorageError, StorageErrorCode } from '@keelson/core';
import { addAbortListener, type Clock, removeAbortListener } from '@keelson/core/runtime';

/**
 * Most writes are on disk sooner. Only calls that wait longer than this listen to their abort signal, because a
 * listener costs as much as the write.
 */
const listenAfterMs = 20;

/** Calls that do not listen to their signals yet. */
const recent = new Set<{ listen(): void }>();
let scheduled = false;

function scheduleListening(): void {
  if (scheduled) return;
  scheduled = true;
  // Not injected: only determines when a listener is added; an earlier abort is observed then.
  setTimeout(() => {
    scheduled = false;
    const waiting = [...recent];
    recent.clear();
    for (const each of waiting) each.listen();
  }, listenAfterMs);
}

/** How long the caller of a write waits for its result. */
export interface WriteOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

/**
 * The result that one caller of a write receives: the outcome, or `OutcomeUnknown` when the caller stops waiting. The
 * write continues in that case, since later writes may already depend on it.
 */
export class WriteSettlement<T> {
  readonly answer: Promise<T>;
  readonly #signal: AbortSignal | undefined;
  #resolve: (value: T) => void = () => {};
  #reject: (error: unknown) => void = () => {};
  #cancelTimeout: (() => void) | undefined;
  /** Present while this call listens to its signal. */
  #onAbort: (() => void) | undefined;

  constructor(clock: Clock, { signal, timeoutMs }: WriteOptions) {
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#signal = signal;
    if (timeoutMs !== undefined) {
      this.#cancelTimeout = clock.after(timeoutMs, () =>
        this.#abandon(`the write did not finish within ${timeoutMs} ms`),
      );
    }
    if (signal === undefined) return;
    recent.add(this);
    scheduleListening();
  }

  /** Reports the outcome, or the abort when the signal was aborted. */
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
    this.#abandon('the call was aborted while the write was under way', this.#signal?.reason);
  }

  #abandon(message: string, cause?: unknown): void {
    this.reject(new StorageError(StorageErrorCode.OutcomeUnknown, message, cause === undefined ? {} : { cause }));
  }

  #release(): void {
    if (!recent.delete(this) && this.#onAbort !== undefined) removeAbortListener(this.#signal, this.#onAbort);
    this.#cancelTimeout?.();
  }
}
