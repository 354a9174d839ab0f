import type { Status } from '../meta/status.ts';
import type { KubeObject } from '../meta/types.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import { jsonText } from './json-numbers.ts';
import type { JsonShape } from './json-shape.ts';
import { jsonWatchForm } from './json-watch-form.ts';
import { type ListPage, listHead, listMetadata, listTail } from './list-envelope.ts';
import { jsonMediaType } from './media-type.ts';
import type { PieceSource } from './pieces.ts';
import type { RecentBodies } from './recent-bodies.ts';
import { textPieces } from './text-pieces.ts';
import type { ListBody, WatchForm, WireForm } from './wire-form.ts';

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
