import { setOwn } from '../json/json.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import {
  DecodeContext,
  decodeAny,
  decodeBool,
  decodeBytes,
  decodeDuration,
  decodeIntOrString,
  decodeMicroTime,
  decodeQuantity,
  decodeRaw,
  decodeTime,
  type NodeDecoder,
  numberDecoder,
  type Slot,
  stringDecoder,
} from './decode-value.ts';
import type { Field, JsonSchemaForm, ListTraits, Schema, SchemaNode } from './schema.ts';
import { jsonFields, type MessageNode, messageNode, type UnionNode, zeroOfNode } from './schema-walk.ts';

export { DecodeTypeError, isDecodeTypeError } from './decode-value.ts';

/** The result of decoding a JSON value. */
export interface Decoded<T> {
  /**
   * A new value in canonical form: fields in schema order, defaults and zero values filled in, instants, durations,
   * quantities and base64 normalised, unknown fields gone. Meaningful only when there are no errors. The content of
   * `raw` and `any` fields is shared with the input.
   */
  readonly value: T;
  /** Paths of fields the schema does not know, the first hundred of them. */
  readonly unknownFields: readonly string[];
  /** Violations of the schema, which the transport reports with 422; at most the first hundred. */
  readonly errors: readonly FieldError[];
}

/** Converts a JSON value to the canonical form. Throws `DecodeTypeError` for values of the wrong JSON type. */
export type Decoder<T> = (input: unknown, options?: { readonly keepNulls?: boolean }) => Decoded<T>;

const decoders = new WeakMap<Schema<unknown>['node'], Decoder<unknown>>();

/**
 * The decoder of a schema; compiled on first use and kept as long as the schema. Decoding is pure: the input is
 * never changed, and `decode(decode(x).value)` gives the same value again.
 *
 * `null` for a field means that it is absent, except with `keepNulls` in a kind with a JSON Schema. So do `""` in a
 * field with an enumeration that does not contain it, and zeros and empty collections in a message with a protobuf
 * form, unless the field has `presence`, a default, or is filled in when absent. There is no other leniency: a string
 * where a number belongs is a type error.
 *
 * @throws Error when a static default does not fit its own field, or a pattern is no regular expression.
 */
export function decoderOf<T>(schema: Schema<T>): Decoder<T> {
  const known = decoders.get(schema.node);
  if (known) return known as Decoder<T>;
  const decode = compileNode(schema.node);
  const decoder: Decoder<T> = (input, { keepNulls = false } = {}) => {
    const context = new DecodeContext(keepNulls);
    const value = decode(input, context, '') as T;
    return { value, unknownFields: context.unknownFields, errors: context.errors };
  };
  decoders.set(schema.node, decoder);
  return decoder;
}

type AnyField = Field<unknown, boolean>;

const compiled = new WeakMap<SchemaNode, NodeDecoder>();

/**
 * Decodes a static default once, so that an invalid one is detected when the kind is first used and not by a later
 * request.
 */
function checkDefault(name: string, field: AnyField, decode: NodeDecoder): unknown {
  const context = new DecodeContext();
  try {
    const value = decode(field.default, context, name);
    const [error] = context.errors;
    if (!error) return value;
    throw new Error(error.message);
  } catch (cause) {
    throw new Error(`the default of field ${name} violates its own schema`, { cause });
  }
}

/** The value of an absent field; undefined for fields that remain absent. */
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

/**
 * Which values of a field mean that it is absent. In a message with a protobuf form these are the zero values that
 * protobuf does not distinguish from absence, so that an object is the same in both forms, and Go clients, which omit
 * them, change nothing when they write it back.
 */
function absentValues({ schema: { node }, ...field }: AnyField): Pick<Slot, 'absentValue' | 'emptyIsAbsent'> {
  if (node.type === 'string' && node.enum !== undefined && !node.enum.includes('')) return { absentValue: '' };
  const zeroIsAbsent = field.whenAbsent === 'absent' && field.default === undefined && field.presence !== true;
  if (!zeroIsAbsent || field.number === undefined) return {};
  switch (node.type) {
    case 'string':
    case 'bytes':
      return { absentValue: '' };
    case 'int32':
    case 'int64':
    case 'double':
      return { absentValue: 0 };
    case 'bool':
      return { absentValue: false };
    case 'list':
    case 'map':
      return { emptyIsAbsent: node.type };
    default:
      return {};
  }
}

function slotOf(name: string, field: AnyField, index: number): Slot {
  const decode = compileNode(field.schema.node);
  const whenAbsent = absentRule(name, field, decode);
  return { name, index, decode, ...absentValues(field), ...(whenAbsent ? { whenAbsent } : {}) };
}

function compileMessage(node: MessageNode): NodeDecoder {
  return messageDecoder([...jsonFields(node)].map(([name, field], index) => slotOf(name, field, index)));
}

function unionDecoder({ message, fieldOf, expected }: UnionNode): NodeDecoder {
  const decoders = new Map<string, NodeDecoder>();
  const fields = messageNode(message)?.fields ?? {};
  return (input, context, key) => {
    const name = fieldOf(input);
    const field = name === undefined ? undefined : fields[name];
    if (name === undefined || field === undefined) throw context.typeError(key, expected, input);
    let decode = decoders.get(name);
    if (decode === undefined) {
      decode = compileNode(field.schema.node);
      decoders.set(name, decode);
    }
    return decode(input, context, key);
  };
}

