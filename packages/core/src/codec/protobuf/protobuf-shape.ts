import type { KindDefinition } from '../../kind/kind-definition.ts';
import type { Schema } from '../../kind/schema.ts';
import { messageNode } from '../../kind/schema-walk.ts';
import { statusSchema } from '../../kind/status-schema.ts';
import type { Status } from '../../meta/status.ts';
import type { KubeObject } from '../../meta/types.ts';
import type { Representation } from '../../storage/resource-storage.ts';
import type { StoredObject } from '../../storage/stored-object.ts';
import { partialMetadataBytes, partialMetadataJson, partialObjectMetadata } from '../json-shape.ts';
import { servedBookmark, servedValue } from '../served-json.ts';
import { representationId } from '../wire-form.ts';
import { partialMetadataSchema } from './document-schemas.ts';
import { envelopeHead, rawTag } from './envelope.ts';
import { messageWriter, writeFields } from './message-writer.ts';
import { hasProtobufForm, written } from './protobuf-codec.ts';

/** An object in its parts: what goes around it, and the field that holds it. */
export interface ProtobufDocument {
  /** Beginning of the envelope. */
  readonly head: Buffer;
  /** The object's message with the tag and length under which the envelope holds it. */
  readonly field: Buffer;
}

/**
 * What protobuf says about objects. An item is the message of an object behind tag and length: the field that holds the
 * object in its envelope, and the same bytes are an item of a list. So each object is encoded once for all answers,
 * lists and watch frames.
 */
export interface ProtobufShape {
  readonly representation: Representation;
  /** Beginning of the envelope of one object. */
  readonly head: Buffer;
  /** The item for the empty object of a bookmark. */
  bookmark(object: StoredObject): Buffer;
  /** A value that is not stored; a Status in any shape. */
  document(object: KubeObject | Status): ProtobufDocument;
  readonly list: {
    /** Beginning of the envelope of a list. */
    readonly head: Buffer;
    /** Numbers of the list's fields. */
    readonly metadata: number;
    readonly items: number;
  };
}

/** The field that holds an object in its envelope. */
export function protobufField(schema: Schema<unknown>, value: unknown): Buffer {
  const node = messageNode(schema);
  if (node === undefined) throw new Error(`a schema of type ${schema.node.type} is no protobuf message`);
  const message = messageWriter(node);
  return written((writer) => {
    writer.uint32(rawTag).fork();
    writeFields(message, writer, value);
    writer.ldelim();
  });
}

const statusHead = envelopeHead('v1', 'Status');

/** A Status, which every shape can write. */
export function statusDocument(status: Status): ProtobufDocument {
  return { head: statusHead, field: protobufField(statusSchema, status) };
}

function isStatus(object: KubeObject | Status): object is Status {
  return object.kind === 'Status' && object.apiVersion === 'v1';
}

/** The schemas of everything that answers about a kind may hold. */
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
