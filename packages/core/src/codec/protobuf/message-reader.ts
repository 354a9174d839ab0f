import type { Reader } from 'protobufjs/minimal.js';
import { DocumentError, isDocumentError } from '../../json/document-error.ts';
import { maxJsonValues, parseJson, setOwn } from '../../json/json.ts';
import type { Field, SchemaNode } from '../../kind/schema.ts';
import {
  type ListNode,
  type MapNode,
  type MessageNode,
  messageNode,
  type UnionNode,
  zeroOfNode,
} from '../../kind/schema-walk.ts';
import { formatDuration } from '../../meta/duration.ts';
import { formatInstant, formatMicroInstant, type Instant, isZeroInstant } from '../../meta/time.ts';
import {
  delimitedEnd,
  maxProtobufDepth,
  ProtobufSyntaxError,
  readBigInt64,
  readInt64,
  requireEnd,
  skipField,
  tagOf,
  WireType,
} from './wire.ts';

/**
 * How many more values the message that is being read may contain. Reading is synchronous, so only one message is read
 * at a time.
 */
let valuesLeft = 0;

/** Resets the limit on values; must be called before each outermost message is read. */
export function beginMessage(): void {
  valuesLeft = maxJsonValues;
}

function countValue(): void {
  valuesLeft -= 1;
  if (valuesLeft < 0) {
    throw new DocumentError('protobuf', 'tooLarge', `the document has more than ${maxJsonValues} values`);
  }
}

type Plain = Record<string, unknown>;
type AnyField = Field<unknown, boolean>;

/** Reads the value of one field and puts it into the object. */
type FieldReader = (reader: Reader, into: Plain, depth: number) => void;

/** Readers of the fields of a message. */
export interface MessageReader {
  /** Indexed by the tag of the field. */
  readonly fields: FieldReader[];
  readonly numbers: Set<number>;
}

const compiled = new WeakMap<MessageNode, MessageReader>();

/** Reads fields up to `end` into an object; parts of the same message field are merged, as protobuf requires. */
export function readFields(message: MessageReader, reader: Reader, end: number, into: Plain, depth: number): void {
  if (depth > maxProtobufDepth) {
    throw new ProtobufSyntaxError(`the protobuf message is nested deeper than ${maxProtobufDepth} levels`);
  }
  const { fields } = message;
  while (reader.pos < end) {
    countValue();
    const tag = reader.tag();
    const field = fields[tag];
    if (field !== undefined) field(reader, into, depth);
    else {
      if (message.numbers.has(tag >>> 3)) {
        throw new ProtobufSyntaxError(`protobuf field ${tag >>> 3} has the wrong wire type ${tag & 7}`);
      }
      skipField(reader, tag);
    }
  }
  requireEnd(reader, end);
}

/** The readers of a message, made on first use. Recursive schemas are supported. */
export function messageReader(node: MessageNode): MessageReader {
  const known = compiled.get(node);
  if (known !== undefined) return known;
  const message: MessageReader = { fields: [], numbers: new Set() };
  compiled.set(node, message);
  try {
    for (const [name, field] of Object.entries(node.fields)) {
      if (field.number === undefined) continue;
      message.numbers.add(field.number);
      addField(message, name, field, field.number);
    }
  } catch (error) {
    compiled.delete(node);
    throw error;
  }
  return message;
}

function addField(message: MessageReader, name: string, field: AnyField, number: number): void {
  const node = field.schema.node;
  const delimited = tagOf(number, WireType.delimited);
  if (node.type === 'message') message.fields[delimited] = field.inline ? inlineReader(node) : nestedReader(name, node);
  else if (node.type === 'map') message.fields[delimited] = mapReader(name, node);
  else if (node.type === 'list') {
    const item = formOf(node.items.node);
    message.fields[tagOf(number, item.wireType)] = listReader(name, item);
    if (item.wireType !== WireType.delimited) message.fields[delimited] = packedReader(name, item);
  } else if (node.type === 'union') {
    const form = formOf(node);
    message.fields[delimited] = valueReader(name, form);
  } else {
    const form = valueForms[node.type];
    message.fields[tagOf(number, form.wireType)] = zeroIsAbsent(field)
      ? nonZeroReader(name, form, node)
      : valueReader(name, form);
  }
}

/**
 * True when a zero on the wire means an absent field, because Go writes zeros of all scalars that are not pointers: see
 * docs/reference/api-rules.md#protobuf.
 */
function zeroIsAbsent(field: AnyField): boolean {
  return field.whenAbsent !== 'zero' && field.presence !== true;
}

function valueReader(name: string, { read }: ValueForm): FieldReader {
  return (reader, into, depth) => {
    const value = read(reader, depth);
    if (value !== undefined) into[name] = value;
  };
}

