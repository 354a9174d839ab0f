import type { Clock, Logger } from '@keelson/core/runtime';

export interface WorkQueueOptions {
  readonly name: string;
  /** Processes one key. A key whose processing fails is added again with a growing delay. */
  readonly work: (key: string, signal: AbortSignal) => Promise<WorkResult>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Number of keys processed concurrently. Default 1. */
  readonly workers?: number;
  readonly firstRetryMs?: number;
  readonly maxRetryMs?: number;
}

/** Undefined: the key is done. Otherwise it is processed again after a pause. */
export type WorkResult = undefined | { readonly againAfterMs: number };

/**
 * A set of keys to process. A key is never processed concurrently with itself. A key that is added while it is
 * processed is processed once more afterwards, so that no change is missed and bursts are combined.
 */
export class WorkQueue {
  readonly #options: Required<WorkQueueOptions>;
  readonly #waiting = new Set<string>();
  readonly #running = new Set<string>();
  readonly #again = new Set<string>();
  readonly #delayed = new Map<string, () => void>();
  readonly #failures = new Map<string, number>();
  readonly #stop = new AbortController();
  #idle: (() => void)[] = [];

  constructor(options: WorkQueueOptions) {
    this.#options = { workers: 1, firstRetryMs: 50, maxRetryMs: 30_000, ...options };
  }

  add(key: string): void {
    if (this.#stop.signal.aborted) return;
    this.#delayed.get(key)?.();
    this.#delayed.delete(key);
    if (this.#running.has(key)) this.#again.add(key);
    else this.#waiting.add(key);
    this.#dispatch();
  }

  /** Adds the key after a pause, unless it is added earlier. */
  addAfter(key: string, ms: number): void {
    if (this.#stop.signal.aborted || this.#delayed.has(key)) return;
    this.#delayed.set(
      key,
      this.#options.clock.after(ms, () => {
        this.#delayed.delete(key);
        this.add(key);
      }),
    );
  }

  /** Number of keys that are waiting, being processed, or scheduled. */
  get size(): number {
    return this.#waiting.size + this.#running.size + this.#delayed.size;
  }

  /** Stops the queue: no processing starts any more; running processing is aborted and awaited. */
  async stop(): Promise<void> {
    this.#stop.abort();
    for (const cancel of this.#delayed.values()) cancel();
    this.#delayed.clear();
    this.#waiting.clear();
    this.#again.clear();
    if (this.#running.size > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #dispatch(): void {
    for (const key of this.#waiting) {
      if (this.#running.size >= this.#options.workers) return;
      this.#waiting.delete(key);
      this.#running.add(key);
      void this.#work(key);
    }
  }

  async #work(key: string): Promise<void> {
    let again: number | undefined;
    try {
      const result = await this.#options.work(key, this.#stop.signal);
      this.#failures.delete(key);
      again = result?.againAfterMs;
    } catch (err) {
      again = this.#retryDelay(key);
      if (!this.#stop.signal.aborted)
        this.#options.logger.warn('work failed, will retry', { component: this.#options.name, key, err });
    }
    this.#running.delete(key);
    if (this.#again.delete(key)) this.#waiting.add(key);
    else if (again !== undefined) this.addAfter(key, again);
    if (this.#stop.signal.aborted) {
      if (this.#running.size === 0) for (const resolve of this.#idle.splice(0)) resolve();
      return;
    }
    this.#dispatch();
  }

  #retryDelay(key: string): number {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    return Math.min(this.#options.maxRetryMs, this.#options.firstRetryMs * 2 ** Math.min(failures, 20));
  }
}
