import type { Reader, Writer } from 'protobufjs/minimal.js';
import { isDocumentError } from '../../json/document-error.ts';
import { parseJson } from '../../json/json.ts';
import { checkMessages } from '../../kind/message-check.ts';
import type { Schema } from '../../kind/schema.ts';
import { type MessageNode, messageNode } from '../../kind/schema-walk.ts';
import type { WatchEventType } from '../../storage/resource-storage.ts';
import type { Framing } from '../json-form.ts';
import { jsonMediaType } from '../media-type.ts';
import { beginMessage, messageReader, readFields } from './message-reader.ts';
import { messageWriter, writeFields } from './message-writer.ts';
import type { ProtobufDocument } from './protobuf-form.ts';
import {
  decodeEnvelope,
  delimitedEnd,
  encodeEnvelope,
  envelopeTail,
  library,
  ProtobufSyntaxError,
  putVarint,
  reading,
  requireEnd,
  skipField,
  tagOf,
  varintLength,
  WireType,
} from './wire.ts';

/** Encodes a JSON object as a message. */
export type ProtobufEncoder<T> = (value: T) => Buffer;

/** Decodes a message to a JSON object. */
export type ProtobufDecoder = (bytes: Buffer) => Record<string, unknown>;

const encoders = new WeakMap<MessageNode, ProtobufEncoder<unknown>>();
const decoders = new WeakMap<MessageNode, ProtobufDecoder>();

function messageOf(schema: Schema<unknown>): MessageNode {
  const node = messageNode(schema);
  if (node === undefined) throw new Error(`a schema of type ${schema.node.type} is not a protobuf message`);
  return node;
}

const numbered = new WeakMap<Schema<unknown>['node'], boolean>();

/** True when a schema is a message and every message that it reaches has field numbers throughout. */
export function hasProtobufForm(schema: Schema<unknown>): boolean {
  let known = numbered.get(schema.node);
  if (known === undefined) {
    known = schema.node.type === 'message' && checkMessages(schema).protobuf;
    numbered.set(schema.node, known);
  }
  return known;
}

/**
 * The encoder of a message schema, compiled on first use and kept as long as the schema. It takes objects as the JSON
 * decoder makes them and writes exactly the fields they have; what exists in JSON alone (`kind`, `apiVersion`) is left
 * out, nested or not.
 *
 * @throws Error when a message of the schema has fields without numbers; the encoder throws TypeError for values of a
 *   wrong type.
 */
export function protobufEncoderOf<T>(schema: Schema<T>): ProtobufEncoder<T> {
  const node = messageOf(schema);
  let encoder = encoders.get(node);
  if (encoder === undefined) {
    const message = messageWriter(node);
    encoder = (value) => written((writer) => writeFields(message, writer, value));
    encoders.set(node, encoder);
  }
  return encoder;
}

/**
 * The decoder of a message schema, compiled on first use and kept as long as the schema. The result is what a JSON body
 * of the same content would be parsed to. The JSON decoder processes it next: it adds defaults, makes texts canonical
 * and validates.
 *
 * Go writers send zero values for fields that JSON omits; they are dropped unless the field is always written
 * or distinguishes zero from absence (`presence`). Unknown fields are skipped, as reference servers do. Nothing of the
 * result refers to `bytes`.
 *
 * @throws Error when a message of the schema has no protobuf form; the decoder throws ProtobufSyntaxError for bytes
 *   that are no such message.
 */
export function protobufDecoderOf(schema: Schema<unknown>): ProtobufDecoder {
  const node = messageOf(schema);
  let decoder = decoders.get(node);
  if (decoder === undefined) {
    if (!hasProtobufForm(schema)) throw new Error(`message ${node.name} has no protobuf form`);
    const message = messageReader(node);
    decoder = (bytes) =>
      reading(() => {
        beginMessage();
        const value: Record<string, unknown> = {};
        readFields(message, library().Reader.create(bytes), bytes.length, value, 1);
        return value;
      });
    decoders.set(node, decoder);
  }
  return decoder;
}

/** Buffers above this size are not kept for the next message. */
const keptBytes = 256 * 1024;

/**
 * The writer that is reused for each message. Undefined before the first message, and after a message whose buffer was
 * too large to keep.
 */
let shared: Writer | undefined;

/** The bytes that `write` produces. The writer is reused: writing is synchronous and never nested. */
export function written(write: (writer: Writer) => void): Buffer {
  shared ??= library().Writer.create();
  const writer = shared;
  let whole = false;
  try {
    write(writer);
    const bytes = writer.finish() as Buffer;
    whole = bytes.length <= keptBytes;
    return bytes;
  } finally {
    if (whole) writer.reset();
    else shared = undefined;
  }
}

/** A whole body with an object of a schema; `kind` and `apiVersion` are in the envelope. */
export function encodeProtobufObject(
  schema: Schema<unknown>,
  apiVersion: string,
  kind: string,
  object: unknown,
): Buffer {
  return encodeEnvelope(apiVersion, kind, protobufEncoderOf(schema)(object));
}

