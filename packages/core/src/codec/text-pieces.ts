/** Texts that follow each other, as buffers of about this many characters. */
const pieceLength = 32 * 1024;

/** Joins texts into larger buffers, so that a list of small rows is not a list of small writes. */
export function* textPieces(texts: Iterable<string>): Generator<Buffer, void, undefined> {
  let piece = '';
  for (const text of texts) {
    piece += text;
    if (piece.length < pieceLength) continue;
    yield Buffer.from(piece);
    piece = '';
  }
  if (piece !== '') yield Buffer.from(piece);
}
