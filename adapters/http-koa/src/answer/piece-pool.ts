import { type PieceSource, pieceBytes } from '@keelson/core';

/**
 * Keeps the buffers of sent pieces of lists for the next ones: a large list costs a few of them instead of a copy of
 * itself.
 */
export class PiecePool implements PieceSource {
  readonly #limit: number;
  readonly #free: Buffer[] = [];
  readonly #lent = new WeakSet<ArrayBufferLike>();

  /** Keeps at most `limit` free buffers. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  take(): Buffer {
    const buffer = this.#free.pop() ?? Buffer.allocUnsafeSlow(pieceBytes);
    this.#lent.add(buffer.buffer);
    return buffer;
  }

  /** Whether the piece lies in a buffer of this pool. */
  owns(piece: Buffer): boolean {
    return this.#lent.has(piece.buffer);
  }

  /**
   * To be called when nobody reads the piece any more. Pieces of others, and pieces given back before, are left alone.
   */
  giveBack(piece: Buffer): void {
    if (!this.#lent.delete(piece.buffer) || this.#free.length >= this.#limit) return;
    this.#free.push(Buffer.from(piece.buffer));
  }
}