/** The type of object that a protobuf body must contain. */
export interface ProtobufBodyType {
  readonly kind: string;
  /** Absent: the schema applies to every version of the kind. */
  readonly apiVersion?: string;
  readonly schema: Schema<unknown>;
}

/** Media type of protobuf under any brand. */
const protobufType = /^application\/vnd\.[^/;\s]+\.protobuf$/;

/**
 * Reads a body as the value that an equal JSON body would parse to, `kind` and `apiVersion` included where the envelope
 * has them. The content of an object of another type than `type` is not read: the result has only these two fields,
 * which the caller names in its rejection.
 *
 * @throws ProtobufSyntaxError when the bytes are no envelope, or its content is not in a form that is known here.
 */
export function parseProtobufBody(bytes: Buffer, type: ProtobufBodyType): Record<string, unknown> {
  const { apiVersion, kind, raw, contentEncoding, contentType } = decodeEnvelope(bytes);
  const named = { ...(kind === '' ? {} : { kind }), ...(apiVersion === '' ? {} : { apiVersion }) };
  if (kind !== '' && kind !== type.kind) return named;
  if (apiVersion !== '' && type.apiVersion !== undefined && apiVersion !== type.apiVersion) return named;
  if (contentEncoding !== '') throw new ProtobufSyntaxError('the object in the envelope is encoded in an unknown way');
  if (contentType === '' || protobufType.test(contentType))
    return Object.assign(named, protobufDecoderOf(type.schema)(raw));
  if (contentType !== jsonMediaType)
    throw new ProtobufSyntaxError('the object in the envelope is neither protobuf nor JSON');
  return { ...named, ...jsonObject(raw) };
}

function jsonObject(raw: Buffer): object {
  try {
    const { value } = parseJson(raw);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch (error) {
    if (!isDocumentError(error)) throw error;
    throw new ProtobufSyntaxError(`the object in the envelope is not JSON: ${error.message}`, { cause: error });
  }
  throw new ProtobufSyntaxError('the object in the envelope is not an object');
}

const field1 = tagOf(1, WireType.delimited);
const field2 = tagOf(2, WireType.delimited);
const lengthBytes = 4;
const carriageReturn = 0x0d;
const newline = 0x0a;

/**
 * The frame of one event of a protobuf watch: see docs/reference/api-rules.md#frames-of-a-watch. With `chunked`, chunk
 * header and trailer of HTTP/1.1 are part of it.
 */
export function protobufFrame(type: WatchEventType | 'ERROR', object: ProtobufDocument, framing: Framing): Buffer {
  const { head, field } = object;
  const envelope = head.length + field.length + envelopeTail.length;
  const raw = 1 + varintLength(envelope) + envelope;
  const event = 1 + 1 + type.length + 1 + varintLength(raw) + raw;
  const payload = lengthBytes + event;
  const header = framing === 'chunked' ? `${payload.toString(16)}\r\n` : '';
  const frame = Buffer.allocUnsafe(framing === 'chunked' ? header.length + payload + 2 : payload);
  let at = header === '' ? 0 : frame.write(header, 0, 'latin1');
  at = frame.writeUInt32BE(event, at);
  frame[at++] = field1;
  frame[at++] = type.length;
  at += frame.write(type, at, 'latin1');
  frame[at++] = field2;
  at = putVarint(frame, at, raw);
  frame[at++] = field1;
  at = putVarint(frame, at, envelope);
  at += head.copy(frame, at);
  at += field.copy(frame, at);
  at += envelopeTail.copy(frame, at);
  if (framing === 'chunked') {
    frame[at++] = carriageReturn;
    frame[at] = newline;
  }
  return frame;
}

/** Content of a watch frame, without the length before it. */
export interface ProtobufEvent {
  readonly type: string;
  /** The whole envelope of the object; a view into the frame. */
  readonly object: Buffer;
}

/**
 * Reads the WatchEvent of a frame, for clients. The caller, which reads the stream, removes the four bytes of length
 * before it.
 *
 * @throws ProtobufSyntaxError
 */
export function decodeProtobufEvent(bytes: Buffer): ProtobufEvent {
  return reading(() => {
    const reader = library().Reader.create(bytes);
    let type = '';
    let object = bytes.subarray(0, 0);
    while (reader.pos < bytes.length) {
      const tag = reader.tag();
      if (tag === field1) type = reader.string();
      else if (tag === field2) object = readRaw(reader) ?? object;
      else skipField(reader, tag);
    }
    return { type, object };
  });
}

function readRaw(reader: Reader): Buffer | undefined {
  const end = delimitedEnd(reader);
  let raw: Buffer | undefined;
  while (reader.pos < end) {
    const tag = reader.tag();
    if (tag === field1) raw = reader.bytes() as Buffer;
    else skipField(reader, tag);
  }
  requireEnd(reader, end);
  return raw;
}
