import type { Field, Schema, SchemaNode } from './schema.ts';

/** The message variant of {@link SchemaNode}. */
export type MessageNode = Extract<SchemaNode, { type: 'message' }>;
/** The list variant of {@link SchemaNode}. */
export type ListNode = Extract<SchemaNode, { type: 'list' }>;
/** The map variant of {@link SchemaNode}. */
export type MapNode = Extract<SchemaNode, { type: 'map' }>;

/** The union variant of {@link SchemaNode}. */
export type UnionNode = Extract<SchemaNode, { type: 'union' }>;

type AnyField = Field<unknown, boolean>;

/** The node as a message, or undefined for every other type. */
export function messageNode(schema: Schema<unknown>): MessageNode | undefined {
  return schema.node.type === 'message' ? schema.node : undefined;
}

const flattened = new WeakMap<MessageNode, ReadonlyMap<string, AnyField>>();

/** The fields of a message as its JSON object shows them: inlined messages are spread at their place. Computed once. */
export function jsonFields(message: MessageNode): ReadonlyMap<string, AnyField> {
  const known = flattened.get(message);
  if (known) return known;
  const fields = new Map<string, AnyField>();
  for (const [name, field] of Object.entries(message.fields)) {
    const inner = field.inline ? messageNode(field.schema) : undefined;
    if (!inner) fields.set(name, field);
    else for (const [innerName, innerField] of jsonFields(inner)) fields.set(innerName, innerField);
  }
  flattened.set(message, fields);
  return fields;
}

/** The field that a JSON key of a message names, also when it comes from an inlined message. */
export function childField(schema: Schema<unknown>, fieldName: string): AnyField | undefined {
  const message = messageNode(schema);
  return message ? jsonFields(message).get(fieldName) : undefined;
}

/**
 * The schema below a JSON key: the field of a message (inlined messages are seen through), or the values of a map.
 * `undefined` when the schema does not describe that key, as inside `raw` and `any`.
 */
export function childSchema(schema: Schema<unknown>, fieldName: string): Schema<unknown> | undefined {
  if (schema.node.type === 'map') return schema.node.values;
  return childField(schema, fieldName)?.schema;
}

/**
 * What Go servers write for an unset value of this type, before nested fields are filled in: `""`, 0,
 * false, `[]`, `{}`; null for instants and for any-typed values. Fresh on every call.
 */
export function zeroOfNode(node: SchemaNode): unknown {
  switch (node.type) {
    case 'string':
    case 'bytes':
      return '';
    case 'int32':
    case 'int64':
    case 'double':
    case 'intOrString':
      return 0;
    case 'bool':
      return false;
    case 'duration':
      return '0s';
    case 'quantity':
      return '0';
    case 'list':
      return [];
    case 'map':
    case 'message':
    case 'raw':
      return {};
    case 'time':
    case 'microTime':
    case 'any':
    case 'union':
      return null;
  }
}

/** {@link zeroOfNode} of a schema. The zero value of a message is `{}`; decode it to have its own fields filled in. */
export function zeroValue(schema: Schema<unknown>): unknown {
  return zeroOfNode(schema.node);
}
