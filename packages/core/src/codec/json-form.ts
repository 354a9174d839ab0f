import { jsonText } from '../json/json.ts';
import { metadataRange } from '../json/json-slice.ts';
import type { KindDefinition } from '../kind/kind-definition.ts';
import type { Status } from '../meta/status.ts';
import type { KubeObject, ObjectMeta } from '../meta/types.ts';
import { joinObjects } from '../storage/object-list.ts';
import type {
  EventRepresentation,
  PartForm,
  PieceSource,
  Representation,
  WatchEventType,
} from '../storage/resource-storage.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import { jsonMediaType } from './media-type.ts';
import { jsonHead, servedBookmark, servedBytes, servedJson } from './object-codec.ts';
import {
  type EventPair,
  type ListBody,
  type ListEnvelope,
  type ListPage,
  listHead,
  listMetadata,
  listTail,
  partsOf,
  representationId,
  textPieces,
  type WatchForm,
  type WireForm,
} from './wire-form.ts';

const closeBrace = 0x7d;
const newline = 0x0a;

/**
 * The JSON content for objects, independent of its layout (compact, indented, YAML). An item is the entry of a list for
 * an object: the object, its metadata, or a table row.
 */
export interface JsonShape {
  /** Compact JSON of an item, kept by the object; undefined when the JSON changes with time. */
  readonly representation: Representation | undefined;
  /** Compact JSON of an item, encoded by this call. */
  text(object: StoredObject): string;
  /** Compact JSON of the item for the empty object of a bookmark. */
  bookmark(object: StoredObject): Buffer;
  /** The whole body for an object that is not stored. */
  document(object: KubeObject): unknown;
  /** What surrounds the items of a list response. */
  readonly list: ListEnvelope;
  /**
   * What surrounds the only item when a single object is sent as a list of one item, as in a Table. `first` is for
   * single objects and for the first event of a watch, `next` for all other events.
   */
  readonly single?: { readonly first: ListEnvelope; readonly next: ListEnvelope };
}

/** Whole objects in the served version. */
export function wholeObjects(kind: KindDefinition): JsonShape {
  return {
    representation: servedJson(kind),
    text: (object) => servedBytes(kind, object).toString('utf8'),
    bookmark: (object) => servedBookmark(kind, object),
    document: (object) => object,
    list: { kind: kind.listKind, apiVersion: kind.apiVersion, field: 'items' },
  };
}

/** Objects without anything but their metadata; `metaApiVersion` is that of the metadata API. */
export function metadataOnly(kind: KindDefinition, metaApiVersion: string): JsonShape {
  const representation = partialMetadataJson(kind, metaApiVersion);
  return {
    representation,
    text: (object) => representation.encode(object).toString('utf8'),
    bookmark: (object) => partialMetadataBytes(object.json, metaApiVersion),
    document: (object) => partialOf(object, metaApiVersion),
    list: { kind: `${partialObjectMetadata}List`, apiVersion: metaApiVersion, field: 'items' },
  };
}

/** Kind of an object of which only the metadata is sent. */
export const partialObjectMetadata = 'PartialObjectMetadata';

export interface PartialObject {
  kind: typeof partialObjectMetadata;
  apiVersion: string;
  metadata: ObjectMeta;
}

/**
 * Objects of a kind reduced to their metadata, as compact JSON. `apiVersion` is that of the metadata API. The metadata
 * is cut out of the stored bytes; nothing is parsed.
 */
export function partialMetadataJson(kind: KindDefinition, apiVersion: string): Representation {
  return {
    id: representationId(`metadata ${kind.apiVersion} ${kind.kind}`),
    encode: (object) => partialMetadataBytes(metadataSource(kind, object), apiVersion),
  };
}

/** A PartialObjectMetadata document with the metadata of canonical JSON. */
export function partialMetadataBytes(json: Buffer, apiVersion: string): Buffer {
  const range = metadataRange(json);
  if (range === undefined) return Buffer.from(JSON.stringify(partialOf(JSON.parse(json.toString('utf8')), apiVersion)));
  const head = `${jsonHead({ kind: partialObjectMetadata, apiVersion })},"metadata":`;
  const out = Buffer.allocUnsafe(head.length + range.end - range.start + 1);
  const start = out.write(head, 0, 'latin1');
  json.copy(out, start, range.start, range.end);
  out[out.length - 1] = closeBrace;
  return out;
}

/** A PartialObjectMetadata with the metadata of a parsed object. */
export function partialOf(object: KubeObject, apiVersion: string): PartialObject {
  return { kind: partialObjectMetadata, apiVersion, metadata: object.metadata ?? {} };
}

/**
 * JSON that contains the metadata of the served version. A storage conversion that changes only `kind` and `apiVersion`
 * does not change the metadata, so the stored JSON suffices.
 */
function metadataSource(kind: KindDefinition, object: StoredObject): Buffer {
  const json = object.json;
  return kind.storage === undefined || kind.storage.isRelabel(json) ? json : servedBytes(kind, object);
}

