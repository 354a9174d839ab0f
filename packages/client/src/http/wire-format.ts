import type { KubeObject } from '@keelson/core';
import { jsonText, parseJsonText } from '@keelson/core/internal';
import { ConnectionError } from './connection-error.ts';
import type { HttpAnswer } from './http-transport.ts';
import { LineSplitter } from './watch-frames.ts';

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
