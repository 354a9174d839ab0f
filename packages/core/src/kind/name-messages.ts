import type { GroupVersionKind } from '../meta/types.ts';
import type { Field, Schema, SchemaNode } from './schema.ts';
import type { MessageNode } from './schema-walk.ts';

/**
 * Prefix of the names of a group's messages: `example.com.ops` for the group `ops.example.com`. The names of schema
 * components have its first two words in the other order: `com.example.ops`.
 */
function messagePrefix(group: string): string {
  const [first, second, ...rest] = (group === '' ? 'core' : group).split('.').reverse();
  return (second === undefined ? [first] : [second, first, ...rest]).join('.');
}

const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

function namedNode(node: SchemaNode, name: string): SchemaNode {
  switch (node.type) {
    case 'list':
      return withChild(node, node.items, namedSchema(node.items, name), (items) => ({ ...node, items }));
    case 'map':
      return withChild(node, node.values, namedSchema(node.values, name), (values) => ({ ...node, values }));
    case 'message':
      return node.name === '' ? namedMessage(node, name) : node;
    default:
      return node;
  }
}

function withChild(
  node: SchemaNode,
  before: Schema<unknown>,
  after: Schema<unknown>,
  make: (child: Schema<unknown>) => SchemaNode,
): SchemaNode {
  return before === after ? node : make(after);
}

function namedSchema(schema: Schema<unknown>, name: string): Schema<unknown> {
  const node = namedNode(schema.node, name);
  return node === schema.node ? schema : { node };
}

function namedMessage(message: MessageNode, name: string): MessageNode {
  const fields = Object.entries(message.fields).map(([key, field]): [string, Field<unknown, boolean>] => [
    key,
    { ...field, schema: namedSchema(field.schema, `${name}${capital(key)}`) },
  ]);
  return { ...message, name, fields: Object.fromEntries(fields) };
}

/**
 * Names the messages that were declared without a name (`s.object`) after the kind and the path to them: `BackupSpec`,
 * `BackupSpecSchedule`. Messages that have a name stay as they are.
 */
export function nameMessages(root: MessageNode, { group, version, kind }: GroupVersionKind): MessageNode {
  return root.name === '' ? namedMessage(root, `${messagePrefix(group)}.${version}.${kind}`) : root;
}
