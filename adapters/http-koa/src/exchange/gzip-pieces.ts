import { promisify } from 'node:util';
import { constants, crc32, deflateRaw, type ZlibOptions } from 'node:zlib';
import { ByteBudget, type Droppable, type SharedPart } from '@keelson/core/internal';
import { eventLoopTurns } from '@keelson/core/runtime';

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

/** x^(2^n); x has the order 2^32 - 1, so the 32 values repeat. */
const powers = [one >>> 1];
while (powers.length < 32) {
  const last = powers[powers.length - 1] as number;
  powers.push(product(last, last));
}

/** The factor by which {@link joinedCrc32} shifts the first part, computed from the length of the second part. */
export function crc32Shift(bytes: number): number {
  let shift = one;
  // Eight bits per byte: the exponent begins at 2^3.
  for (let rest = bytes, n = 3; rest > 0; rest = Math.floor(rest / 2), n += 1) {
    if (rest % 2 === 1) shift = product(shift, powers[n % 32] as number);
  }
  return shift;
}

/** CRC-32 of two concatenated parts, from the CRC-32 of each and the {@link crc32Shift} of the second. */
export function joinedCrc32(first: number, second: number, secondShift: number): number {
  return (product(first, secondShift) ^ second) >>> 0;
}

/**
 * A part of a body as deflate blocks that end at a byte boundary and contain no reference to earlier data: such parts
 * can be concatenated.
 */
export interface DeflatedPiece {
  readonly bytes: Buffer;
  /** Length of the uncompressed part. */
  readonly length: number;
  readonly crc: number;
  /** {@link crc32Shift} of the length. */
  readonly shift: number;
}

/** Pieces up to this length are sent in a stored block: compressing them would cost more than it saves. */
const storedBytes = 512;

const compress = promisify(deflateRaw) as (piece: Buffer, options: ZlibOptions) => Promise<Buffer>;
const options: ZlibOptions = { level: 1, chunkSize: 64 * 1024, finishFlush: constants.Z_FULL_FLUSH };

/**
 * Compresses the shared parts of lists off the event loop and caches them: the bytes of a kind that does not change are
 * compressed once, also where they are assembled for each list.
 */
export class DeflatedParts {
  readonly #budget: ByteBudget;
  readonly #kept = new WeakMap<object, Promise<DeflatedPiece>>();

  /** @param limitBytes greatest total size of the cached compressed bytes */
  constructor(limitBytes: number) {
    this.#budget = new ByteBudget(limitBytes);
  }

  /** Returns the compressed form of a part, from the cache if possible. */
  of(part: SharedPart): Promise<DeflatedPiece> {
    const { content } = part;
    const known = this.#kept.get(content);
    if (known !== undefined) return known;
    const made = deflatedPart(part);
    this.#kept.set(content, made);
    const kept: Droppable = { drop: () => this.#kept.delete(content) };
    made.then(({ bytes }) => this.#budget.add(kept, bytes.length), kept.drop);
    return made;
  }
}

/** Other work runs between the pieces, because creating one may mean to encode objects. */
async function deflatedPart(part: SharedPart): Promise<DeflatedPiece> {
  await eventLoopTurns.pass();
  const pieces: Buffer[] = [];
  for (const piece of part.pieces()) {
    pieces.push(piece);
    await eventLoopTurns.pass();
  }
  const piece = await deflated(Buffer.concat(pieces));
  // zlib returns the beginning of a buffer of `chunkSize`, which would be kept as a whole.
  const bytes = Buffer.allocUnsafeSlow(piece.bytes.length);
  piece.bytes.copy(bytes);
  return { ...piece, bytes };
}

/** Compresses a piece. The piece must not change before the promise is settled. */
export async function deflated(piece: Buffer): Promise<DeflatedPiece> {
  const { length } = piece;
  const bytes = length <= storedBytes ? stored(piece) : await compress(piece, options);
  return { bytes, length, crc: crc32(piece), shift: crc32Shift(length) };
}

/** A stored block: RFC 1951, 3.2.4. */
function stored(piece: Buffer): Buffer {
  const block = Buffer.allocUnsafe(5 + piece.length);
  block[0] = 0;
  block.writeUInt16LE(piece.length, 1);
  block.writeUInt16LE(~piece.length & 0xffff, 3);
  piece.copy(block, 5);
  return block;
}

/** Header of RFC 1952, 2.3: deflate, no name and no time, fastest compression, unknown system. */
const head = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255]);
/** An empty final deflate block (RFC 1951, 3.2.6). */
const lastBlock = [3, 0];

/** One gzip member from the pieces of a body. The pieces of a group are passed to `deflate` concurrently. */
export async function* gzipBody<P>(
  source: AsyncIterable<readonly P[]> | Iterable<readonly P[]>,
  deflate: (piece: P) => Promise<DeflatedPiece>,
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

/** The final block, then the checksum and the length of the body. */
function tail(crc: number, length: number): Buffer {
  const bytes = Buffer.alloc(lastBlock.length + 8);
  bytes.set(lastBlock);
  bytes.writeUInt32LE(crc, lastBlock.length);
  bytes.writeUInt32LE(length, lastBlock.length + 4);
  return bytes;
}
