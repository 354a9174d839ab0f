/** Pause after the first failed pod of a node, and the longest one. */
const firstMs = 1000;
const maxMs = 15 * 60_000;

interface Entry {
  readonly pauseMs: number;
  /** Monotonic time of the last deletion. */
  readonly since: number;
}

/**
 * Slows down the replacement of failed pods. A node agent that rejects a pod makes it fail at once, and the controller
 * and the agent would otherwise replace and reject without pause.
 */
export class FailedPodBackoff {
  readonly #entries = new Map<string, Entry>();

  /** Milliseconds until the next failed pod of the key may be deleted; 0: now. */
  wait(key: string, now: number): number {
    const entry = this.#entries.get(key);
    return entry === undefined ? 0 : Math.max(0, entry.since + entry.pauseMs - now);
  }

  /**
   * Records the deletion of a failed pod. Each deletion doubles the pause up to the longest one. The pause is reset
   * when no deletion was recorded for twice the longest pause.
   */
  deleted(key: string, now: number): void {
    const entry = this.#entries.get(key);
    const pauseMs = entry === undefined || isOver(entry, now) ? firstMs : Math.min(2 * entry.pauseMs, maxMs);
    for (const [other, old] of this.#entries) if (isOver(old, now)) this.#entries.delete(other);
    this.#entries.set(key, { pauseMs, since: now });
  }
}

function isOver({ since }: Entry, now: number): boolean {
  return now - since > 2 * maxMs;
}
