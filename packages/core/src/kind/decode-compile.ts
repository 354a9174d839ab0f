import { fieldError } from '../meta/field-error.ts';
import { listDecoder, mapDecoder } from './decode-collection.ts';
import { DecodeContext, type NodeDecoder, type Slot } from './decode-context.ts';
import { messageDecoder } from './decode-message.ts';
import { decodeBool, numberDecoder, stringDecoder } from './decode-scalar.ts';
import {
  decodeAny,
  decodeBytes,
  decodeDuration,
  decodeIntOrString,
  decodeMicroTime,
  decodeQuantity,
  decodeRaw,
  decodeTime,
} from './decode-text.ts';
import type { Field, SchemaNode } from './schema.ts';
import { jsonFields, type MessageNode } from './schema-walk.ts';
import { zeroOfNode } from './zero-value.ts';

type AnyField = Field<unknown, boolean>;

const compiled = new WeakMap<SchemaNode, NodeDecoder>();

/** Decodes a static default once, so that a wrong one shows when the kind is first used and not on some request. */
function checkDefault(name: string, field: AnyField, decode: NodeDecoder): unknown {
  const context = new DecodeContext();
  try {
    const value = decode(field.default, context, name);
    const [error] = context.errors;
    if (!error) return value;
    throw new Error(error.message);
  } catch (cause) {
    throw new Error(`the default of field ${name} breaks its own schema`, { cause });
  }
}

/** What fills in for an absent field, or undefined for fields that just stay away. */
function absentRule(name: string, field: AnyField, decode: NodeDecoder): Slot['whenAbsent'] {
  const node = field.schema.node;
  if (field.default !== undefined) {
    const value = checkDefault(name, field, decode);
    return typeof value === 'object' ? (context) => decode(field.default, context, name) : () => value;
  }
  if (field.whenAbsent === 'error') {
    return (context) => {
      context.report(fieldError.required(context.path(name)));
      return undefined;
    };
  }
  if (field.whenAbsent === 'absent') return undefined;
  return node.type === 'message' ? (context) => decode({}, context, name) : () => zeroOfNode(node);
}

function isClosedSetWithoutEmpty(node: SchemaNode): boolean {
  return node.type === 'string' && node.enum !== undefined && !node.enum.includes('');
}

function slotOf(name: string, field: AnyField, index: number): Slot {
  const decode = compileNode(field.schema.node);
  const whenAbsent = absentRule(name, field, decode);
  const emptyIsAbsent = isClosedSetWithoutEmpty(field.schema.node);
  return { name, index, decode, emptyIsAbsent, ...(whenAbsent ? { whenAbsent } : {}) };
}

function compileMessage(node: MessageNode): NodeDecoder {
  return messageDecoder([...jsonFields(node)].map(([name, field], index) => slotOf(name, field, index)));
}

function build(node: SchemaNode): NodeDecoder {
  switch (node.type) {
    case 'string':
      return stringDecoder(node);
    case 'int32':
    case 'int64':
    case 'double':
      return numberDecoder(node.type, node);
    case 'bool':
      return decodeBool;
    case 'bytes':
      return decodeBytes;
    case 'time':
      return decodeTime;
    case 'microTime':
      return decodeMicroTime;
    case 'duration':
      return decodeDuration;
    case 'quantity':
      return decodeQuantity;
    case 'intOrString':
      return decodeIntOrString;
    case 'raw':
      return decodeRaw;
    case 'any':
      return decodeAny;
    case 'list':
      return listDecoder(compileNode(node.items.node), () => zeroOfNode(node.items.node), node);
    case 'map':
      return mapDecoder(compileNode(node.values.node), () => zeroOfNode(node.values.node));
    case 'message':
      return compileMessage(node);
  }
}

/** The decoder of a node, made on first use and kept as long as the node. Recursive schemas are fine. */
export function compileNode(node: SchemaNode): NodeDecoder {
  const known = compiled.get(node);
  if (known) return known;
  let real: NodeDecoder | undefined;
  compiled.set(node, (input, context, key) => (real ?? decodeAny)(input, context, key));
  try {
    real = build(node);
  } catch (error) {
    compiled.delete(node);
    throw error;
  }
  compiled.set(node, real);
  return real;
}
