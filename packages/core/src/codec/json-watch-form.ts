import type { Status } from '../meta/status.ts';
import type { EventRepresentation, WatchEventType } from '../storage/resource-storage.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import type { JsonShape } from './json-shape.ts';
import { jsonMediaType } from './media-type.ts';
import { type EventPair, type ListEnvelope, listHead, representationId, type WatchForm } from './wire-form.ts';

type Body = (type: WatchEventType, object: StoredObject) => Buffer | JsonSource;

/**
 * Watch events of a shape. Frames are encoded once per event and shared, those of tables included: an age in a replayed
 * frame is the age when the frame was encoded.
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
  // Stored bytes go into the frame directly.
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
const closeBrace = 0x7d;
const newline = 0x0a;
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
