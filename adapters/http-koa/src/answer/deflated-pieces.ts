import { promisify } from 'node:util';
import { constants, crc32, deflateRaw, type ZlibOptions } from 'node:zlib';
import { ByteBudget, type Droppable } from '@keelson/core';
import { crc32Shift } from './crc32.ts';

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
