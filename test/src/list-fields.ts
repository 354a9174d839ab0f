import type { KindDefinition, Schema, SchemaNode } from '@keelson/core';
import { childField, type MessageNode } from '@keelson/core/internal';

/** A list or map at any path of the objects of a kind. */
export interface CollectionField {
  readonly kind: KindDefinition;
  /** Fields from the object down; a list or map on the path has one element. */
  readonly steps: readonly string[];
  readonly node: Extract<SchemaNode, { type: 'list' | 'map' }>;
  /** The field is a map, and `node` is the list that its values are. */
  readonly ofMapValue?: true;
}

/** Fields of a message as its JSON object shows them. */
function jsonFields(node: MessageNode): [string, MessageNode['fields'][string]][] {
  return Object.entries(node.fields).flatMap(([name, field]): [string, MessageNode['fields'][string]][] =>
    field.inline && field.schema.node.type === 'message' ? jsonFields(field.schema.node) : [[name, field]],
  );
}

/** Every list and map field of a kind. A message that contains itself is entered once on each way down. */
export function collectionFields(kind: KindDefinition): CollectionField[] {
  const found: CollectionField[] = [];
  const visit = (node: SchemaNode, steps: readonly string[], open: ReadonlySet<SchemaNode>): void => {
    if (node.type === 'list' || node.type === 'map') {
      found.push({ kind, steps, node });
      const element = elementOf(node).node;
      if (element.type === 'list') found.push({ kind, steps, node: element, ofMapValue: true });
      else visit(element, steps, open);
    } else if (node.type === 'message' && !open.has(node)) {
      const inside = new Set([...open, node]);
      for (const [name, field] of jsonFields(node)) visit(field.schema.node, [...steps, name], inside);
    }
  };
  visit(kind.schema.node, [], new Set());
  return found;
}

export function elementOf(node: CollectionField['node']): Schema<unknown> {
  return node.type === 'list' ? node.items : node.values;
}

/** Texts and numbers of generated values: `i` makes them distinct, a constant makes them equal. */
function scalar(node: SchemaNode, i: number): unknown {
  switch (node.type) {
    case 'string':
      return node.enum?.find((word) => word !== '') ?? `x${i}`;
    case 'int32':
    case 'int64':
    case 'double':
    case 'intOrString':
      return (i % 60_000) + 1;
    case 'bool':
      return true;
    case 'bytes':
      return Buffer.from(`x${i}`).toString('base64');
    case 'time':
      return '2026-01-02T12:00:00Z';
    case 'microTime':
      return '2026-01-02T12:00:00.000000Z';
    case 'duration':
      return '1s';
    case 'quantity':
      return `${(i % 1000) + 1}`;
    case 'raw':
      return { x: i };
    default:
      return `x${i}`;
  }
}

/** Optional scalars that a generated message has besides the fields it must have. */
const optionalScalars = 1;

function isScalar(node: SchemaNode): boolean {
  return node.type !== 'list' && node.type !== 'map' && node.type !== 'message';
}

function messageValue(node: MessageNode, i: number, depth: number): Record<string, unknown> {
  const value: Record<string, unknown> = {};
  let optional = 0;
  for (const [name, field] of jsonFields(node)) {
    const inner = field.schema.node;
    if (field.whenAbsent === 'error' || (isScalar(inner) && optional++ < optionalScalars)) {
      value[name] = elementValue(inner, i, depth + 1);
    }
  }
  return value;
}

/** A small value of a schema that its decoder accepts; distinct for distinct `i` where the type permits. */
export function elementValue(node: SchemaNode, i: number, depth = 0): unknown {
  if (node.type === 'message') return depth > 8 ? {} : messageValue(node, i, depth);
  if (node.type === 'list') return [elementValue(node.items.node, i, depth + 1)];
  if (node.type === 'map') return { x: elementValue(node.values.node, i, depth + 1) };
  return scalar(node, i);
}

/** `count` elements for a collection. */
export function collectionValue(node: CollectionField['node'], count: number, distinct: boolean): unknown {
  const element = elementOf(node).node;
  const values = Array.from({ length: count }, (_, i) => elementValue(element, distinct ? i : 0));
  return node.type === 'list' ? values : Object.fromEntries(values.map((value, i) => [`x${i}`, value]));
}

/** An object of the kind with `value` in the field, and the required fields on the path. */
export function objectWith({ kind, steps, ofMapValue }: CollectionField, value: unknown): Record<string, unknown> {
  const root = descend(kind.schema.node, steps, ofMapValue ? { x: value } : value) as Record<string, unknown>;
  const metadata = { name: 'scan', ...(kind.scope === 'Namespaced' ? { namespace: 'default' } : {}) };
  return {
    ...root,
    apiVersion: kind.apiVersion,
    kind: kind.kind,
    metadata: { ...(steps[0] === 'metadata' ? (root['metadata'] as object) : {}), ...metadata },
  };
}

function descend(node: SchemaNode, steps: readonly string[], value: unknown): unknown {
  const [step, ...rest] = steps;
  if (step === undefined) return value;
  if (node.type === 'list') return [descend(node.items.node, steps, value)];
  if (node.type === 'map') return { x: descend(node.values.node, steps, value) };
  if (node.type !== 'message') throw new Error(`no field ${step} in a ${node.type}`);
  const field = childField({ node }, step);
  if (field === undefined) throw new Error(`no field ${step} in ${node.name}`);
  return { ...messageValue(node, 0, 0), [step]: descend(field.schema.node, rest, value) };
}
