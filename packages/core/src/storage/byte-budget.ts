/** An owner of bytes that can be created again. */
export interface Droppable {
  /** Releases the bytes. */
  drop(): void;
}

/**
 * Bounds the memory of things that are kept only to save work: when there are too many bytes, the oldest are dropped.
 */
export class ByteBudget {
  readonly #limit: number;
  #items: Droppable[] = [];
  #sizes: number[] = [];
  #first = 0;
  #used = 0;

  constructor(limitBytes: number) {
    this.#limit = limitBytes;
  }

  get usedBytes(): number {
    return this.#used;
  }

  /** An item may be added once for each piece it keeps; when the first of them is dropped, all are. */
  add(item: Droppable, bytes: number): void {
    this.#items.push(item);
    this.#sizes.push(bytes);
    this.#used += bytes;
    while (this.#used > this.#limit && this.#first < this.#items.length - 1) this.#dropOldest();
  }

  #dropOldest(): void {
    this.#items[this.#first]?.drop();
    this.#used -= this.#sizes[this.#first] ?? 0;
    this.#first++;
    if (this.#first > 1024 && this.#first * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#first);
      this.#sizes = this.#sizes.slice(this.#first);
      this.#first = 0;
    }
  }
}
