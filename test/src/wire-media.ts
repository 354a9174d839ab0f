import type { IncomingMessage } from 'node:http';
import type { KubeObject, Schema } from '@keelson/core';
import {
  decodeEnvelope,
  decodeProtobufEvent,
  decoderOf,
  deleteOptionsSchema,
  encodeProtobufObject,
  listSchemaOf,
  parseProtobufBody,
  parseYaml,
  statusSchema,
  toYaml,
} from '@keelson/core/internal';
import { builtinKinds } from '@keelson/kinds';

/** Whatever a body holds: an object, a list, a Status. */
export type Document = KubeObject & Readonly<Record<string, unknown>>;

export interface WireEvent {
  readonly type: string;
  readonly object: Document;
}

/** A way to write bodies, read from outside: without the server's own forms where that is possible. */
export interface WireMedia {
  readonly name: 'json' | 'yaml' | 'protobuf';
  readonly type: string;
  encode(document: object): Buffer;
  decode(body: Buffer): Document;
  /** Events of a watch. */
  events(response: IncomingMessage): AsyncGenerator<WireEvent>;
}

function splitter(end: string): (response: IncomingMessage) => AsyncGenerator<string> {
  return async function* (response) {
    let rest = '';
    response.setEncoding('utf8');
    for await (const chunk of response) {
      rest += String(chunk);
      for (let at = rest.indexOf(end); at !== -1; at = rest.indexOf(end)) {
        yield rest.slice(0, at + 1);
        rest = rest.slice(at + end.length);
      }
    }
  };
}

const lines = splitter('\n');
const yamlDocuments = splitter('\n...\n');

const json: WireMedia = {
  name: 'json',
  type: 'application/json',
  encode: (document) => Buffer.from(JSON.stringify(document)),
  decode: (body) => JSON.parse(body.toString()) as Document,
  async *events(response) {
    for await (const line of lines(response)) yield JSON.parse(line) as WireEvent;
  },
};

const yaml: WireMedia = {
  name: 'yaml',
  type: 'application/yaml',
  encode: toYaml,
  decode: (body) => parseYaml(body).value as Document,
  async *events(response) {
    for await (const text of yamlDocuments(response)) yield parseYaml(Buffer.from(text)).value as unknown as WireEvent;
  },
};

const schemas = new Map<string, Schema<unknown>>([
  ['v1 Status', statusSchema],
  ['v1 DeleteOptions', deleteOptionsSchema],
]);
for (const kind of builtinKinds) {
  schemas.set(`${kind.apiVersion} ${kind.kind}`, kind.schema);
  schemas.set(`${kind.apiVersion} ${kind.listKind}`, listSchemaOf(kind.schema));
  for (const subresource of kind.subresources) {
    if (subresource.type !== 'projection' && subresource.type !== 'action') continue;
    const { group, version, kind: word } = subresource.bodyKind;
    schemas.set(`${group === '' ? version : `${group}/${version}`} ${word}`, subresource.schema);
  }
}

function schemaOf(apiVersion: string, kind: string): Schema<unknown> {
  const schema = schemas.get(`${apiVersion} ${kind}`);
  if (schema === undefined) throw new Error(`no protobuf schema of ${apiVersion} ${kind}`);
  return schema;
}

/** Protobuf leaves out what is zero or default in JSON; the decoder of bodies puts it back. */
function complete(body: Buffer): Document {
  const { apiVersion, kind } = decodeEnvelope(body);
  const schema = schemaOf(apiVersion, kind);
  const value = parseProtobufBody(body, { apiVersion, kind, schema });
  const items = value['items'] as readonly object[] | undefined;
  if (!kind.endsWith('List')) return { ...(decoderOf(schema)(value).value as object), kind, apiVersion } as Document;
  const itemSchema = schemaOf(apiVersion, kind.slice(0, -'List'.length));
  return { ...value, items: (items ?? []).map((item) => decoderOf(itemSchema)(item).value) } as unknown as Document;
}

const protobuf: WireMedia = {
  name: 'protobuf',
  type: 'application/vnd.kubernetes.protobuf',
  encode: (document) => {
    const { apiVersion = '', kind = '' } = document as KubeObject;
    return encodeProtobufObject(schemaOf(apiVersion, kind), apiVersion, kind, document);
  },
  decode: complete,
  async *events(response) {
    let rest: Buffer = Buffer.alloc(0);
    for await (const chunk of response) {
      rest = Buffer.concat([rest, chunk as Buffer]);
      while (rest.length >= 4 && rest.length >= 4 + rest.readUInt32BE(0)) {
        const end = 4 + rest.readUInt32BE(0);
        const { type, object } = decodeProtobufEvent(rest.subarray(4, end));
        yield { type, object: complete(object) };
        rest = rest.subarray(end);
      }
    }
  },
};

/** All media that the specification names. */
export const wireMedia: Readonly<Record<WireMedia['name'], WireMedia>> = { json, yaml, protobuf };
