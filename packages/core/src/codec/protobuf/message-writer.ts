import type { Writer } from 'protobufjs/minimal.js';
import type { Field, SchemaNode } from '../../kind/schema.ts';
import type { ListNode, MapNode, MessageNode } from '../../kind/schema-walk.ts';
import { type ValueOutput, type ValueWriter, valueOutputs } from './value-writers.ts';
import { tagOf, WireType } from './wire.ts';

type Plain = Readonly<Record<string, unknown>>;

/** Writes the fields of a message that a JSON object has. */
export interface MessageWriter {
  /** By JSON name. */
  readonly fields: Map<string, ValueWriter>;
  /** Inlined messages, which take their fields out of the same JSON object. */
  readonly inlined: { readonly tag: number; readonly message: MessageWriter }[];
}

const compiled = new WeakMap<MessageNode, MessageWriter>();

/**
 * Writes every field that the object has, also zero values: Go readers take absence and zero for the same wherever a
 * field is not a pointer, and distinguish them where it is one. Names that are not in the schema are omitted.
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

/** The writers of a message, made on first use. Recursive schemas are fine. */
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

/** Each element with a tag of its own, numbers too, as the generated Go code of Kubernetes encodes them. */
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

/** How a value is written that is neither a list nor a map of a message. */
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
