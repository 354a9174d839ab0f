import type { JsonSchemaProps } from '@keelson/kinds';
import { Pattern } from './pattern.ts';

/**
 * A JSON Schema of a custom resource definition, prepared for use. Child nodes are created when they are first needed,
 * so that a large definition costs nothing before objects use its fields.
 */
export class SchemaNode {
  readonly props: JsonSchemaProps;
  /** The permitted JSON types of values; empty for any type. */
  readonly types: readonly string[];
  readonly preserves: boolean;
  readonly embedded: boolean;
  readonly #children = new Map<string, SchemaNode>();
  readonly #anyScalar: boolean;
  #pattern: Pattern | undefined;
  #defaults: readonly string[] | undefined;

  /** @param anyScalar true to permit all types in int-or-string fields, as in the defaults of a schema */
  constructor(props: JsonSchemaProps, anyScalar = false) {
    this.props = props;
    this.#anyScalar = anyScalar;
    const intOrString = anyScalar ? [] : ['integer', 'string'];
    this.types = props['x-kubernetes-int-or-string'] ? intOrString : props.type ? [props.type] : [];
    this.preserves = props['x-kubernetes-preserve-unknown-fields'] === true;
    this.embedded = props['x-kubernetes-embedded-resource'] === true;
  }

  property(name: string): SchemaNode | undefined {
    const { properties } = this.props;
    if (properties === undefined || !Object.hasOwn(properties, name)) return undefined;
    return this.#child(`.${name}`, properties[name]);
  }

  get items(): SchemaNode | undefined {
    const { items } = this.props;
    return this.#child('[]', Array.isArray(items) ? undefined : items);
  }

  /** Schema of the values of a map; undefined also for `additionalProperties: true`, which has no schema. */
  get values(): SchemaNode | undefined {
    const { additionalProperties: values } = this.props;
    return this.#child('{}', typeof values === 'object' ? values : undefined);
  }

  /** True if `additionalProperties` is present and not false. */
  get isMap(): boolean {
    const { additionalProperties: values } = this.props;
    return values !== undefined && values !== false;
  }

  /** The schema of a field, or of the values of a map. */
  field(name: string): SchemaNode | undefined {
    return this.property(name) ?? this.values;
  }

  alternatives(word: 'allOf' | 'anyOf' | 'oneOf'): readonly SchemaNode[] {
    return (this.props[word] ?? []).map((props, index) => this.#child(`${word}${index}`, props) as SchemaNode);
  }

  get not(): SchemaNode | undefined {
    return this.#child('not', this.props.not);
  }

  get pattern(): Pattern | undefined {
    const { pattern } = this.props;
    if (pattern !== undefined && pattern !== '') this.#pattern ??= new Pattern(pattern);
    return this.#pattern;
  }

  /** Names of the properties that have a default. */
  get defaultedProperties(): readonly string[] {
    this.#defaults ??= Object.entries(this.props.properties ?? {}).flatMap(([name, { default: value }]) =>
      value === undefined ? [] : [name],
    );
    return this.#defaults;
  }

  #child(key: string, props: JsonSchemaProps | undefined): SchemaNode | undefined {
    if (props === undefined) return undefined;
    let child = this.#children.get(key);
    if (child === undefined) {
      child = new SchemaNode(props, this.#anyScalar);
      this.#children.set(key, child);
    }
    return child;
  }
}

/**
 * Calls `visit` for a schema and all its subschemas, with their paths in the definition. Stops when `visit` returns
 * true.
 */
export function someSchema(
  props: JsonSchemaProps,
  path: string,
  visit: (props: JsonSchemaProps, path: string) => boolean,
): boolean {
  return visit(props, path) || childSchemas(props, path).some(([child, at]) => someSchema(child, at, visit));
}

/** The schemas directly below a schema, with their paths. */
export function childSchemas(props: JsonSchemaProps, path: string): [JsonSchemaProps, string][] {
  const { items, additionalProperties, additionalItems, not } = props;
  const children: [JsonSchemaProps, string][] = [];
  if (Array.isArray(items))
    children.push(...items.map((item, i): [JsonSchemaProps, string] => [item, `${path}.items[${i}]`]));
  else if (items !== undefined) children.push([items, `${path}.items`]);
  for (const word of ['properties', 'patternProperties', 'definitions'] as const) {
    for (const [name, child] of Object.entries(props[word] ?? {})) children.push([child, `${path}.${word}[${name}]`]);
  }
  for (const [name, child] of Object.entries(props.dependencies ?? {})) {
    if (!Array.isArray(child)) children.push([child, `${path}.dependencies[${name}]`]);
  }
  if (typeof additionalProperties === 'object') children.push([additionalProperties, `${path}.additionalProperties`]);
  if (typeof additionalItems === 'object') children.push([additionalItems, `${path}.additionalItems`]);
  for (const word of ['allOf', 'anyOf', 'oneOf'] as const) {
    for (const [i, child] of (props[word] ?? []).entries()) children.push([child, `${path}.${word}[${i}]`]);
  }
  if (not !== undefined) children.push([not, `${path}.not`]);
  return children;
}
