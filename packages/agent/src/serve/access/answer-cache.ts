import { createHash } from 'node:crypto';
import type { Clock } from '@keelson/core/runtime';
import { HttpProblem } from '../http/request.ts';

export interface AnswerCacheOptions<V> {
  readonly clock: Clock;
  /** How long an answer is cached; 0 = it is only returned to the callers that wait for it. */
  readonly ttlMs: (answer: V) => number;
  /** Maximum number of cached answers; the least recently used ones are removed. Default 4096. */
  readonly limit?: number;
  /** Maximum number of concurrent requests. Default 100. */
  readonly maxPending?: number;
}

interface Kept<V> {
  readonly answer: V;
  readonly untilMs: number;
}

const defaultLimit = 4096;
const defaultMaxPending = 100;

/**
 * Caches answers of the API server. Concurrent calls with the same question share one request; a failure is returned to
 * all waiting callers, and not cached. Questions are stored as hashes, since some of them are secrets.
 */
export class AnswerCache<V> {
  readonly #options: AnswerCacheOptions<V>;
  readonly #limit: number;
  readonly #maxPending: number;
  readonly #kept = new Map<string, Kept<V>>();
  readonly #pending = new Map<string, Promise<V>>();

  constructor(options: AnswerCacheOptions<V>) {
    this.#options = options;
    this.#limit = options.limit ?? defaultLimit;
    this.#maxPending = options.maxPending ?? defaultMaxPending;
  }

  /**
   * Returns the answer to a question; calls `ask` if it is not cached.
   *
   * @throws HttpProblem 503 when too many requests are running, or the error of `ask`
   */
  async get(question: string, ask: () => Promise<V>): Promise<V> {
    const key = createHash('sha256').update(question).digest('base64');
    const kept = this.#kept.get(key);
    if (kept !== undefined) {
      this.#kept.delete(key);
      if (this.#options.clock.monotonic() < kept.untilMs) {
        this.#kept.set(key, kept);
        return kept.answer;
      }
    }
    const pending = this.#pending.get(key);
    if (pending !== undefined) return pending;
    if (this.#pending.size >= this.#maxPending)
      throw new HttpProblem(503, 'too many requests wait for authentication or authorization', { 'Retry-After': '1' });
    const asking = this.#ask(key, ask);
    this.#pending.set(key, asking);
    return asking;
  }

  async #ask(key: string, ask: () => Promise<V>): Promise<V> {
    try {
      const answer = await ask();
      const ttlMs = this.#options.ttlMs(answer);
      if (ttlMs > 0) this.#keep(key, { answer, untilMs: this.#options.clock.monotonic() + ttlMs });
      return answer;
    } finally {
      this.#pending.delete(key);
    }
  }

  #keep(key: string, kept: Kept<V>): void {
    this.#kept.set(key, kept);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > this.#limit && oldest !== undefined) this.#kept.delete(oldest);
  }
}
