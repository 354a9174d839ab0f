import { createRequire } from 'node:module';
import type { Reader } from 'protobufjs/minimal.js';
import { DocumentError, isDocumentError } from '../../json/document-error.ts';

/** How the bytes of a field are laid out; the low three bits of its tag. Groups (3 and 4) are not supported. */
export const WireType = { varint: 0, fixed64: 1, delimited: 2, fixed32: 5 } as const;
export type WireType = (typeof WireType)[keyof typeof WireType];

/** Greatest nesting of messages, as protobuf libraries have it. */
export const maxProtobufDepth = 100;

/** What stands before the value of a field. */
export function tagOf(number: number, wireType: WireType): number {
  return ((number << 3) | wireType) >>> 0;
}

/** Reads a length and gives the place where the delimited value ends. */
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

/** Writes a varint below 2^32 and answers where it ends. */
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

/** Bytes that are not the protobuf message they should be. The transport answers 400. Messages never quote content. */
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
