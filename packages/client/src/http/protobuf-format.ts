import type { KindDefinition, Schema } from '@keelson/core';
import {
  type Brand,
  decodeEnvelope,
  decodeProtobufEvent,
  encodeProtobufObject,
  listSchemaOf,
  parseProtobufBody,
  protobufMediaType,
  statusSchema,
} from '@keelson/core/internal';
import { ConnectionError } from './connection-error.ts';
import { FrameSplitter } from './watch-frames.ts';
import { type EventReader, jsonBody, jsonFormat, jsonType, type WireEvent, type WireFormat } from './wire-format.ts';

/** Decodes bodies that contain an object of the kind, a list of them or a Status. */
class BodyReader {
  readonly #schemas: ReadonlyMap<string, Schema<unknown>>;

  constructor(kind: KindDefinition) {
    this.#schemas = new Map<string, Schema<unknown>>([
      [kind.kind, kind.schema],
      [kind.listKind, listSchemaOf(kind.schema)],
      ['Status', statusSchema],
    ]);
  }

  read(bytes: Buffer, what: string): unknown {
    let kind = '';
    try {
      kind = decodeEnvelope(bytes).kind;
      const schema = this.#schemas.get(kind);
      if (schema !== undefined) return parseProtobufBody(bytes, { kind, schema });
    } catch (cause) {
      throw new ConnectionError('BadAnswer', `${what} is not protobuf`, cause);
    }
    throw new ConnectionError('BadAnswer', `${what} has the unexpected kind ${JSON.stringify(kind)}`);
  }
}

class ProtobufEvents implements EventReader {
  readonly #frames = new FrameSplitter();
  readonly #bodies: BodyReader;

  constructor(bodies: BodyReader) {
    this.#bodies = bodies;
  }

  push(chunk: Buffer): Buffer[] {
    return this.#frames.push(chunk);
  }

  get pendingBytes(): number {
    return this.#frames.pendingBytes;
  }

  event(frame: Buffer): WireEvent {
    let event: { readonly type: string; readonly object: Buffer };
    try {
      event = decodeProtobufEvent(frame);
    } catch (cause) {
      throw new ConnectionError('BadAnswer', 'an event of the watch is not protobuf', cause);
    }
    return { type: event.type, object: this.#bodies.read(event.object, 'the object of an event') };
  }
}

/**
 * Protobuf for kinds with field numbers, and JSON as the second choice for responses. Undeclared fields are not sent,
 * so the server cannot report them. An object that does not match the kind's types is sent as JSON, so that the server
 * reports its errors.
 */
export function protobufFormat(kind: KindDefinition, brand: Brand): WireFormat {
  const mediaType = protobufMediaType(brand);
  const bodies = new BodyReader(kind);
  const isProtobuf = (contentType: string) => contentType.split(';')[0]?.trim() === mediaType;
  return {
    accept: `${mediaType},${jsonType}`,
    encode: (object) => {
      try {
        return { bytes: encodeProtobufObject(kind.schema, kind.apiVersion, kind.kind, object), contentType: mediaType };
      } catch {
        return jsonBody(object);
      }
    },
    decode: (answer) =>
      isProtobuf(answer.contentType) ? bodies.read(answer.body, 'the response') : jsonFormat.decode(answer),
    events: (contentType) => (isProtobuf(contentType) ? new ProtobufEvents(bodies) : jsonFormat.events(contentType)),
  };
}
