import type { Droppable } from '../storage/byte-budget.ts';

/**
 * What is made for lists beside what is there anyway, such as second copies of bytes: kept while lists come one after
 * the other, and at most so many bytes of it. What was used once is worth its memory only if it is used again soon.
 */
export class KeptWhileUsed {
  readonly #limit: number;
  readonly #idleMs: number;
  #used = new Map<Droppable, number>();
  #idle = new Map<Droppable, number>();
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  /** What nobody has used for one to two times `idleMs` is let go. */
  constructor(limitBytes: number, idleMs: number) {
    this.#limit = limitBytes;
    this.#idleMs = idleMs;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether the holder has a copy, or wanted one lately. */
  knows(holder: Droppable): boolean {
    return this.#used.has(holder) || this.#idle.has(holder);
  }

  /** A holder has made its copy, or uses it again; no bytes: it would have liked one. */
  touch(holder: Droppable, bytes: number): void {
    this.forget(holder);
    this.#used.set(holder, bytes);
    this.#bytes += bytes;
    for (const holders of [this.#idle, this.#used]) {
      for (const other of holders.keys()) {
        if (this.#bytes <= this.#limit || other === holder) break;
        this.#drop(other);
      }
    }
    this.#timer ??= setInterval(() => this.#sweep(), this.#idleMs).unref();
  }

  /** A holder has no copy any more. */
  forget(holder: Droppable): void {
    const bytes = this.#used.get(holder) ?? this.#idle.get(holder);
    if (bytes === undefined) return;
    this.#used.delete(holder);
    this.#idle.delete(holder);
    this.#bytes -= bytes;
  }

  #sweep(): void {
    for (const holder of this.#idle.keys()) this.#drop(holder);
    this.#idle = this.#used;
    this.#used = new Map();
    if (this.#idle.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #drop(holder: Droppable): void {
    this.forget(holder);
    holder.drop();
  }
}
