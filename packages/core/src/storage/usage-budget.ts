import type { Clock } from '../runtime/clock.ts';
import type { Droppable } from './byte-budget.ts';

/**
 * Bounds the memory of data that is kept only to save repeated work, by size and by time since its last use. Data that
 * was used once is worth its memory only if it is used again soon.
 */
export class UsageBudget {
  readonly #clock: Clock;
  readonly #limit: number;
  readonly #idleMs: number;
  /** Owners used since the last sweep, and owners not used since then, least recently used first. */
  #used = new Map<Droppable, number>();
  #idle = new Map<Droppable, number>();
  #bytes = 0;
  #sweeping = false;

  /** Data that is not used for one to two times `idleMs` is dropped. */
  constructor(clock: Clock, limitBytes: number, idleMs: number) {
    this.#clock = clock;
    this.#limit = limitBytes;
    this.#idleMs = idleMs;
  }

  get usedBytes(): number {
    return this.#bytes;
  }

  /** Whether the owner has been used lately. */
  includes(owner: Droppable): boolean {
    return this.#used.has(owner) || this.#idle.has(owner);
  }

  /**
   * Records that an owner has used its data, now of the given size. With 0 bytes it records that the owner had none but
   * was asked for them. Drops the data used longest ago when the budget is exceeded, but never that of this owner.
   */
  touch(owner: Droppable, bytes: number): void {
    this.forget(owner);
    this.#used.set(owner, bytes);
    this.#bytes += bytes;
    for (const owners of [this.#idle, this.#used]) {
      for (const other of owners.keys()) {
        if (this.#bytes <= this.#limit || other === owner) break;
        this.#drop(other);
      }
    }
    if (!this.#sweeping) this.#sweepLater();
  }

  /** Records that an owner has released its data. */
  forget(owner: Droppable): void {
    const bytes = this.#used.get(owner) ?? this.#idle.get(owner);
    if (bytes === undefined) return;
    this.#used.delete(owner);
    this.#idle.delete(owner);
    this.#bytes -= bytes;
  }

  #sweepLater(): void {
    this.#sweeping = true;
    this.#clock.after(this.#idleMs, () => this.#sweep());
  }

  #sweep(): void {
    for (const owner of this.#idle.keys()) this.#drop(owner);
    this.#idle = this.#used;
    this.#used = new Map();
    this.#sweeping = false;
    if (this.#idle.size > 0) this.#sweepLater();
  }

  #drop(owner: Droppable): void {
    this.forget(owner);
    owner.drop();
  }
}
