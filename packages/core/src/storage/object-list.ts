import { freshPieces, type PieceSource, pieceBytes } from '../storage/resource-storage.ts';
import type { ListPosition, Representation, StoredList } from './resource-storage.ts';
import type { Revision } from './store.ts';
import type { StoredObject } from './stored-object.ts';

const comma = 0x2c;
const separator = Buffer.of(comma);
/** Lists of up to this number of objects are assembled as a whole. */
const fewObjects = 1000;

/** A page of objects in memory. */
export class ObjectList implements StoredList {
  readonly revision: Revision;
  readonly next?: ListPosition;
  readonly remaining?: number;
  readonly #objects: readonly StoredObject[];

  constructor(objects: readonly StoredObject[], revision: Revision, next?: ListPosition, remaining?: number) {
    this.#objects = objects;
    this.revision = revision;
    if (next !== undefined) this.next = next;
    if (remaining !== undefined) this.remaining = remaining;
  }

  get count(): number {
    return this.#objects.length;
  }

  objects(): Iterable<StoredObject> {
    return this.#objects;
  }

  get ready(): boolean {
    return this.count <= fewObjects;
  }

  chunks(representation: Representation, _separator: ',', pieces?: PieceSource): Iterable<Buffer> {
    return joinObjects(this.#objects, representation, pieces);
  }
}

/** Objects in any form, joined by commas in pieces of about 64 KiB; large ones are passed on without a copy. */
export function* joinObjects(
  objects: Iterable<StoredObject>,
  representation: Representation,
  pieces: PieceSource = freshPieces,
): Generator<Buffer, void, undefined> {
  let piece: Buffer | undefined;
  let end = 0;
  let first = true;
  for (const object of objects) {
    const bytes = representation.stored ? undefined : object.encoded(representation);
    const length = bytes?.length ?? object.byteLength;
    if (piece !== undefined && end + 1 + length > pieceBytes) {
      yield piece.subarray(0, end);
      piece = undefined;
    }
    if (1 + length > pieceBytes) {
      if (!first) yield separator;
      yield bytes ?? object.json;
    } else {
      if (piece === undefined) {
        piece = pieces.take();
        end = 0;
      }
      if (!first) piece[end++] = comma;
      end = bytes === undefined ? object.copyTo(piece, end) : end + bytes.copy(piece, end);
    }
    first = false;
  }
  if (piece !== undefined) yield piece.subarray(0, end);
}
