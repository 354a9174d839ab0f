/** Bytes of one buffer in which a list is put together. */
export const pieceBytes = 64 * 1024;

/**
 * Where lists get the buffers from in which they put together bytes that exist nowhere yet. Whoever takes the pieces of
 * a list may use such a buffer again once its piece is sent: no buffer is in two pieces, and the list never looks back
 * at one.
 */
export interface PieceSource {
  /** A buffer of {@link pieceBytes} with anything in it. */
  take(): Buffer;
}

/** Buffers that are used once. */
export const freshPieces: PieceSource = { take: () => Buffer.allocUnsafeSlow(pieceBytes) };