function nonZeroReader(name: string, { read }: ValueForm, node: SchemaNode): FieldReader {
  const zero = node.type === 'quantity' || node.type === 'duration' ? undefined : zeroOfNode(node);
  return (reader, into, depth) => {
    const value = read(reader, depth);
    if (value !== undefined && value !== zero) into[name] = value;
    else if (into[name] !== undefined) delete into[name];
  };
}

function nestedReader(name: string, node: MessageNode): FieldReader {
  const message = messageReader(node);
  return (reader, into, depth) => {
    const end = delimitedEnd(reader);
    const value = (into[name] ?? {}) as Plain;
    readFields(message, reader, end, value, depth + 1);
    into[name] = value;
  };
}

/** The fields of an inlined message belong to its parent in JSON. */
function inlineReader(node: MessageNode): FieldReader {
  const message = messageReader(node);
  return (reader, into, depth) => readFields(message, reader, delimitedEnd(reader), into, depth + 1);
}

function listOf(into: Plain, name: string): unknown[] {
  const known = into[name] as unknown[] | undefined;
  if (known !== undefined) return known;
  const list: unknown[] = [];
  into[name] = list;
  return list;
}

function listReader(name: string, { read }: ValueForm): FieldReader {
  return (reader, into, depth) => {
    listOf(into, name).push(read(reader, depth) ?? null);
  };
}

/** Reads the packed encoding of repeated numbers: all values in one field, without tags between them. */
function packedReader(name: string, { read }: ValueForm): FieldReader {
  return (reader, into, depth) => {
    const end = delimitedEnd(reader);
    const list = listOf(into, name);
    while (reader.pos < end) {
      countValue();
      list.push(read(reader, depth));
    }
    requireEnd(reader, end);
  };
}

const keyTag = tagOf(1, WireType.delimited);

function mapReader(name: string, node: MapNode): FieldReader {
  const form = formOf(node.values.node);
  const valueTag = tagOf(2, form.wireType);
  return (reader, into, depth) => {
    const end = delimitedEnd(reader);
    let key = '';
    let value: unknown;
    while (reader.pos < end) {
      const tag = reader.tag();
      if (tag === keyTag) key = reader.string();
      else if (tag === valueTag) value = form.read(reader, depth);
      else skipField(reader, tag);
    }
    requireEnd(reader, end);
    let map = into[name] as Plain | undefined;
    if (map === undefined) {
      map = {};
      into[name] = map;
    }
    setOwn(map, key, value ?? zeroOfNode(node.values.node));
  };
}

/** The reader of a value in a list or a map. */
function formOf(node: SchemaNode): ValueForm {
  if (node.type === 'message') {
    const message = messageReader(node);
    return {
      wireType: WireType.delimited,
      read: (reader, depth) => {
        const value: Plain = {};
        readFields(message, reader, delimitedEnd(reader), value, depth + 1);
        return value;
      },
    };
  }
  if (node.type === 'union') return unionForm(node);
  if (node.type === 'list') return wrappedList(node);
  if (node.type === 'map') throw new Error('a map inside a list or a map has no protobuf form');
  return valueForms[node.type];
}

/** The last field of the message that is present is the value. */
function unionForm(node: UnionNode): ValueForm {
  const form = formOf(node.message.node);
  const names = Object.keys(messageNode(node.message)?.fields ?? {}).reverse();
  return {
    wireType: form.wireType,
    read: (reader, depth) => {
      const message = form.read(reader, depth) as Plain;
      const present = names.find((name) => message[name] !== undefined);
      return present === undefined ? undefined : message[present];
    },
  };
}

/** Lists inside maps are messages with the one repeated field 1, as protobuf has no lists of lists. */
function wrappedList(node: ListNode): ValueForm {
  const item = formOf(node.items.node);
  const itemTag = tagOf(1, item.wireType);
  return {
    wireType: WireType.delimited,
    read: (reader, depth) => {
      const end = delimitedEnd(reader);
      const list: unknown[] = [];
      while (reader.pos < end) {
        countValue();
        const tag = reader.tag();
        if (tag === itemTag) list.push(item.read(reader, depth + 1) ?? null);
        else skipField(reader, tag);
      }
      requireEnd(reader, end);
      return list;
    },
  };
}

/** Reads one value; `undefined` stands for the values of Go types that JSON shows as null. */
export type ValueReader = (reader: Reader, depth: number) => unknown;

/** Wire type of a value type, and the function that reads one value. */
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

/** The prefix of a complete envelope, which an embedded object may have instead of being JSON. */
const envelopeStart = 0x6b;

/** Objects of open type are encoded as JSON text in a message of one field. */
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

/** Readers of values of all types except lists, maps and messages. */
export const valueForms: Readonly<
  Record<Exclude<SchemaNode['type'], 'list' | 'map' | 'message' | 'union'>, ValueForm>
> = {
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
