import type { Writer } from 'protobufjs/minimal.js';
import type { SchemaNode } from '../../kind/schema.ts';
import { parseDuration } from '../../meta/duration.ts';
import { parseInstant } from '../../meta/time.ts';
import { jsonText } from '../json-numbers.ts';
import { int64Bytes, tagOf, WireType } from './wire.ts';

/** Writes one value without its tag. @throws TypeError for a value that the schema does not allow. */
export type ValueWriter = (writer: Writer, value: unknown) => void;

/** A type of values and how its bytes are laid out. */
export interface ValueOutput {
  readonly wireType: WireType;
  readonly write: ValueWriter;
}

const varint1 = tagOf(1, WireType.varint);
const varint2 = tagOf(2, WireType.varint);
const delimited1 = tagOf(1, WireType.delimited);
const delimited3 = tagOf(3, WireType.delimited);

function unfit(expected: string, value: unknown): TypeError {
  return new TypeError(`expected ${expected}, got ${value === null ? 'null' : typeof value}`);
}

function textOf(value: unknown, expected: string): string {
  if (typeof value !== 'string') throw unfit(expected, value);
  return value;
}

const writeString: ValueWriter = (writer, value) => {
  writer.string(textOf(value, 'a string'));
};

const writeInt32: ValueWriter = (writer, value) => {
  if (typeof value !== 'number' || (value | 0) !== value) throw unfit('an integer of 32 bits', value);
  writer.int32(value);
};

function putInt64(writer: Writer, value: number | bigint): void {
  if (typeof value === 'bigint') writer.raw(int64Bytes(value));
  else if (value >= 0 && value <= 0xffff_ffff) writer.uint32(value);
  else writer.int64(value);
}

const writeInt64: ValueWriter = (writer, value) => {
  if (typeof value !== 'bigint' && !Number.isSafeInteger(value)) throw unfit('an integer of 64 bits', value);
  putInt64(writer, value as number | bigint);
};

const writeDouble: ValueWriter = (writer, value) => {
  if (typeof value !== 'number') throw unfit('a number', value);
  writer.double(value);
};

const writeBool: ValueWriter = (writer, value) => {
  if (typeof value !== 'boolean') throw unfit('a boolean', value);
  writer.bool(value);
};

const writeBytes: ValueWriter = (writer, value) => {
  writer.bytes(Buffer.from(textOf(value, 'base64 text'), 'base64'));
};

/** `2006-01-02T15:04:05Z`, the form that stored objects have. */
const canonicalLength = 20;

/**
 * Instants are messages of seconds and nanoseconds, the latter always present as in the reference; null is one without
 * bytes.
 */
const writeTime: ValueWriter = (writer, value) => {
  if (value === null) {
    writer.uint32(0);
    return;
  }
  const text = textOf(value, 'a time');
  const direct = text.length === canonicalLength ? Date.parse(text) / 1000 : Number.NaN;
  const seconds = Number.isInteger(direct) ? direct : parseInstant(text)?.seconds;
  if (seconds === undefined) throw new TypeError('expected an RFC 3339 time');
  writer.fork().uint32(varint1);
  putInt64(writer, seconds);
  writer.uint32(varint2).uint32(0).ldelim();
};

const writeMicroTime: ValueWriter = (writer, value) => {
  if (value === null) {
    writer.uint32(0);
    return;
  }
  const instant = parseInstant(textOf(value, 'a time'));
  if (instant === undefined) throw new TypeError('expected an RFC 3339 time');
  writer.fork().uint32(varint1);
  putInt64(writer, instant.seconds);
  writer
    .uint32(varint2)
    .uint32(instant.nanos - (instant.nanos % 1000))
    .ldelim();
};

const writeDuration: ValueWriter = (writer, value) => {
  const nanos = parseDuration(textOf(value, 'a duration'));
  writer.fork().uint32(varint1).raw(int64Bytes(nanos)).ldelim();
};

/** Numbers are quantities too, as in manifests. */
const writeQuantity: ValueWriter = (writer, value) => {
  const text = typeof value === 'number' ? String(value) : textOf(value, 'a quantity');
  writer.fork().uint32(delimited1).string(text).ldelim();
};

/** All three parts, as the generated Go code of Kubernetes encodes them. */
const writeIntOrString: ValueWriter = (writer, value) => {
  const isText = typeof value === 'string';
  if (!isText && (typeof value !== 'number' || (value | 0) !== value))
    throw unfit('a string or integer of 32 bits', value);
  writer
    .fork()
    .uint32(varint1)
    .uint32(isText ? 1 : 0)
    .uint32(varint2)
    .int32(isText ? 0 : (value as number))
    .uint32(delimited3)
    .string(isText ? value : '')
    .ldelim();
};

const writeEmbeddedJson: ValueWriter = (writer, value) => {
  writer.fork().uint32(delimited1).string(jsonText(value)).ldelim();
};

/** How values of every type are written that is neither a list, a map nor a message. */
export const valueOutputs: Readonly<Record<Exclude<SchemaNode['type'], 'list' | 'map' | 'message'>, ValueOutput>> = {
  string: { wireType: WireType.delimited, write: writeString },
  int32: { wireType: WireType.varint, write: writeInt32 },
  int64: { wireType: WireType.varint, write: writeInt64 },
  double: { wireType: WireType.fixed64, write: writeDouble },
  bool: { wireType: WireType.varint, write: writeBool },
  bytes: { wireType: WireType.delimited, write: writeBytes },
  time: { wireType: WireType.delimited, write: writeTime },
  microTime: { wireType: WireType.delimited, write: writeMicroTime },
  duration: { wireType: WireType.delimited, write: writeDuration },
  quantity: { wireType: WireType.delimited, write: writeQuantity },
  intOrString: { wireType: WireType.delimited, write: writeIntOrString },
  raw: { wireType: WireType.delimited, write: writeEmbeddedJson },
  any: { wireType: WireType.delimited, write: writeEmbeddedJson },
};
