/** A key to be removed, provided that its revision is unchanged. */
export interface Expiry {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly ordered: string;
  readonly revision: number;
}

/** Binary heap by expiry time. Entries of keys that were put again remain until their time, and are ignored then. */
export class ExpiryQueue {
  readonly #heap: Expiry[] = [];

  get first(): Expiry | undefined {
    return this.#heap[0];
  }

  push(expiry: Expiry): void {
    const heap = this.#heap;
    let i = heap.push(expiry) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      const above = heap[parent] as Expiry;
      if (above.at <= expiry.at) break;
      heap[i] = above;
      i = parent;
    }
    heap[i] = expiry;
  }

  shift(): Expiry | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && (heap[child + 1] as Expiry).at < (heap[child] as Expiry).at) child++;
      const below = heap[child] as Expiry;
      if (below.at >= last.at) break;
      heap[i] = below;
      i = child;
    }
    heap[i] = last;
    return first;
  }
}
