/** Something that keeps a copy of bytes only while it is used. */
export interface BlockHolder {
  /** Lets go of the copy. */
  drop(): void;
}

/** A copy that nobody has used for one to two of these is let go. */
const idleMs = 2_000;

/**
 * Second copies of bytes that a store has in memory anyway, made for lists: kept while lists come one after the other, and at most so many
 * bytes of them. A copy once used is worth its memory only if it is used again soon.
 */
export class SharedBlocks {
  readonly #limit: number;
  #used = new Map<BlockHolder, number>();
  #idle = new Map<BlockHolder, number>();
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(limitBytes: number) {
    this.#limit = limitBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether the holder has a copy, or wanted one lately. */
  knows(holder: BlockHolder): boolean {
    return this.#used.has(holder) || this.#idle.has(holder);
  }

  /** A holder has made its copy, or uses it again; no bytes: it would have liked one. */
  touch(holder: BlockHolder, bytes: number): void {
    this.forget(holder);
    this.#used.set(holder, bytes);
    this.#bytes += bytes;
    for (const holders of [this.#idle, this.#used]) {
      for (const other of holders.keys()) {
        if (this.#bytes <= this.#limit || other === holder) break;
        this.#drop(other);
      }
    }
    this.#timer ??= setInterval(() => this.#sweep(), idleMs).unref();
  }

  /** A holder has no copy any more. */
  forget(holder: BlockHolder): void {
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

  #drop(holder: BlockHolder): void {
    this.forget(holder);
    holder.drop();
  }
}
