import { isStatusError } from '@keelson/core';
import type { Clock, Logger, Metrics } from '@keelson/core/runtime';
import { TokenBucket } from './retry/rate-limits.ts';
import { type QueueMetrics, queueMetrics } from './work-queue-metrics.ts';

/** Options of a {@link WorkQueue}. */
export interface WorkQueueOptions {
  readonly name: string;
  /** Processes one key. A key whose processing fails is added again with a growing delay. */
  readonly work: (key: string, signal: AbortSignal) => Promise<WorkResult>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics?: Metrics;
  /** Number of keys processed concurrently. Default 1. */
  readonly workers?: number;
  readonly firstRetryMs?: number;
  readonly maxRetryMs?: number;
  /** Average number of retries per second of all keys together. Default 10, as in Kubernetes. */
  readonly retriesPerSecond?: number;
  /** Number of retries at once before `retriesPerSecond` applies. Default 100. */
  readonly retryBurst?: number;
}

/** Result of processing a key: undefined when the key is done, otherwise the pause before it is processed again. */
export type WorkResult = undefined | { readonly againAfterMs: number };

/**
 * A set of keys to process. A key is never processed concurrently with itself. A key that is added while it is
 * processed is processed once more afterwards, so that no change is missed and bursts are combined.
 */
export class WorkQueue {
  readonly #options: Required<Pick<WorkQueueOptions, 'workers' | 'firstRetryMs' | 'maxRetryMs'>> & WorkQueueOptions;
  readonly #retryBucket: TokenBucket;
  readonly #metrics: QueueMetrics | undefined;
  /** Waiting keys with the monotonic time since which they wait. */
  readonly #waiting = new Map<string, number>();
  readonly #running = new Set<string>();
  /** Keys that were added while they are processed, and when. */
  readonly #again = new Map<string, number>();
  readonly #delayed = new Map<string, () => void>();
  readonly #failures = new Map<string, number>();
  readonly #stop = new AbortController();
  #idle: (() => void)[] = [];

  constructor(options: WorkQueueOptions) {
    this.#options = { workers: 1, firstRetryMs: 50, maxRetryMs: 30_000, ...options };
    const { clock, retriesPerSecond = 10, retryBurst = 100, metrics, name } = options;
    this.#retryBucket = new TokenBucket(clock, retriesPerSecond, retryBurst);
    this.#metrics = metrics && queueMetrics(metrics, name);
  }

  add(key: string): void {
    if (this.#stop.signal.aborted) return;
    this.#delayed.get(key)?.();
    this.#delayed.delete(key);
    const keys = this.#running.has(key) ? this.#again : this.#waiting;
    if (!keys.has(key)) {
      keys.set(key, this.#options.clock.monotonic());
      this.#metrics?.added();
    }
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

  /**
   * Cancels the repetition of a key that was added since its processing began. To be called by work that has waited and
   * will now read the state of the key.
   */
  readsNow(key: string): void {
    if (this.#again.delete(key)) this.#reportDepth();
  }

  /** Resets the delay of a key that has failed, for example because the cause no longer exists. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  /** Number of consecutive failures of a key. */
  failuresOf(key: string): number {
    return this.#failures.get(key) ?? 0;
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
    this.#reportDepth();
    if (this.#running.size > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #dispatch(): void {
    for (const [key, since] of this.#waiting) {
      if (this.#running.size >= this.#options.workers) break;
      this.#waiting.delete(key);
      this.#running.add(key);
      this.#metrics?.began(this.#options.clock.monotonic() - since);
      void this.#work(key);
    }
    this.#reportDepth();
  }

  async #work(key: string): Promise<void> {
    const { clock, logger, name } = this.#options;
    const began = clock.monotonic();
    let again: number | undefined;
    try {
      const result = await this.#options.work(key, this.#stop.signal);
      this.#failures.delete(key);
      again = result?.againAfterMs;
    } catch (err) {
      again = this.#retryDelay(key);
      // A conflict (409) is not unusual: another client was faster, and the next attempt reads the new state.
      const level = isStatusError(err) && err.code === 409 ? 'debug' : 'warn';
      if (!this.#stop.signal.aborted) logger[level]('work failed, will retry', { component: name, key, err });
    }
    this.#metrics?.ended(clock.monotonic() - began, this.#failures.has(key));
    this.#running.delete(key);
    const since = this.#again.get(key);
    if (this.#again.delete(key)) this.#waiting.set(key, since ?? clock.monotonic());
    else if (again !== undefined) this.addAfter(key, again);
    if (this.#stop.signal.aborted) {
      if (this.#running.size === 0) for (const resolve of this.#idle.splice(0)) resolve();
      return;
    }
    this.#dispatch();
  }

  #reportDepth(): void {
    this.#metrics?.depth(this.#waiting.size + this.#again.size);
  }

  /**
   * Pause before a failed key is processed again: the longer of the backoff of the key and the wait for the retry rate
   * limit.
   */
  #retryDelay(key: string): number {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    const { firstRetryMs, maxRetryMs } = this.#options;
    return Math.max(Math.min(maxRetryMs, firstRetryMs * 2 ** Math.min(failures, 20)), this.#retryBucket.reserve());
  }
}
