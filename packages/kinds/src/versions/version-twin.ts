import type { Field, Schema, SchemaNode } from '@keelson/core';

/**
 * Returns a function that copies message schemas of one API version into another version. A copy has the same fields,
 * and every message in it whose name starts with `from` has the same name with `to` as its start. All copies made by
 * one function share the copies of nested messages. The messages in `kept` are used as they are.
 */
export function versionTwin(
  from: string,
  to: string,
  kept: readonly Schema<unknown>[] = [],
): <T>(schema: Schema<T>) => Schema<T> {
  const copies = new Map<SchemaNode, Schema<unknown>>(kept.map((schema) => [schema.node, schema]));

  function copyOf(schema: Schema<unknown>): Schema<unknown> {
    const { node } = schema;
    switch (node.type) {
      case 'list':
        return rebuilt(schema, node.items, (items) => ({ ...node, items }));
      case 'map':
        return rebuilt(schema, node.values, (values) => ({ ...node, values }));
      case 'message': {
        if (!node.name.startsWith(from)) return schema;
        let copy = copies.get(node);
        if (!copy) {
          const fields = Object.entries(node.fields).map(([key, field]): [string, Field<unknown, boolean>] => [
            key,
            { ...field, schema: copyOf(field.schema) },
          ]);
          copy = { node: { ...node, name: to + node.name.slice(from.length), fields: Object.fromEntries(fields) } };
          copies.set(node, copy);
        }
        return copy;
      }
      default:
        return schema;
    }
  }

  function rebuilt(
    schema: Schema<unknown>,
    child: Schema<unknown>,
    build: (child: Schema<unknown>) => SchemaNode,
  ): Schema<unknown> {
    const copy = copyOf(child);
    return copy === child ? schema : { node: build(copy) };
  }

  return <T>(schema: Schema<T>) => copyOf(schema) as Schema<T>;
}
