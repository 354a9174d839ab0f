import type { KindDefinition } from '../../kind/kind-definition.ts';
import { listMetaSchema } from '../../kind/object-meta-schema.ts';
import type { Schema } from '../../kind/schema.ts';
import { messageNode } from '../../kind/schema-walk.ts';
import { statusSchema } from '../../kind/status-schema.ts';
import type { Status } from '../../meta/status.ts';
import { apiVersionOf, type KubeObject } from '../../meta/types.ts';
import type { EventRepresentation, PartForm, Representation } from '../../storage/resource-storage.ts';
import { freshPieces, type PieceSource, pieceBytes } from '../../storage/resource-storage.ts';
import type { StoredObject } from '../../storage/stored-object.ts';
import { type Framing, partialMetadataBytes, partialMetadataJson, partialObjectMetadata } from '../json-form.ts';
import { type Brand, defaultBrand, protobufMediaType } from '../media-type.ts';
import { servedBookmark, servedValue } from '../object-codec.ts';
import type { FormBuilder } from '../representations.ts';
import {
  type ListBody,
  type ListPage,
  listMetadata,
  partsOf,
  representationId,
  type WatchForm,
  type WireForm,
} from '../wire-form.ts';
import { type DocumentForm, documentForms, partialMetadataSchema } from './document-schemas.ts';
import { messageWriter, writeFields } from './message-writer.ts';
import { hasProtobufForm, protobufEncoderOf, protobufFrame, written } from './protobuf-codec.ts';
import { envelopeHead, envelopeTail, putVarint, rawTag, tagOf, varintLength, WireType } from './wire.ts';

/** The complete response body of a document. */
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

/** Number of objects that are encoded before other work can run. */
const stride = 32;
const nothing = Buffer.alloc(0);

/**
 * The body of a list. Its length precedes the items, so that all items are encoded before the first one is sent;
 * meanwhile, empty pieces let the transport yield to other work.
 */
export function protobufList(shape: ProtobufShape, page: ListPage, source: PieceSource = freshPieces): ListBody {
  const parts = partsOf(page, protobufPart(shape));
  return {
    head: shape.list.head,
    items: pieces(shape, page, source),
    tail: envelopeTail,
    ready: false,
    ...(parts && { parts: { ...parts, start: (itemBytes) => listStart(shape, page, itemBytes) } }),
  };
}

