import type { Writer } from 'protobufjs/minimal.js';
import { jsonText } from '../../json/json.ts';
import type { Field, SchemaNode } from '../../kind/schema.ts';
import type { ListNode, MapNode, MessageNode } from '../../kind/schema-walk.ts';
import { parseDuration } from '../../meta/duration.ts';
import { parseInstant } from '../../meta/time.ts';
import { int64Bytes, tagOf, WireType } from './wire.ts';

type Plain = Readonly<Record<string, unknown>>;

/** Writes the fields of a message that a JSON object has. */
export interface MessageWriter {
  /** Writers of the fields, by the name of the field in JSON. */
  readonly fields: Map<string, ValueWriter>;
  /** Inlined messages, whose fields are in the same JSON object. */
  readonly inlined: { readonly tag: number; readonly message: MessageWriter }[];
}

const compiled = new WeakMap<MessageNode, MessageWriter>();

/**
 * Writes every field that the object has, also zero values. For a Go field that is not a pointer, readers do not
 * distinguish a zero value from an absent one; for a pointer field they do. Names that are not in the schema are
 * omitted.
 */
export function writeFields(message: MessageWriter, writer: Writer, value: unknown): void {
  if (typeof value !== 'object' || value === null) throw new TypeError('expected an object');
  const { fields, inlined } = message;
  for (const name in value) {
    const write = fields.get(name);
    if (write === undefined) continue;
    const member = (value as Plain)[name];
    if (member !== undefined && member !== null) write(writer, member);
  }
  for (const { tag, message: inner } of inlined) {
    writer.uint32(tag).fork();
    writeFields(inner, writer, value);
    writer.ldelim();
  }
}

/** The writers of a message, made on first use. Recursive schemas are supported. */
export function messageWriter(node: MessageNode): MessageWriter {
  const known = compiled.get(node);
  if (known !== undefined) return known;
  const message: MessageWriter = { fields: new Map(), inlined: [] };
  compiled.set(node, message);
  try {
    for (const [name, field] of Object.entries(node.fields)) {
      if (field.number === undefined) {
        if (field.jsonOnly) continue;
        throw new Error(`message ${node.name} has no protobuf form: field ${name} has no number`);
      }
      addField(message, name, field, field.number);
    }
  } catch (error) {
    compiled.delete(node);
    throw error;
  }
  return message;
}

function addField(message: MessageWriter, name: string, field: Field<unknown, boolean>, number: number): void {
  const node = field.schema.node;
  if (node.type === 'message' && field.inline) {
    message.inlined.push({ tag: tagOf(number, WireType.delimited), message: messageWriter(node) });
  } else if (node.type === 'list') message.fields.set(name, listWriter(number, node));
  else if (node.type === 'map') message.fields.set(name, mapWriter(number, node));
  else {
    const { wireType, write } = outputOf(node);
    const tag = tagOf(number, wireType);
    message.fields.set(name, (writer, value) => {
      writer.uint32(tag);
      write(writer, value);
    });
  }
}

/**
 * Writes a list with a tag before each element. Numbers are not packed, because the generated Go code of Kubernetes
 * does not pack them either.
 */
function listWriter(number: number, node: ListNode): ValueWriter {
  const { wireType, write } = outputOf(node.items.node);
  const tag = tagOf(number, wireType);
  return (writer, value) => {
    if (!Array.isArray(value)) throw new TypeError('expected a list');
    for (const item of value) {
      writer.uint32(tag);
      write(writer, item);
    }
  };
}

const keyTag = tagOf(1, WireType.delimited);

/** Entries in the order of the object, so that reading them gives the same JSON again. */
function mapWriter(number: number, node: MapNode): ValueWriter {
  const tag = tagOf(number, WireType.delimited);
  const { wireType, write } = outputOf(node.values.node);
  const valueTag = tagOf(2, wireType);
  return (writer, value) => {
    if (typeof value !== 'object' || value === null) throw new TypeError('expected a map');
    for (const key in value) {
      writer.uint32(tag).fork().uint32(keyTag).string(key).uint32(valueTag);
      write(writer, (value as Plain)[key]);
      writer.ldelim();
    }
  };
}

/** The writer of a value that is neither a list nor a map of a message. */
function outputOf(node: SchemaNode): ValueOutput {
  if (node.type === 'message') {
    const message = messageWriter(node);
    return {
      wireType: WireType.delimited,
      write: (writer, value) => {
        writer.fork();
        writeFields(message, writer, value);
        writer.ldelim();
      },
    };
  }
  if (node.type === 'union') {
    const { wireType, write } = outputOf(node.message.node);
    return { wireType, write: (writer, value) => write(writer, { [node.fieldOf(value) ?? '']: value }) };
  }
  if (node.type === 'list') return wrappedList(node);
  if (node.type === 'map') throw new Error('a map inside a list or a map has no protobuf form');
  return valueOutputs[node.type];
}

/** Lists inside maps are messages with the one repeated field 1, as protobuf has no lists of lists. */
function wrappedList(node: ListNode): ValueOutput {
  const writeItems = listWriter(1, node);
  return {
    wireType: WireType.delimited,
    write: (writer, value) => {
      writer.fork();
      writeItems(writer, value);
      writer.ldelim();
    },
  };
}

/** Writes one value without its tag. @throws TypeError for a value that the schema does not allow. */
export type ValueWriter = (writer: Writer, value: unknown) => void;

/** Wire type of a value type, and the function that writes one value. */
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

/**
 * Writes the type, the integer and the string, even those that are unset, as the generated Go code of Kubernetes does.
 */
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

/** Writers of values of all types except lists, maps and messages. */
export const valueOutputs: Readonly<
  Record<Exclude<SchemaNode['type'], 'list' | 'map' | 'message' | 'union'>, ValueOutput>
> = {
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
