import { joinedCrc32 } from './crc32.ts';
import type { DeflatedPiece } from './deflated-pieces.ts';

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
