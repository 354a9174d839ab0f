import type { Reader } from 'protobufjs/minimal.js';
import type { WatchEventType } from '../../storage/resource-storage.ts';
import type { Framing } from '../json-watch-form.ts';
import { envelopeTail } from './envelope.ts';
import type { ProtobufDocument } from './protobuf-shape.ts';
import {
  delimitedEnd,
  library,
  putVarint,
  reading,
  requireEnd,
  skipField,
  tagOf,
  varintLength,
  WireType,
} from './wire.ts';

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

/** Content of a watch frame after its length. */
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
