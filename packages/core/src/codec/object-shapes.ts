import type { KindDefinition } from '../kind/kind-definition.ts';
import type { JsonShape } from './json-shape.ts';
import {
  partialMetadataBytes,
  partialMetadataJson,
  partialObjectMetadata,
  partialOf,
} from './partial-object-metadata.ts';
import { servedBookmark, servedBytes, servedJson } from './served-json.ts';

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