/** Compact JSON. Stored objects, lists of them and their events are assembled from bytes without parsing them. */
export class JsonForm implements WireForm {
  readonly contentType = jsonMediaType;
  readonly #shape: JsonShape;
  readonly #recentBodies: RecentBodies;
  #watch: WatchForm | undefined;

  /**
   * @param recentBodies may be shared by the forms of all kinds, because it contains only objects exactly as they are
   * stored.
   */
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
    const parts = representation && partsOf(page, jsonPart(representation));
    return {
      head: Buffer.from(listHead(list, listMetadata(page))),
      items:
        representation === undefined
          ? textPieces(this.#separated(page))
          : page.list.chunks(representation, ',', pieces),
      tail: listTail,
      ready: representation?.stored === true && page.list.ready,
      ...(parts && { parts }),
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

const comma = Buffer.from(',');

/** Kept with what it encodes, so it must not refer to a page. */
function jsonPart(representation: Representation): PartForm {
  return {
    id: representation.id,
    *pieces(objects, isFirst) {
      if (!isFirst) yield comma;
      yield* joinObjects(objects, representation);
    },
  };
}

/**
 * The response body, as a value, for an object that is not stored. A Status is never converted to a Table or to
 * metadata.
 */
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

type Body = (type: WatchEventType, object: StoredObject) => Buffer | JsonSource;

/**
 * Encodes watch events with objects in the given shape. Each frame is encoded once per event and shared by all watches.
 * A Table frame that is sent later therefore shows the age at the time of its encoding.
 */
export function jsonWatchForm(shape: JsonShape): WatchForm {
  const { single } = shape;
  const errorFrame = (status: Status) => jsonFrame('ERROR', Buffer.from(JSON.stringify(status)), 'plain');
  const form = { contentType: jsonMediaType, errorFrame };
  if (single === undefined) return { ...form, ...pair(objectBody(shape)) };
  return { ...form, ...pair(envelopeBody(shape, single.next)), first: pair(envelopeBody(shape, single.first)) };
}

function objectBody(shape: JsonShape): Body {
  const { representation } = shape;
  // Stored bytes are copied into the frame directly.
  if (representation?.stored) return (_, object) => object;
  return (type, object) => {
    if (type === 'BOOKMARK') return shape.bookmark(object);
    return representation === undefined ? Buffer.from(shape.text(object)) : representation.encode(object);
  };
}

function envelopeBody(shape: JsonShape, envelope: ListEnvelope): Body {
  return (type, object) => {
    const head = listHead(envelope, { resourceVersion: resourceVersionOf(object) });
    const item = type === 'BOOKMARK' ? shape.bookmark(object).toString('utf8') : shape.text(object);
    return Buffer.from(`${head}${item}]}`);
  };
}

/** The resourceVersion of the object, which is its revision. */
function resourceVersionOf(object: StoredObject): string {
  return String(object.revision);
}

function pair(body: Body): EventPair {
  return { plain: representation(body, 'plain'), chunked: representation(body, 'chunked') };
}

function representation(body: Body, framing: Framing): EventRepresentation {
  return {
    id: representationId(`json event ${framing}`),
    encode: (type, object) => jsonFrame(type, body(type, object), framing),
  };
}

/**
 * Framing of a JSON watch: see docs/reference/api-rules.md#frames-of-a-watch. With `chunked`, the chunk header and
 * trailer of HTTP/1.1 are part of the frame, so that all sockets share one buffer.
 */
export type Framing = 'plain' | 'chunked';

const prefixes: Readonly<Record<WatchEventType | 'ERROR', Buffer>> = {
  ADDED: Buffer.from('{"type":"ADDED","object":'),
  MODIFIED: Buffer.from('{"type":"MODIFIED","object":'),
  DELETED: Buffer.from('{"type":"DELETED","object":'),
  BOOKMARK: Buffer.from('{"type":"BOOKMARK","object":'),
  ERROR: Buffer.from('{"type":"ERROR","object":'),
};
const carriageReturn = 0x0d;

/** A source of JSON that copies it into a buffer. A stored object does so without creating a view. */
export interface JsonSource {
  readonly byteLength: number;
  /** Copies the JSON to `target` at offset `at`; returns the offset of its end. */
  copyTo(target: Buffer, at: number): number;
}

/** The frame of one event, in one buffer of exactly its size. */
export function jsonFrame(type: WatchEventType | 'ERROR', object: Buffer | JsonSource, framing: Framing): Buffer {
  const prefix = prefixes[type];
  const payload = prefix.length + object.byteLength + 2;
  const header = framing === 'chunked' ? `${payload.toString(16)}\r\n` : '';
  const frame = Buffer.allocUnsafe(framing === 'chunked' ? header.length + payload + 2 : payload);
  let at = header === '' ? 0 : frame.write(header, 0, 'latin1');
  at += prefix.copy(frame, at);
  at = Buffer.isBuffer(object) ? at + object.copy(frame, at) : object.copyTo(frame, at);
  frame[at++] = closeBrace;
  frame[at++] = newline;
  if (framing === 'chunked') {
    frame[at++] = carriageReturn;
    frame[at] = newline;
  }
  return frame;
}
