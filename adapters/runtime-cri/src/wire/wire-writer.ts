/** A protobuf message under construction: pieces that are joined once. */
export class WireWriter {
  readonly #pieces: Uint8Array[] = [];
  #length = 0;

  /** Writes a tag and a number, zero included: whether zero is worth a field is for the caller to say. */
  number(field: number, value: number | bigint): void {
    this.#push(varint(field * 8));
    this.#push(varint(value));
  }

  bytes(field: number, value: Uint8Array): void {
    this.#push(varint(field * 8 + 2));
    this.#push(varint(value.byteLength));
    this.#push(value);
  }

  message(field: number, inner: WireWriter): void {
    this.#push(varint(field * 8 + 2));
    this.#push(varint(inner.#length));
    for (const piece of inner.#pieces) this.#push(piece);
  }

  /** Numbers without tags, one after the other. */
  packed(field: number, values: readonly number[]): void {
    this.bytes(field, Buffer.concat(values.map(varint)));
  }

  finish(): Buffer {
    return Buffer.concat(this.#pieces, this.#length);
  }

  #push(piece: Uint8Array): void {
    this.#pieces.push(piece);
    this.#length += piece.byteLength;
  }
}

function varint(value: number | bigint): Uint8Array {
  const bytes: number[] = [];
  if (typeof value === 'number' && value >= 0) {
    let rest = value;
    for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
    bytes.push(rest);
    return Uint8Array.from(bytes);
  }
  // Negative numbers are written as 64 bits, whatever their declared width.
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest >= 128n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  bytes.push(Number(rest));
  return Uint8Array.from(bytes);
}
