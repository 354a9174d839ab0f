import { promisify } from 'node:util';
import { constants, crc32, deflateRaw, type ZlibOptions } from 'node:zlib';
import { ByteBudget, type Droppable } from '@keelson/core';

/** The polynomial of CRC-32 in reflected bit order: the highest bit stands for x^0. */
const polynomial = 0xedb88320;
const one = 0x80000000;

/** Product of two polynomials modulo that of CRC-32. */
function product(a: number, b: number): number {
  let sum = 0;
  let shifted = b;
  for (let bit = one; bit !== 0; bit >>>= 1) {
    if ((a & bit) !== 0) sum ^= shifted;
    shifted = (shifted & 1) === 0 ? shifted >>> 1 : (shifted >>> 1) ^ polynomial;
  }
  return sum >>> 0;
}

/** x^(2^n); x has the order 2^32 - 1, so the 32 of them repeat. */
const powers = [one >>> 1];
while (powers.length < 32) {
  const last = powers[powers.length - 1] as number;
  powers.push(product(last, last));
}

/** What {@link joinedCrc32} needs to know of the length of the second part. */
export function crc32Shift(bytes: number): number {
  let shift = one;
  // Eight bits a byte: the exponent begins at 2^3.
  for (let rest = bytes, n = 3; rest > 0; rest = Math.floor(rest / 2), n += 1) {
    if (rest % 2 === 1) shift = product(shift, powers[n % 32] as number);
  }
  return shift;
}

/** CRC-32 of two parts one after the other, from those of each and the {@link crc32Shift} of the second. */
export function joinedCrc32(first: number, second: number, secondShift: number): number {
  return (product(first, secondShift) ^ second) >>> 0;
}

/**
 * A part of a body as deflate blocks that end at a byte and refer to nothing before them: such parts can follow each
 * other.
 */
export interface DeflatedPiece {
  readonly bytes: Buffer;
  /** Of the part itself. */
  readonly length: number;
  readonly crc: number;
  /** {@link crc32Shift} of the length. */
  readonly shift: number;
}

/** Smaller pieces are not worth remembering. */
const leastKept = 16 * 1024;
/** Up to this length a piece goes as it is, in a stored block: compressing it would cost more than it spares. */
const asIs = 512;

const compress = promisify(deflateRaw) as (piece: Buffer, options: ZlibOptions) => Promise<Buffer>;
const options: ZlibOptions = { level: 1, chunkSize: 64 * 1024, finishFlush: constants.Z_FULL_FLUSH };

/** A compressed piece, or the work on it. */
class Kept implements Droppable {
  readonly piece: Promise<DeflatedPiece>;
  readonly #forget: () => void;

  constructor(piece: Promise<DeflatedPiece>, forget: () => void) {
    this.piece = piece;
    this.#forget = forget;
  }

  drop(): void {
    this.#forget();
  }
}

/**
 * Compresses pieces of lists, off the event loop, and remembers what became of those that are shared by many lists: the
 * bytes of a kind that does not change are compressed once. A piece is known by its place in memory, so what lies there
 * must never change.
 */
export class DeflatedPieces {
  readonly #budget: ByteBudget;
  readonly #kept = new WeakMap<ArrayBufferLike, Map<string, Kept>>();

  /** Keeps at most so many compressed bytes. */
  constructor(limitBytes: number) {
    this.#budget = new ByteBudget(limitBytes);
  }

  /** A piece that nobody changes any more; compressed again only when it was forgotten. */
  shared(piece: Buffer): Promise<DeflatedPiece> {
    if (piece.length < leastKept) return deflated(piece);
    const id = `${piece.byteOffset} ${piece.length}`;
    let places = this.#kept.get(piece.buffer);
    const known = places?.get(id);
    if (known !== undefined) return known.piece;
    if (places === undefined) {
      places = new Map();
      this.#kept.set(piece.buffer, places);
    }
    const forget = () => places.delete(id);
    const kept = new Kept(deflated(piece), forget);
    places.set(id, kept);
    kept.piece.then(({ bytes }) => this.#budget.add(kept, bytes.length), forget);
    return kept.piece;
  }
}

/** Compresses a piece; it must stay as it is until that is done. */
export async function deflated(piece: Buffer): Promise<DeflatedPiece> {
  const { length } = piece;
  const bytes = length <= asIs ? stored(piece) : await compress(piece, options);
  return { bytes, length, crc: crc32(piece), shift: crc32Shift(length) };
}

/** RFC 1951, 3.2.4. */
function stored(piece: Buffer): Buffer {
  const block = Buffer.allocUnsafe(5 + piece.length);
  block[0] = 0;
  block.writeUInt16LE(piece.length, 1);
  block.writeUInt16LE(~piece.length & 0xffff, 3);
  piece.copy(block, 5);
  return block;
}

/** RFC 1952, 2.3: deflate, no name and no time, compressed fast, on an unknown system. */
const head = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255]);
/** A last deflate block with nothing in it (RFC 1951, 3.2.6). */
const lastBlock = [3, 0];

/** One gzip member from the pieces of a body, which `deflate` compresses; those of a group at the same time. */
export async function* gzipBody(
  source: AsyncIterable<readonly Buffer[]>,
  deflate: (piece: Buffer) => Promise<DeflatedPiece>,
): AsyncGenerator<Buffer[]> {
  let crc = 0;
  let length = 0;
  let before: Buffer[] = [head];
  for await (const group of source) {
    const pieces = await Promise.all(group.map(deflate));
    for (const piece of pieces) {
      crc = joinedCrc32(crc, piece.crc, piece.shift);
      length = (length + piece.length) % 2 ** 32;
    }
    yield [...before, ...pieces.map(({ bytes }) => bytes)];
    before = [];
  }
  yield [...before, tail(crc, length)];
}

/** The last block, then checksum and length of the body. */
function tail(crc: number, length: number): Buffer {
  const bytes = Buffer.alloc(lastBlock.length + 8);
  bytes.set(lastBlock);
  bytes.writeUInt32LE(crc, lastBlock.length);
  bytes.writeUInt32LE(length, lastBlock.length + 4);
  return bytes;
}
