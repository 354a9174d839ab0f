import type { ListPosition, Representation, StoredList } from './resource-storage.ts';
import type { Revision } from './store.ts';
import type { StoredObject } from './stored-object.ts';

const pieceBytes = 64 * 1024;
const comma = 0x2c;

/** A page whose objects are at hand one by one. */
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

  chunks(representation: Representation, _separator: ','): Iterable<Buffer> {
    return joinObjects(this.#objects, representation);
  }
}

/** Objects in any form, joined by commas in pieces of about 64 KiB; big ones are handed on without being copied. */
export function* joinObjects(
  objects: Iterable<StoredObject>,
  representation: Representation,
): Generator<Buffer, void, undefined> {
  let piece = Buffer.allocUnsafeSlow(pieceBytes);
  let end = 0;
  let first = true;
  for (const object of objects) {
    const bytes = representation.stored ? undefined : object.encoded(representation);
    const length = bytes?.length ?? object.byteLength;
    if (end + length + 1 > pieceBytes && end > 0) {
      yield piece.subarray(0, end);
      piece = Buffer.allocUnsafeSlow(pieceBytes);
      end = 0;
    }
    if (!first) piece[end++] = comma;
    first = false;
    if (length + 1 > pieceBytes) {
      if (end > 0) yield piece.subarray(0, end);
      yield bytes ?? object.json;
      piece = Buffer.allocUnsafeSlow(pieceBytes);
      end = 0;
    } else {
      end = bytes === undefined ? object.copyTo(piece, end) : end + bytes.copy(piece, end);
    }
  }
  if (end > 0) yield piece.subarray(0, end);
}
