/**
 * A protobuf message under construction. Its pieces are joined once, so that a value of one megabyte in three nested
 * messages is copied once.
 */
export class WireWriter {
  readonly #pieces: Uint8Array[] = [];
  #length = 0;

  /** Writes nothing for zero, as proto3 requires. */
  integer(field: number, value: number | bigint): this {
    if (value === 0 || value === 0n) return this;
    return this.#push(varint(field << 3)).#push(varint(value));
  }

  flag(field: number, value: boolean): this {
    return value ? this.integer(field, 1) : this;
  }

  /** Writes a packed field: numbers without tags. */
  packed(field: number, values: readonly number[]): this {
    return this.bytes(field, ...values.map(varint));
  }

  /** Writes one value that consists of the parts in order. */
  bytes(field: number, ...parts: readonly Uint8Array[]): this {
    let length = 0;
    for (const part of parts) length += part.byteLength;
    this.#push(varint((field << 3) | 2)).#push(varint(length));
    for (const part of parts) this.#push(part);
    return this;
  }

  message(field: number, inner: WireWriter): this {
    this.#push(varint((field << 3) | 2)).#push(varint(inner.#length));
    for (const piece of inner.#pieces) this.#push(piece);
    return this;
  }

  finish(): Buffer {
    return Buffer.concat(this.#pieces, this.#length);
  }

  #push(piece: Uint8Array): this {
    this.#pieces.push(piece);
    this.#length += piece.byteLength;
    return this;
  }
}

/** Encodings of numbers of one byte, created once: most numbers are tags and short lengths. */
const small = Array.from({ length: 128 }, (_, i) => Uint8Array.of(i));

function varint(value: number | bigint): Uint8Array {
  if (typeof value === 'number' && value >= 0 && value < 128) return small[value] as Uint8Array;
  const bytes: number[] = [];
  if (typeof value === 'number' && value >= 0) {
    for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
    bytes.push(value);
    return Uint8Array.from(bytes);
  }
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest >= 128n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  bytes.push(Number(rest));
  return Uint8Array.from(bytes);
}