/** Kept with what it encodes, so it must not refer to a page. */
function protobufPart({ representation, list }: ProtobufShape): PartForm {
  const tag = tagOf(list.items, WireType.delimited);
  return {
    id: representation.id,
    *pieces(objects) {
      for (let at = 0; at < objects.length; at += stride) {
        const items = objects.slice(at, at + stride).map((object) => object.encoded(representation));
        yield* joined(items, tag, freshPieces);
      }
    },
  };
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

/** Joins items to pieces of about 64 KiB, each under the list's own tag; large ones are passed on without a copy. */
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

/** The parts of a message with an object: what surrounds the object, and the field that contains it. */
export interface ProtobufDocument {
  /** Beginning of the envelope. */
  readonly head: Buffer;
  /** The object's message with the tag and length under which the envelope holds it. */
  readonly field: Buffer;
}

/**
 * The protobuf encoding of objects. An item is the encoded object with the tag and length of its field. The same bytes
 * serve as the object field of an envelope and as an element of a list. So each object is encoded only once for single
 * objects, lists and watch frames.
 */
export interface ProtobufShape {
  readonly representation: Representation;
  /** Beginning of the envelope of one object. */
  readonly head: Buffer;
  /** The item for the empty object of a bookmark. */
  bookmark(object: StoredObject): Buffer;
  /** The body for an object that is not stored. A Status is never converted to metadata. */
  document(object: KubeObject | Status): ProtobufDocument;
  readonly list: {
    /** Beginning of the envelope of a list. */
    readonly head: Buffer;
    /** Field numbers of the list message. */
    readonly metadata: number;
    readonly items: number;
  };
}

/** The field that holds an object in its envelope. */
export function protobufField(schema: Schema<unknown>, value: unknown): Buffer {
  const node = messageNode(schema);
  if (node === undefined) throw new Error(`a schema of type ${schema.node.type} is not a protobuf message`);
  const message = messageWriter(node);
  return written((writer) => {
    writer.uint32(rawTag).fork();
    writeFields(message, writer, value);
    writer.ldelim();
  });
}

const statusHead = envelopeHead('v1', 'Status');

/** The body of a Status, which is never converted to metadata. */
export function statusDocument(status: Status): ProtobufDocument {
  return { head: statusHead, field: protobufField(statusSchema, status) };
}

function isStatus(object: KubeObject | Status): object is Status {
  return object.kind === 'Status' && object.apiVersion === 'v1';
}

/**
 * The schemas of all objects that a response about this kind may contain: the kind itself and the bodies of its
 * subresources, by `apiVersion kind`.
 */
function answerSchemas(kind: KindDefinition): ReadonlyMap<string, Schema<unknown>> {
  const schemas = new Map<string, Schema<unknown>>([[`${kind.apiVersion} ${kind.kind}`, kind.schema]]);
  for (const subresource of kind.subresources) {
    if (subresource.type !== 'projection' && subresource.type !== 'action') continue;
    const { group, version, kind: word } = subresource.bodyKind;
    schemas.set(`${group === '' ? version : `${group}/${version}`} ${word}`, subresource.schema);
  }
  return schemas;
}

/** True when a kind and the bodies of its subresources have field numbers throughout. */
export function servesProtobuf(kind: KindDefinition): boolean {
  return [...answerSchemas(kind).values()].every(hasProtobufForm);
}

/** Whole objects in the served version. */
export function wholeProtobuf(kind: KindDefinition): ProtobufShape {
  const { apiVersion, schema } = kind;
  const schemas = answerSchemas(kind);
  return {
    representation: {
      id: representationId(`protobuf ${apiVersion} ${kind.kind}`),
      encode: (object) => protobufField(schema, servedValue(kind, object)),
    },
    head: envelopeHead(apiVersion, kind.kind),
    bookmark: (object) => protobufField(schema, JSON.parse(servedBookmark(kind, object).toString('utf8'))),
    document: (object) => {
      if (isStatus(object)) return statusDocument(object);
      const version = object.apiVersion ?? apiVersion;
      const word = object.kind ?? kind.kind;
      const known = schemas.get(`${version} ${word}`);
      if (known === undefined)
        throw new Error(`${word} of ${version} has no protobuf form in answers about ${kind.kind}`);
      return { head: envelopeHead(version, word), field: protobufField(known, object) };
    },
    list: { head: envelopeHead(apiVersion, kind.listKind), metadata: 1, items: 2 },
  };
}

/** Objects without anything but their metadata; `metaApiVersion` is that of the metadata API. */
export function metadataProtobuf(kind: KindDefinition, metaApiVersion: string): ProtobufShape {
  const json = partialMetadataJson(kind, metaApiVersion);
  const head = envelopeHead(metaApiVersion, partialObjectMetadata);
  const field = (bytes: Buffer) => protobufField(partialMetadataSchema, JSON.parse(bytes.toString('utf8')));
  // The two versions of the list number their fields differently: see docs/reference/api-rules.md#protobuf.
  const numbers = metaApiVersion.endsWith('/v1beta1') ? { metadata: 2, items: 1 } : { metadata: 1, items: 2 };
  return {
    representation: {
      id: representationId(`protobuf metadata ${kind.apiVersion} ${kind.kind}`),
      encode: (object) => field(json.encode(object)),
    },
    head,
    bookmark: (object) => field(partialMetadataBytes(object.json, metaApiVersion)),
    document: (object) =>
      isStatus(object) ? statusDocument(object) : { head, field: protobufField(partialMetadataSchema, object) },
    list: { head: envelopeHead(metaApiVersion, `${partialObjectMetadata}List`), ...numbers },
  };
}
