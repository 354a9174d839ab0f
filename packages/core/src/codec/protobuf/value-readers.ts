import type { Reader } from 'protobufjs/minimal.js';
import type { SchemaNode } from '../../kind/schema.ts';
import { formatDuration } from '../../meta/duration.ts';
import { formatInstant, formatMicroInstant, type Instant, isZeroInstant } from '../../meta/time.ts';
import { isDocumentError } from '../document-error.ts';
import { parseJson } from '../json.ts';
import {
  delimitedEnd,
  ProtobufSyntaxError,
  readBigInt64,
  readInt64,
  requireEnd,
  skipField,
  tagOf,
  WireType,
} from './wire.ts';

/** Reads one value; `undefined` stands for the values of Go types that JSON shows as null. */
export type ValueReader = (reader: Reader, depth: number) => unknown;

/** A type of values and how its bytes are laid out. */
export interface ValueForm {
  readonly wireType: WireType;
  readonly read: ValueReader;
}

const varint1 = tagOf(1, WireType.varint);
const varint2 = tagOf(2, WireType.varint);
const delimited1 = tagOf(1, WireType.delimited);
const delimited3 = tagOf(3, WireType.delimited);

/** 0000-01-01T00:00:00Z and 9999-12-31T23:59:59Z: a year has four digits. */
const minSeconds = -62_167_219_200;
const maxSeconds = 253_402_300_799;

/** Instants are messages of seconds and nanoseconds; one without any bytes is the zero time. */
function instantReader(format: (instant: Instant) => string): ValueReader {
  return (reader) => {
    const end = delimitedEnd(reader);
    if (reader.pos === end) return undefined;
    let seconds = 0;
    let nanos = 0;
    while (reader.pos < end) {
      const tag = reader.tag();
      if (tag === varint1) seconds = Number(readInt64(reader));
      else if (tag === varint2) nanos = reader.int32();
      else skipField(reader, tag);
    }
    requireEnd(reader, end);
    if (seconds < minSeconds || seconds > maxSeconds) throw new ProtobufSyntaxError('a protobuf time is out of range');
    const instant = { seconds, nanos: nanos < 0 || nanos > 999_999_999 ? 0 : nanos };
    return isZeroInstant(instant) ? undefined : format(instant);
  };
}

const readDuration: ValueReader = (reader) => {
  const end = delimitedEnd(reader);
  let nanos = 0n;
  while (reader.pos < end) {
    const tag = reader.tag();
    if (tag === varint1) nanos = readBigInt64(reader);
    else skipField(reader, tag);
  }
  requireEnd(reader, end);
  return formatDuration(nanos);
};

const readQuantity: ValueReader = (reader) => {
  const end = delimitedEnd(reader);
  let text = '';
  while (reader.pos < end) {
    const tag = reader.tag();
    if (tag === delimited1) text = reader.string();
    else skipField(reader, tag);
  }
  requireEnd(reader, end);
  return text === '' ? '0' : text;
};

const readIntOrString: ValueReader = (reader) => {
  const end = delimitedEnd(reader);
  let isText = false;
  let number = 0;
  let text = '';
  while (reader.pos < end) {
    const tag = reader.tag();
    if (tag === varint1) isText = Number(readInt64(reader)) !== 0;
    else if (tag === varint2) number = reader.int32();
    else if (tag === delimited3) text = reader.string();
    else skipField(reader, tag);
  }
  requireEnd(reader, end);
  return isText ? text : number;
};

/** What begins a whole envelope, which embedded objects may be instead of JSON. */
const envelopeStart = 0x6b;

/** Objects of open type travel as JSON text in a message of one field. */
const readEmbeddedJson: ValueReader = (reader) => {
  const end = delimitedEnd(reader);
  let raw: Buffer | undefined;
  while (reader.pos < end) {
    const tag = reader.tag();
    if (tag === delimited1) raw = reader.bytes() as Buffer;
    else skipField(reader, tag);
  }
  requireEnd(reader, end);
  if (raw === undefined || raw.length === 0) return undefined;
  if (raw[0] === envelopeStart) throw new ProtobufSyntaxError('an embedded object is not JSON');
  try {
    return parseJson(raw).value ?? undefined;
  } catch (error) {
    if (!isDocumentError(error)) throw error;
    throw new ProtobufSyntaxError(`an embedded object is not JSON: ${error.message}`, { cause: error });
  }
};

const readDouble: ValueReader = (reader) => {
  const value = reader.double();
  if (!Number.isFinite(value)) throw new ProtobufSyntaxError('a protobuf number is not finite');
  return value;
};

/** How values of every type are read that is neither a list, a map nor a message. */
export const valueForms: Readonly<Record<Exclude<SchemaNode['type'], 'list' | 'map' | 'message'>, ValueForm>> = {
  string: { wireType: WireType.delimited, read: (reader) => reader.string() },
  int32: { wireType: WireType.varint, read: (reader) => reader.int32() },
  int64: { wireType: WireType.varint, read: readInt64 },
  double: { wireType: WireType.fixed64, read: readDouble },
  bool: { wireType: WireType.varint, read: (reader) => reader.bool() },
  bytes: { wireType: WireType.delimited, read: (reader) => (reader.bytes() as Buffer).toString('base64') },
  time: { wireType: WireType.delimited, read: instantReader(formatInstant) },
  microTime: { wireType: WireType.delimited, read: instantReader(formatMicroInstant) },
  duration: { wireType: WireType.delimited, read: readDuration },
  quantity: { wireType: WireType.delimited, read: readQuantity },
  intOrString: { wireType: WireType.delimited, read: readIntOrString },
  raw: { wireType: WireType.delimited, read: readEmbeddedJson },
  any: { wireType: WireType.delimited, read: readEmbeddedJson },
};
