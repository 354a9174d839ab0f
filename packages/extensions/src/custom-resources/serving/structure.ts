import { optional, type Schema, type SchemaNode, s } from '@keelson/core';
import type { JsonSchemaProps } from '@keelson/kinds';

type Fields = Extract<SchemaNode, { type: 'message' }>['fields'];

/**
 * The structure of a JSON Schema, for code that processes the schemas of kinds: which lists are sets or maps, and which
 * objects are atomic. The structure does not restrict values.
 */
export function structureOf(props: JsonSchemaProps): Schema<unknown> {
  return { node: nodeOf(props) };
}

function nodeOf(props: JsonSchemaProps): SchemaNode {
  const { type, properties, items, additionalProperties } = props;
  const atomic = props['x-kubernetes-map-type'] === 'atomic' ? ({ mapType: 'atomic' } as const) : undefined;
  if (props['x-kubernetes-int-or-string']) return { type: 'any' };
  if (properties !== undefined) return new StructureNode(props, atomic ?? {}) as unknown as SchemaNode;
  if (type === 'object' && (additionalProperties || atomic))
    return {
      type: 'map',
      values: typeof additionalProperties === 'object' ? structureOf(additionalProperties) : s.any(),
      ...atomic,
    };
  if (type === 'array' && items !== undefined && !Array.isArray(items)) {
    const listType = props['x-kubernetes-list-type'];
    const listMapKeys = props['x-kubernetes-list-map-keys'];
    return {
      type: 'list',
      items: structureOf(items),
      ...(listType === 'set' || listType === 'map' || listType === 'atomic' ? { listType } : {}),
      ...(listMapKeys ? { listMapKeys } : {}),
    };
  }
  if (type === 'string') return { type: 'string' };
  if (type === 'boolean') return { type: 'bool' };
  return { type: 'any' };
}

/** An optional field with its default. Defaults are needed to complete the keys of list elements. */
function fieldOf(props: JsonSchemaProps): Fields[string] {
  const field = optional(structureOf(props));
  return props.default === undefined || props.default === null ? field : { ...field, default: props.default };
}

/** A message schema whose fields are created when they are first read. */
class StructureNode {
  readonly type = 'message';
  readonly name = 'custom';
  readonly description = '';
  readonly #props: JsonSchemaProps;
  #fields: Fields | undefined;

  constructor(props: JsonSchemaProps, traits: object) {
    this.#props = props;
    Object.assign(this, traits);
  }

  get fields(): Fields {
    this.#fields ??= Object.fromEntries(
      Object.entries(this.#props.properties ?? {})
        .filter(([name]) => name !== '' && name !== '__proto__')
        .map(([name, child]) => [name, fieldOf(child)]),
    );
    return this.#fields;
  }
}