/** Type and metadata are decoded as those of any object; the rest by the schema that arrived as JSON Schema. */
function jsonFormDecoder(node: MessageNode, form: JsonSchemaForm): NodeDecoder {
  const head = ['kind', 'apiVersion', 'metadata'].flatMap((name, index) => {
    const field = node.fields[name];
    return field ? [slotOf(name, field, index)] : [];
  });
  return (input, context, key) => {
    if (typeof input !== 'object' || input === null || Array.isArray(input))
      throw context.typeError(key, 'object', input);
    const source = input as Readonly<Record<string, unknown>>;
    const out: Record<string, unknown> = {};
    context.enter(key, false);
    for (const { name, decode } of head) {
      const value = source[name];
      if (value !== undefined && value !== null) out[name] = decode(value, context, name);
    }
    context.leave();
    return Object.assign(
      out,
      form.complete(source, (path) => context.unknownPath(path), context.keepNulls),
    );
  };
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
    case 'union':
      return unionDecoder(node);
    case 'message':
      return node.json === undefined ? compileMessage(node) : jsonFormDecoder(node, node.json);
  }
}

/** The decoder of a node, made on first use and kept as long as the node. Recursive schemas are supported. */
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

/** Sorts the slots from `base` to `top` into canonical order. There are never more than the message has fields. */
function sortFrom(slots: Slot[], base: number, top: number): void {
  for (let end = base + 1; end < top; end += 1) {
    const slot = slots[end];
    if (!slot) return;
    let at = end - 1;
    for (let other = slots[at]; at >= base && other && other.index > slot.index; other = slots[at]) {
      slots[at + 1] = other;
      at -= 1;
    }
    slots[at + 1] = slot;
  }
}

function isEmpty(value: unknown, { emptyIsAbsent }: Slot): boolean {
  if (emptyIsAbsent === undefined || typeof value !== 'object') return false;
  if (emptyIsAbsent === 'list') return Array.isArray(value) && value.length === 0;
  if (Array.isArray(value)) return false;
  for (const _ in value) return false;
  return true;
}

/** Puts the fields that are present on the scratch stack, in canonical order; notes the unknown ones. */
function collect(
  source: Readonly<Record<string, unknown>>,
  byName: ReadonlyMap<string, Slot>,
  context: DecodeContext,
  base: number,
): void {
  const { slots } = context;
  let last = -1;
  let sorted = true;
  for (const name of Object.keys(source)) {
    const value = source[name];
    const slot = byName.get(name);
    if (slot === undefined) {
      if (value !== undefined) context.unknown(name);
      continue;
    }
    if (value === null || value === undefined || value === slot.absentValue || isEmpty(value, slot)) continue;
    if (slot.index < last) sorted = false;
    last = slot.index;
    slots[context.top] = slot;
    context.top += 1;
  }
  if (!sorted) sortFrom(slots, base, context.top);
}

function fill(out: Record<string, unknown>, slot: Slot, context: DecodeContext): void {
  const value = slot.whenAbsent?.(context);
  if (value !== undefined) out[slot.name] = value;
}

/**
 * Decoder of messages. The cost follows the fields that are present, not those that could be: wide messages with
 * few fields set are the rule.
 */
export function messageDecoder(fields: readonly Slot[]): NodeDecoder {
  const byName: ReadonlyMap<string, Slot> = new Map(fields.map((slot) => [slot.name, slot]));
  const filled = fields.filter((slot) => slot.whenAbsent !== undefined);
  return (input, context, key) => {
    if (typeof input !== 'object' || input === null || Array.isArray(input))
      throw context.typeError(key, 'object', input);
    const source = input as Readonly<Record<string, unknown>>;
    const { slots } = context;
    const base = context.top;
    context.enter(key, false);
    collect(source, byName, context, base);
    const end = context.top;
    const out: Record<string, unknown> = {};
    let next = 0;
    for (let at = base; at < end; at += 1) {
      const slot = slots[at] as Slot;
      for (let absent = filled[next]; absent && absent.index <= slot.index; absent = filled[next]) {
        if (absent.index < slot.index) fill(out, absent, context);
        next += 1;
      }
      const value = slot.decode(source[slot.name], context, slot.name);
      if (value !== null) out[slot.name] = value;
      else fill(out, slot, context);
    }
    for (let absent = filled[next]; absent; absent = filled[next]) {
      fill(out, absent, context);
      next += 1;
    }
    context.top = base;
    context.leave();
    return out;
  };
}

/** Decoder of lists. A null element is the element type's zero value, as Go servers read it. */
export function listDecoder(items: NodeDecoder, zero: () => unknown, traits: ListTraits): NodeDecoder {
  const { minItems, maxItems } = traits;
  return (input, context, key) => {
    if (!Array.isArray(input)) throw context.typeError(key, 'array', input);
    if (minItems !== undefined && input.length < minItems) {
      context.report(fieldError.invalid(context.path(key), input.length, `must have at least ${minItems} items`));
    } else if (maxItems !== undefined && input.length > maxItems) {
      context.report(fieldError.tooMany(context.path(key), input.length, maxItems));
    }
    context.enter(key, false);
    const out: unknown[] = [];
    for (let index = 0; index < input.length; index += 1) {
      const value: unknown = input[index] ?? zero();
      out.push(value === null ? null : items(value, context, index));
    }
    context.leave();
    return out;
  };
}

/** Decoder of maps. Keys stay in input order; a null value is the value type's zero value, as Go servers read it. */
export function mapDecoder(values: NodeDecoder, zero: () => unknown): NodeDecoder {
  return (input, context, key) => {
    if (typeof input !== 'object' || input === null || Array.isArray(input))
      throw context.typeError(key, 'object', input);
    context.enter(key, true);
    const source = input as Readonly<Record<string, unknown>>;
    const out: Record<string, unknown> = {};
    for (const name of Object.keys(source)) {
      const value = source[name] ?? zero();
      setOwn(out, name, value === null ? null : values(value, context, name));
    }
    context.leave();
    return out;
  };
}
