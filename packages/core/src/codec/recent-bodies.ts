import type { StoredObject } from '../storage/stored-object.ts';

const slots = 256;
/** Larger bodies are made anew: beside sending them that costs little, beside keeping them a lot. */
const largestBody = 16 * 1024;
const newline = 0x0a;

/**
 * Bodies of the objects that were read last, at most 4 MiB of them: an object that is read again and again is copied
 * for the first two answers, and all others share the second one's bytes.
 */
export class RecentBodies {
  /**
   * What was read last at each slot. Not the object itself: most of what is answered is never read again, and must not
   * be held.
   */
  readonly #revisions = new Float64Array(slots);
  readonly #objects = new Array<StoredObject | undefined>(slots).fill(undefined);
  readonly #bodies = new Array<Buffer | undefined>(slots).fill(undefined);

  /** The object as a whole document, final newline included; not to be changed. */
  of(object: StoredObject): Buffer {
    const { revision } = object;
    const slot = revision % slots;
    if (this.#objects[slot] === object) return this.#bodies[slot] as Buffer;
    const body = bodyOf(object);
    if (this.#revisions[slot] !== revision) {
      this.#revisions[slot] = revision;
    } else if (body.length <= largestBody) {
      this.#objects[slot] = object;
      this.#bodies[slot] = body;
    }
    return body;
  }
}

function bodyOf(object: StoredObject): Buffer {
  const body = Buffer.allocUnsafe(object.byteLength + 1);
  body[object.copyTo(body, 0)] = newline;
  return body;
}
