interface Entry {
  backoffMs: number;
  lastMs: number;
}

/**
 * Back-off between failed attempts, by key: see docs/reference/agent-rules.md#back-off. The caller passes all times, in
 * milliseconds.
 */
export class RestartBackoff {
  readonly #entries = new Map<string, Entry>();
  readonly #firstMs: number;
  readonly #maxMs: number;

  constructor(firstMs = 10_000, maxMs = 300_000) {
    this.#firstMs = firstMs;
    this.#maxMs = maxMs;
  }

  /** The rest of the back-off that began with the failure at `failedMs`, in milliseconds; 0 when it is over. */
  remaining(key: string, failedMs: number, nowMs: number): number {
    const entry = this.#entries.get(key);
    if (entry === undefined || failedMs - entry.lastMs > 2 * this.#maxMs) return 0;
    return Math.max(0, entry.backoffMs - (nowMs - failedMs));
  }

  /** Records a failure and lengthens the back-off after the next one. */
  next(key: string, failedMs: number): void {
    const entry = this.#entries.get(key);
    if (entry === undefined || failedMs - entry.lastMs > 2 * this.#maxMs) {
      this.#entries.set(key, { backoffMs: this.#firstMs, lastMs: failedMs });
    } else {
      entry.backoffMs = Math.min(this.#maxMs, entry.backoffMs * 2);
      entry.lastMs = failedMs;
    }
  }

  /** The back-off after a failure at this time. */
  pauseMs(key: string): number {
    return this.#entries.get(key)?.backoffMs ?? 0;
  }

  /** Removes all keys that begin with `prefix`. */
  forget(prefix: string): void {
    for (const key of this.#entries.keys()) if (key.startsWith(prefix)) this.#entries.delete(key);
  }
}
