import { listMetaSchema } from '../../kind/object-meta-schema.ts';
import type { Status } from '../../meta/status.ts';
import { apiVersionOf, type KubeObject } from '../../meta/types.ts';
import type { EventRepresentation } from '../../storage/resource-storage.ts';
import type { StoredObject } from '../../storage/stored-object.ts';
import { partialObjectMetadata } from '../json-shape.ts';
import type { Framing } from '../json-watch-form.ts';
import { type Brand, defaultBrand, protobufMediaType } from '../media-type.ts';
import type { FormBuilder } from '../representations.ts';
import {
  freshPieces,
  type ListBody,
  type ListPage,
  listMetadata,
  type PieceSource,
  pieceBytes,
  representationId,
  type WatchForm,
  type WireForm,
} from '../wire-form.ts';
import { type DocumentForm, documentForms } from './document-schemas.ts';
import { envelopeHead, envelopeTail, rawTag } from './envelope.ts';
import { protobufEncoderOf } from './protobuf-codec.ts';
import { protobufFrame } from './protobuf-frame.ts';
import {
  metadataProtobuf,
  type ProtobufDocument,
  type ProtobufShape,
  protobufField,
  servesProtobuf,
  statusDocument,
  wholeProtobuf,
} from './protobuf-shape.ts';
import { putVarint, tagOf, varintLength, WireType } from './wire.ts';

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

/** Objects encoded between two chances for others to run. */
const stride = 32;
const nothing = Buffer.alloc(0);

/**
 * The body of a list. Its length stands near its beginning, so every item has to be there before the first byte of them
 * goes out; while they are encoded, empty pieces let the transport give way to others.
 */
export function protobufList(shape: ProtobufShape, page: ListPage, source: PieceSource = freshPieces): ListBody {
  return { head: shape.list.head, items: pieces(shape, page, source), tail: envelopeTail, ready: false };
}

function* pieces(shape: ProtobufShape, page: ListPage, source: PieceSource): Generator<Buffer, void, undefined> {
  const items: Buffer[] = [];
  let size = 0;
  for (const object of page.list.objects()) {
    const item = object.encoded(shape.representation);
    items.push(item);
    size += item.length;
    if (items.length % stride === 0) yield nothing;
  }
  yield listStart(shape, page, size);
  yield* joined(items, tagOf(shape.list.items, WireType.delimited), source);
}

/** Tag and length of the list's message, and its metadata. The order of fields in a message is free. */
function listStart(shape: ProtobufShape, page: ListPage, itemBytes: number): Buffer {
  const metadata = protobufEncoderOf(listMetaSchema)(listMetadata(page));
  const field = 1 + varintLength(metadata.length) + metadata.length;
  const start = Buffer.allocUnsafe(1 + varintLength(field + itemBytes) + field);
  start[0] = rawTag;
  let at = putVarint(start, 1, field + itemBytes);
  start[at++] = tagOf(shape.list.metadata, WireType.delimited);
  at = putVarint(start, at, metadata.length);
  metadata.copy(start, at);
  return start;
}

/**
 * Joins items to pieces of about 64 KiB, each under the list's own tag; big ones are handed on without being copied.
 */
function* joined(items: readonly Buffer[], tag: number, source: PieceSource): Generator<Buffer, void, undefined> {
  let piece = source.take();
  let end = 0;
  for (const item of items) {
    if (end + item.length > pieceBytes && end > 0) {
      yield piece.subarray(0, end);
      piece = source.take();
      end = 0;
    }
    if (item.length > pieceBytes) {
      if (tag === rawTag) yield item;
      else {
        yield Buffer.of(tag);
        yield item.subarray(1);
      }
    } else {
      // Cheaper than `copy`, which validates its arguments.
      piece.set(item, end);
      piece[end] = tag;
      end += item.length;
    }
  }
  if (end > 0) yield piece.subarray(0, end);
}

/**
 * The protobuf forms of all kinds, for `Representations`. Kinds without field numbers have only their metadata in
 * protobuf, and Tables have no protobuf form: see docs/reference/api-rules.md#content-negotiation.
 */
export function protobufForms(brand: Brand = defaultBrand): FormBuilder {
  return {
    media: 'protobuf',
    targets: [partialObjectMetadata],
    serves: servesProtobuf,
    servesTargets: () => true,
    streams: true,
    form: (kind, { target }) => {
      if (target.as === 'Table') throw new Error('tables have no protobuf form');
      const shape =
        target.as === 'Object'
          ? wholeProtobuf(kind)
          : metadataProtobuf(kind, apiVersionOf({ group: brand.metaGroup, version: target.version }));
      return new ProtobufForm(shape, protobufMediaType(brand));
    },
  };
}

/** The body of a Status. */
export function encodeProtobufStatus(status: Status): Buffer {
  return documentBytes(statusDocument(status));
}

/**
 * The body of a document that belongs to no kind: a Status or a plain discovery document.
 *
 * @throws Error for documents that have no protobuf form.
 */
export function encodeProtobufDocument(document: object): Buffer {
  const value = document as Readonly<Record<string, unknown>>;
  const { kind } = value;
  const form: DocumentForm | undefined =
    typeof kind === 'string' && Object.hasOwn(documentForms, kind) ? documentForms[kind] : undefined;
  if (form === undefined) throw new Error(`a document of kind ${JSON.stringify(kind)} has no protobuf form`);
  const field = protobufField(form.schema, form.shape?.(value) ?? value);
  return documentBytes({ head: envelopeHead('v1', String(kind)), field });
}
