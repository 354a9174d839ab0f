import type { KindDefinition, KubeObject, Schema } from '@keelson/core';
import {
  type Brand,
  decodeEnvelope,
  decodeProtobufEvent,
  encodeProtobufObject,
  jsonText,
  listSchemaOf,
  parseJsonText,
  parseProtobufBody,
  protobufMediaType,
  statusSchema,
} from '@keelson/core/internal';
import { ConnectionError } from './connection-error.ts';
import type { HttpAnswer } from './http-transport.ts';
import { FrameSplitter, LineSplitter } from './http-watch.ts';

/** A request body. */
export interface WireBody {
  readonly bytes: Buffer;
  readonly contentType: string;
}

/** A decoded event of a watch. */
export interface WireEvent {
  readonly type: unknown;
  readonly object: unknown;
}

/** Splits a stream of events into frames. */
export interface EventReader {
  /** The frames completed by this chunk. */
  push(chunk: Buffer): Buffer[];
  /** Number of bytes of an incomplete frame. */
  readonly pendingBytes: number;
  /** @throws ConnectionError `BadAnswer` */
  event(frame: Buffer): WireEvent;
}

/** Encoding of the objects of a resource. */
export interface WireFormat {
  /** Value of the Accept header. */
  readonly accept: string;
  encode(object: KubeObject): WireBody;
  /** @throws ConnectionError `BadAnswer` */
  decode(answer: HttpAnswer): unknown;
  events(contentType: string): EventReader;
}

export const jsonType = 'application/json';

export function jsonBody(value: unknown, contentType: string = jsonType): WireBody {
  return { bytes: Buffer.from(jsonText(value)), contentType };
}

/** @throws ConnectionError `BadAnswer` */
export function jsonValue(bytes: Buffer, what: string): unknown {
  try {
    return parseJsonText(bytes.toString('utf8'));
  } catch (cause) {
    throw new ConnectionError('BadAnswer', `${what} is not JSON`, cause);
  }
}

class JsonEvents implements EventReader {
  readonly #lines = new LineSplitter();

  push(chunk: Buffer): Buffer[] {
    return this.#lines.push(chunk);
  }

  get pendingBytes(): number {
    return this.#lines.pendingBytes;
  }

  event(frame: Buffer): WireEvent {
    const event = jsonValue(frame, 'an event of the watch') as WireEvent | null;
    return { type: event?.type, object: event?.object };
  }
}

/** JSON, which every resource supports. */
export const jsonFormat: WireFormat = {
  accept: jsonType,
  encode: (object) => jsonBody(object),
  decode: ({ body }) => jsonValue(body, 'the response'),
  events: () => new JsonEvents(),
};

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
