import type { Reader } from 'protobufjs/minimal.js';
import {
  delimitedEnd,
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

/** What every protobuf body begins with; a later, incompatible form would begin differently. */
const prefix = Buffer.from([0x6b, 0x38, 0x73, 0x00]);
const field1 = tagOf(1, WireType.delimited);
const field2 = tagOf(2, WireType.delimited);
const field3 = tagOf(3, WireType.delimited);
const field4 = tagOf(4, WireType.delimited);

/** Tag of the bytes of the object; items of lists happen to have the same. */
export const rawTag: number = field2;

/** `contentEncoding` and `contentType`, both empty: see docs/reference/api-rules.md#protobuf. */
export const envelopeTail: Buffer = Buffer.from([field3, 0, field4, 0]);

/** An object in its envelope. */
export interface Envelope {
  /** '' when the sender left it open. */
  readonly apiVersion: string;
  readonly kind: string;
  /** The message; a view into the body. */
  readonly raw: Buffer;
  /** How `raw` is encoded: '' = not at all. */
  readonly contentEncoding: string;
  /** What `raw` is: '' = protobuf. */
  readonly contentType: string;
}

/** Beginning of an envelope, up to the tag of the object's bytes. */
export function envelopeHead(apiVersion: string, kind: string): Buffer {
  const version = Buffer.from(apiVersion);
  const word = Buffer.from(kind);
  const inner = 2 + varintLength(version.length) + version.length + varintLength(word.length) + word.length;
  const head = Buffer.allocUnsafe(prefix.length + 1 + varintLength(inner) + inner);
  let at = prefix.copy(head);
  head[at++] = field1;
  at = putVarint(head, at, inner);
  head[at++] = field1;
  at = putVarint(head, at, version.length);
  at += version.copy(head, at);
  head[at++] = field2;
  at = putVarint(head, at, word.length);
  word.copy(head, at);
  return head;
}

/** A whole body: the envelope around the message `raw`. */
export function encodeEnvelope(apiVersion: string, kind: string, raw: Buffer): Buffer {
  const head = envelopeHead(apiVersion, kind);
  const body = Buffer.allocUnsafe(head.length + 1 + varintLength(raw.length) + raw.length + envelopeTail.length);
  let at = head.copy(body);
  body[at++] = rawTag;
  at = putVarint(body, at, raw.length);
  at += raw.copy(body, at);
  envelopeTail.copy(body, at);
  return body;
}

/** True when bytes begin as protobuf bodies do. */
export function isEnvelope(bytes: Buffer): boolean {
  return bytes.length >= prefix.length && prefix.compare(bytes, 0, prefix.length) === 0;
}

/**
 * Opens a body. All fields may be absent.
 *
 * @throws ProtobufSyntaxError when the prefix is another one or the rest is no envelope.
 */
export function decodeEnvelope(bytes: Buffer): Envelope {
  if (!isEnvelope(bytes)) {
    throw new ProtobufSyntaxError(
      `provided data does not appear to be a protobuf message, expected prefix ${prefix.toString('hex')}`,
    );
  }
  return reading(() => {
    const reader = library().Reader.create(bytes);
    reader.pos = prefix.length;
    let type = { apiVersion: '', kind: '' };
    let raw = bytes.subarray(0, 0);
    let contentEncoding = '';
    let contentType = '';
    while (reader.pos < bytes.length) {
      const tag = reader.tag();
      if (tag === field1) type = readTypeMeta(reader);
      else if (tag === field2) raw = reader.bytes() as Buffer;
      else if (tag === field3) contentEncoding = reader.string();
      else if (tag === field4) contentType = reader.string();
      else skipField(reader, tag);
    }
    return { ...type, raw, contentEncoding, contentType };
  });
}

function readTypeMeta(reader: Reader): { apiVersion: string; kind: string } {
  const end = delimitedEnd(reader);
  let apiVersion = '';
  let kind = '';
  while (reader.pos < end) {
    const tag = reader.tag();
    if (tag === field1) apiVersion = reader.string();
    else if (tag === field2) kind = reader.string();
    else skipField(reader, tag);
  }
  requireEnd(reader, end);
  return { apiVersion, kind };
}
