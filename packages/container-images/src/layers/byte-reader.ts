/** Reads a stream of buffers in pieces of given lengths. */
export class ByteReader {
  readonly #source: AsyncIterator<Buffer>;
  #held: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /**
   * Reads exactly `length` bytes; undefined when the stream contains no more bytes.
   * @throws Error when the stream contains fewer than `length` bytes
   */
  async exactly(length: number): Promise<Buffer | undefined> {
    const parts: Buffer[] = [];
    for await (const part of this.#upTo(length)) parts.push(part);
    const bytes = parts.length === 1 ? parts[0] : Buffer.concat(parts);
    if (bytes?.length === length) return bytes;
    if (parts.length === 0) return undefined;
    throw new Error('unexpected end of the archive');
  }

  /** Yields the next `length` bytes in chunks as received. @throws Error when the stream ends earlier */
  async *chunks(length: number): AsyncGenerator<Buffer> {
    let left = length;
    for await (const part of this.#upTo(length)) {
      left -= part.length;
      yield part;
    }
    if (left > 0) throw new Error('unexpected end of the archive');
  }

  /** Yields the remaining bytes in chunks as received. */
  rest(): AsyncGenerator<Buffer> {
    return this.#upTo(Number.POSITIVE_INFINITY);
  }

  async *#upTo(length: number): AsyncGenerator<Buffer> {
    let left = length;
    while (left > 0) {
      if (this.#held.length === 0) {
        const next = await this.#source.next();
        if (next.done) return;
        this.#held = next.value;
      }
      const part = this.#held.subarray(0, left);
      this.#held = this.#held.subarray(part.length);
      left -= part.length;
      if (part.length > 0) yield part;
    }
  }
}
