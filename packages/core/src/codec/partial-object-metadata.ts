import type { KindDefinition } from '../kind/kind-definition.ts';
import type { KubeObject, ObjectMeta } from '../meta/types.ts';
import type { Representation } from '../storage/resource-storage.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import { metadataRange } from './json-slice.ts';
import { jsonHead } from './object-codec.ts';
import { representationId } from './representation-id.ts';
import { servedBytes } from './served-json.ts';

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
