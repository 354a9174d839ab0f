import type { Schema, SchemaNode } from './schema.ts';

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
      return null;
  }
}

/** {@link zeroOfNode} of a schema. The zero value of a message is `{}`; decode it to have its own fields filled in. */
export function zeroValue(schema: Schema<unknown>): unknown {
  return zeroOfNode(schema.node);
}
