import { jsonText } from '../json/json.ts';
import type { Status } from '../meta/status.ts';
import type { KubeObject } from '../meta/types.ts';
import type { PieceSource } from '../storage/resource-storage.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import type { JsonShape } from './json-shape.ts';
import { jsonWatchForm } from './json-watch-form.ts';
import { jsonMediaType } from './media-type.ts';
import {
  type ListBody,
  type ListPage,
  listHead,
  listMetadata,
  listTail,
  textPieces,
  type WatchForm,
  type WireForm,
} from './wire-form.ts';

const newline = 0x0a;

/** Compact JSON. Stored objects, lists of them and their events are assembled from bytes without parsing them. */
export class JsonForm implements WireForm {
  readonly contentType = jsonMediaType;
  readonly #shape: JsonShape;
  readonly #recentBodies: RecentBodies;
  #watch: WatchForm | undefined;

  /** @param recentBodies may be shared by the forms of all kinds: the document of an object as stored is the same. */
  constructor(shape: JsonShape, recentBodies: RecentBodies) {
    this.#shape = shape;
    this.#recentBodies = recentBodies;
  }

  stored(object: StoredObject): Buffer {
    const { single, representation } = this.#shape;
    if (single !== undefined) {
      return Buffer.from(
        `${listHead(single.first, { resourceVersion: String(object.revision) })}${this.#shape.text(object)}]}\n`,
      );
    }
    if (representation === undefined) return Buffer.from(`${this.#shape.text(object)}\n`);
    if (!representation.stored) return withNewline(object.encoded(representation));
    return this.#recentBodies.of(object);
  }

  value(object: KubeObject | Status): Buffer {
    return Buffer.from(`${jsonText(documentOf(this.#shape, object))}\n`);
  }

  list(page: ListPage, pieces?: PieceSource): ListBody {
    const { representation, list } = this.#shape;
    return {
      head: Buffer.from(listHead(list, listMetadata(page))),
      items:
        representation === undefined
          ? textPieces(this.#separated(page))
          : page.list.chunks(representation, ',', pieces),
      tail: listTail,
      ready: representation?.stored === true && page.list.ready,
    };
  }

  watch(): WatchForm {
    this.#watch ??= jsonWatchForm(this.#shape);
    return this.#watch;
  }

  *#separated(page: ListPage): Generator<string> {
    let separator = '';
    for (const object of page.list.objects()) {
      yield separator + this.#shape.text(object);
      separator = ',';
    }
  }
}

/** The body for an object that is not stored, as a value; a Status stays as it is in every shape. */
export function documentOf(shape: JsonShape, object: KubeObject | Status): unknown {
  return object.kind === 'Status' && object.apiVersion === 'v1' ? object : shape.document(object as KubeObject);
}

function withNewline(bytes: Buffer): Buffer {
  const body = Buffer.allocUnsafe(bytes.length + 1);
  body[bytes.copy(body)] = newline;
  return body;
}

/** Larger bodies are not kept: copying them costs little compared with sending them. */
const largestBody = 16 * 1024;

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
