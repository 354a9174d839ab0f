/** Bytes of a varint whose value a double represents exactly. */
const exactBytes = 7;

/** Reads the fields of a protobuf message in a buffer, in order. Bytes are views of the buffer; nothing is copied. */
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

  /** Whether the end of the message, or of the message within {@link within}, is reached. */
  get atEnd(): boolean {
    return this.#at >= this.#end;
  }

  /** Whether the current field contains bytes: text, a message, or packed numbers. */
  get isDelimited(): boolean {
    return this.#wireType === 2;
  }

  /** Reads a signed number, exact up to 2^53. Larger numbers, such as identifiers, require {@link bigint}. */
  integer(): number {
    const begin = this.#at;
    let byte = this.#byte();
    // Most numbers are tags, lengths and flags of one byte.
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

  /** Reads all 64 bits as an unsigned number. */
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

  /** Reads the message in the current field with this reader, which continues after it. */
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
