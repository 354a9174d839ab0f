import type { Status } from '../../meta/status.ts';
import type { KubeObject } from '../../meta/types.ts';
import type { EventRepresentation } from '../../storage/resource-storage.ts';
import type { StoredObject } from '../../storage/stored-object.ts';
import type { ListPage } from '../list-envelope.ts';
import type { PieceSource } from '../pieces.ts';
import { representationId } from '../representation-id.ts';
import type { Framing } from '../watch-frame.ts';
import type { ListBody, WatchForm, WireForm } from '../wire-form.ts';
import { envelopeTail } from './envelope.ts';
import { protobufFrame } from './protobuf-frame.ts';
import { protobufList } from './protobuf-list.ts';
import { type ProtobufDocument, type ProtobufShape, statusDocument } from './protobuf-shape.ts';

/** A whole body. */
export function documentBytes({ head, field }: ProtobufDocument): Buffer {
  return Buffer.concat([head, field, envelopeTail], head.length + field.length + envelopeTail.length);
}

/**
 * Protobuf in its envelope: see docs/reference/api-rules.md#protobuf. Bytes of stored objects are encoded once and
 * shared.
 */
export class ProtobufForm implements WireForm {
  readonly contentType: string;
  readonly #shape: ProtobufShape;
  #watch: WatchForm | undefined;

  constructor(shape: ProtobufShape, mediaType: string) {
    this.contentType = mediaType;
    this.#shape = shape;
  }

  stored(object: StoredObject): Buffer {
    return documentBytes({ head: this.#shape.head, field: object.encoded(this.#shape.representation) });
  }

  value(object: KubeObject | Status): Buffer {
    return documentBytes(this.#shape.document(object));
  }

  list(page: ListPage, pieces?: PieceSource): ListBody {
    return protobufList(this.#shape, page, pieces);
  }

  watch(): WatchForm {
    this.#watch ??= {
      contentType: `${this.contentType};stream=watch`,
      plain: eventRepresentation(this.#shape, 'plain'),
      chunked: eventRepresentation(this.#shape, 'chunked'),
      errorFrame: (status) => protobufFrame('ERROR', statusDocument(status), 'plain'),
    };
    return this.#watch;
  }
}

function eventRepresentation(shape: ProtobufShape, framing: Framing): EventRepresentation {
  const { head, representation } = shape;
  return {
    id: representationId(`protobuf event ${framing}`),
    encode: (type, object) => {
      const field = type === 'BOOKMARK' ? shape.bookmark(object) : object.encoded(representation);
      return protobufFrame(type, { head, field }, framing);
    },
  };
}
