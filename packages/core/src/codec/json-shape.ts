import { metadataRange } from '../json/json-slice.ts';
import type { KindDefinition } from '../kind/kind-definition.ts';
import type { KubeObject, ObjectMeta } from '../meta/types.ts';
import type { Representation } from '../storage/resource-storage.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import { jsonHead, servedBookmark, servedBytes, servedJson } from './object-codec.ts';
import { type ListEnvelope, representationId } from './wire-form.ts';

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
  /** Around the items of a list. */
  readonly list: ListEnvelope;
  /**
   * Set when a single object is also an envelope, with one item: around it, and around the items of all events of a
   * watch but the first.
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

const closeBrace = 0x7d;

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

/** The metadata of canonical JSON as an object of its own. */
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

/** The metadata of an object that is at hand. */
export function partialOf(object: KubeObject, apiVersion: string): PartialObject {
  return { kind: partialObjectMetadata, apiVersion, metadata: object.metadata ?? {} };
}

/** JSON whose metadata is the served one; a new head changes nothing below it. */
function metadataSource(kind: KindDefinition, object: StoredObject): Buffer {
  const json = object.json;
  return kind.storage === undefined || kind.storage.isRelabel(json) ? json : servedBytes(kind, object);
}
