/** Bytes of a number that a double adds up exactly. */
const exactBytes = 7;

/** Walks the fields of a protobuf message in a buffer. Bytes are views of the buffer, nothing is copied. */
export class WireReader {
  readonly #buffer: Buffer;
  #at: number;
  #end: number;
  #wireType = 0;

  constructor(buffer: Buffer, start = 0, end = buffer.length) {
    this.#buffer = buffer;
    this.#at = start;
    this.#end = end;
  }

  /** Number of the next field, 0 at the end. The field must be read or skipped before the next call. */
  next(): number {
    if (this.#at >= this.#end) return 0;
    const tag = this.integer();
    this.#wireType = tag & 7;
    return tag >>> 3;
  }

  /** Whether the message, or what {@link within} looks at, is used up. */
  get atEnd(): boolean {
    return this.#at >= this.#end;
  }

  /** True when the current field holds bytes: text, a message, or packed numbers. */
  get isDelimited(): boolean {
    return this.#wireType === 2;
  }

  /** A signed number; exact up to 2^53. What may be beyond (identifiers) is for {@link bigint}. */
  integer(): number {
    const begin = this.#at;
    let byte = this.#byte();
    // Tags, lengths and flags are most of what is read.
    if (byte < 128) return byte;
    let value = byte & 127;
    let factor = 128;
    for (let count = 1; count < exactBytes; count += 1) {
      byte = this.#byte();
      value += (byte & 127) * factor;
      if (byte < 128) return value;
      factor *= 128;
    }
    this.#at = begin;
    return Number(BigInt.asIntN(64, this.bigint()));
  }

  /** All 64 bits, unsigned. */
  bigint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#byte();
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asUintN(64, value);
    }
    throw new RangeError('a protobuf message has a number of more than ten bytes');
  }

  bytes(): Buffer {
    const end = this.#delimited();
    const view = this.#buffer.subarray(this.#at, end);
    this.#at = end;
    return view;
  }

  text(): string {
    const end = this.#delimited();
    const text = this.#buffer.toString('utf8', this.#at, end);
    this.#at = end;
    return text;
  }

  /** Reads the message in the current field with this reader, which goes on behind it. */
  within<T>(read: (reader: WireReader) => T): T {
    const end = this.#delimited();
    const outer = this.#end;
    this.#end = end;
    const value = read(this);
    this.#at = end;
    this.#end = outer;
    return value;
  }

  skip(): void {
    if (this.#wireType === 0) this.bigint();
    else if (this.#wireType === 1) this.#at += 8;
    else if (this.#wireType === 2) this.#at = this.#delimited();
    else if (this.#wireType === 5) this.#at += 4;
    else throw new RangeError(`a protobuf message has a field of unknown wire type ${this.#wireType}`);
  }

  #byte(): number {
    if (this.#at >= this.#end) throw new RangeError('a protobuf message ends within a number');
    return this.#buffer[this.#at++] as number;
  }

  #delimited(): number {
    const length = this.integer();
    const end = this.#at + length;
    if (length < 0 || end > this.#end) throw new RangeError('a protobuf message ends within a field');
    return end;
  }
}
