/** Walks the fields of one protobuf message in a buffer. Values are views of the buffer, nothing is copied. */
export class MessageReader {
  readonly buffer: Buffer;
  #at: number;
  #end: number;
  #wire = 0;

  constructor(buffer: Buffer, start = 0, end = buffer.length) {
    this.buffer = buffer;
    this.#at = start;
    this.#end = end;
  }

  /** Number of the next field; 0 at the end of the message. Each field must be read or skipped. */
  next(): number {
    if (this.#at >= this.#end) return 0;
    const tag = this.integer();
    this.#wire = tag & 7;
    return tag >>> 3;
  }

  /** Up to 2^53 exactly; beyond that (ids) use {@link bigint}. */
  integer(): number {
    const { buffer } = this;
    let byte = buffer[this.#at++] as number;
    if (byte < 128) return byte;
    let value = byte & 127;
    let factor = 128;
    do {
      if (this.#at >= this.#end) throw new RangeError('a protobuf message ends within a number');
      byte = buffer[this.#at++] as number;
      value += (byte & 127) * factor;
      factor *= 128;
    } while (byte >= 128);
    return value;
  }

  bigint(): bigint {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      if (this.#at >= this.#end) throw new RangeError('a protobuf message ends within a number');
      const byte = this.buffer[this.#at++] as number;
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asUintN(64, value);
    }
  }

  bytes(): Buffer {
    const end = this.#delimited();
    const view = this.buffer.subarray(this.#at, end);
    this.#at = end;
    return view;
  }

  text(): string {
    const end = this.#delimited();
    const text = this.buffer.toString('utf8', this.#at, end);
    this.#at = end;
    return text;
  }

  /** Reads a nested message with the same reader, which continues behind it afterwards. */
  within<T>(read: (reader: MessageReader) => T): T {
    const end = this.#delimited();
    const outer = this.#end;
    this.#end = end;
    const value = read(this);
    this.#at = end;
    this.#end = outer;
    return value;
  }

  skip(): void {
    switch (this.#wire) {
      case 0:
        this.bigint();
        return;
      case 1:
        this.#at += 8;
        return;
      case 2:
        this.#at = this.#delimited();
        return;
      case 5:
        this.#at += 4;
        return;
      default:
        throw new RangeError(`a protobuf message has a field of unknown wire type ${this.#wire}`);
    }
  }

  #delimited(): number {
    const length = this.integer();
    const end = this.#at + length;
    if (end > this.#end) throw new RangeError('a protobuf message ends within a field');
    return end;
  }
}
