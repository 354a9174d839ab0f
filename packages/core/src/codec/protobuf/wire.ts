import { createRequire } from 'node:module';
import type { Reader } from 'protobufjs/minimal.js';
import { DocumentError, isDocumentError } from '../../json/document-error.ts';

/** The layout of the bytes of a field, in the low three bits of its tag. Groups (3 and 4) are not supported. */
export const WireType = { varint: 0, fixed64: 1, delimited: 2, fixed32: 5 } as const;
export type WireType = (typeof WireType)[keyof typeof WireType];

/** Greatest nesting of messages, as protobuf libraries have it. */
export const maxProtobufDepth = 100;

/** The tag that precedes the value of a field: its number and its wire type. */
export function tagOf(number: number, wireType: WireType): number {
  return ((number << 3) | wireType) >>> 0;
}

/** Reads a length and returns the position at which the delimited value ends. */
export function delimitedEnd(reader: Reader): number {
  const end = reader.size() + reader.pos;
  if (end > reader.len) throw new ProtobufSyntaxError('the protobuf message is truncated');
  return end;
}

/** Checks that a value ends exactly at the end given by its length. */
export function requireEnd(reader: Reader, end: number): void {
  if (reader.pos !== end) throw new ProtobufSyntaxError('a protobuf field reaches beyond the message that it is in');
}

/** Skips the value of an unknown field. */
export function skipField(reader: Reader, tag: number): void {
  if (tag >>> 3 === 0) throw new ProtobufSyntaxError('a protobuf field has the number 0');
  switch (tag & 7) {
    case WireType.varint:
      reader.skip();
      return;
    case WireType.fixed64:
      reader.skip(8);
      return;
    case WireType.delimited:
      reader.pos = delimitedEnd(reader);
      return;
    case WireType.fixed32:
      reader.skip(4);
      return;
    default:
      throw new ProtobufSyntaxError(`protobuf wire type ${tag & 7} is not supported`);
  }
}

const two32 = 2 ** 32;

/** A 64-bit varint as two integers of 32 bits: the low one unsigned, the high one signed. */
function readHalves(reader: Reader): { readonly low: number; readonly high: number } {
  const { buf, len } = reader;
  let low = 0;
  let high = 0;
  for (let shift = 0; shift < 70; shift += 7) {
    if (reader.pos >= len) throw new ProtobufSyntaxError('the protobuf message is truncated');
    const byte = buf[reader.pos++] as number;
    const bits = byte & 127;
    if (shift < 28) low |= bits << shift;
    else if (shift === 28) {
      low |= bits << 28;
      high = bits >>> 4;
    } else high |= bits << (shift - 32);
    if (byte < 128) return { low: low >>> 0, high };
  }
  throw new ProtobufSyntaxError('a protobuf integer has more than ten bytes');
}

/** A signed 64-bit varint; a bigint beyond ±(2^53 - 1), where numbers lose digits. */
export function readInt64(reader: Reader): number | bigint {
  const first = reader.pos < reader.len ? (reader.buf[reader.pos] as number) : 128;
  if (first < 128) {
    reader.pos += 1;
    return first;
  }
  const { low, high } = readHalves(reader);
  const value = high * two32 + low;
  return Number.isSafeInteger(value) ? value : BigInt(high) * BigInt(two32) + BigInt(low);
}

/** A signed 64-bit varint in full. */
export function readBigInt64(reader: Reader): bigint {
  const { low, high } = readHalves(reader);
  return BigInt(high) * BigInt(two32) + BigInt(low);
}

/** The varint of a signed integer of 64 bits. */
export function int64Bytes(value: bigint): Uint8Array {
  let rest = BigInt.asUintN(64, value);
  const bytes: number[] = [];
  do {
    const part = Number(rest & 0x7fn);
    rest >>= 7n;
    bytes.push(rest === 0n ? part : part | 0x80);
  } while (rest !== 0n);
  return Uint8Array.from(bytes);
}

/** Number of bytes of a varint below 2^32. */
export function varintLength(value: number): number {
  if (value < 0x80) return 1;
  if (value < 0x4000) return 2;
  if (value < 0x20_0000) return 3;
  return value < 0x1000_0000 ? 4 : 5;
}

/** Writes a varint below 2^32 and returns the position of its end. */
export function putVarint(target: Buffer, at: number, value: number): number {
  let rest = value;
  while (rest >= 0x80) {
    target[at++] = (rest & 0x7f) | 0x80;
    rest >>>= 7;
  }
  target[at++] = rest;
  return at;
}

type Library = typeof import('protobufjs/minimal.js');

const require = createRequire(import.meta.url);
let loaded: Library | undefined;

/** Readers and writers of the wire format, loaded on first use, because many processes never use protobuf. */
export function library(): Library {
  loaded ??= require('protobufjs/minimal.js') as Library;
  return loaded;
}

/**
 * Bytes that are not a protobuf message of the expected type. The transport answers 400. Messages never quote content.
 */
export class ProtobufSyntaxError extends DocumentError {
  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super('protobuf', 'syntax', message);
    this.name = 'ProtobufSyntaxError';
    if (options.cause !== undefined) this.cause = options.cause;
  }
}

/** True for a {@link ProtobufSyntaxError}, also across two copies of this package. */
export function isProtobufSyntaxError(error: unknown): error is ProtobufSyntaxError {
  return isDocumentError(error) && error.name === 'ProtobufSyntaxError';
}

/**
 * Runs a reader of untrusted bytes. Its errors become a {@link ProtobufSyntaxError}, unless they are a
 * {@link DocumentError}.
 */
export function reading<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (isDocumentError(error)) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new ProtobufSyntaxError(`the protobuf message is broken: ${why}`, { cause: error });
  }
}

/** What every protobuf body begins with; a later, incompatible form would begin differently. */
const prefix = Buffer.from([0x6b, 0x38, 0x73, 0x00]);
const field1 = tagOf(1, WireType.delimited);
const field2 = tagOf(2, WireType.delimited);
const field3 = tagOf(3, WireType.delimited);
const field4 = tagOf(4, WireType.delimited);

/** Tag of the envelope field that contains the object. The items of a list have the same tag by coincidence. */
export const rawTag: number = field2;

/** `contentEncoding` and `contentType`, both empty: see docs/reference/api-rules.md#protobuf. */
export const envelopeTail: Buffer = Buffer.from([field3, 0, field4, 0]);

/** The envelope (`runtime.Unknown`) of an object in a protobuf body. */
export interface Envelope {
  /** Empty when the sender did not specify the API version. */
  readonly apiVersion: string;
  readonly kind: string;
  /** The encoded object; a view into the bytes of the body. */
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
