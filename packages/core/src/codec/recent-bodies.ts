import type { StoredObject } from '../storage/stored-object.ts';

/** Larger bodies are not kept: copying them costs little compared with sending them. */
const largestBody = 16 * 1024;
const newline = 0x0a;

const defaultLimitBytes = 256 * largestBody;

/**
 * The response bodies of the objects that were read last. An object that is read repeatedly is copied for the first two
 * responses; all later ones share the bytes of the second.
 */
export class RecentBodies {
  /**
   * Revision of the object read last at each slot. The object itself is not retained, because most objects are read
   * only once.
   */
  readonly #revisions: Float64Array;
  readonly #objects: (StoredObject | undefined)[];
  readonly #bodies: (Buffer | undefined)[];

  constructor(limitBytes = defaultLimitBytes) {
    const slots = Math.floor(limitBytes / largestBody);
    this.#revisions = new Float64Array(slots);
    this.#objects = new Array<StoredObject | undefined>(slots).fill(undefined);
    this.#bodies = new Array<Buffer | undefined>(slots).fill(undefined);
  }

  /** The object as a whole document, final newline included. The caller must not change it. */
  of(object: StoredObject): Buffer {
    const slots = this.#revisions.length;
    if (slots === 0) return bodyOf(object);
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
