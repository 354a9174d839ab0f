import { componentName } from './component-name.ts';
import type { JsonSchema } from './json-schema.ts';
import type { Field, ListTraits, SchemaNode } from './schema.ts';
import { jsonFields, type MessageNode } from './schema-walk.ts';

/** Scalars that published documents show as components of their own. */
const namedScalars = {
  time: {
    name: 'io.k8s.apimachinery.pkg.apis.meta.v1.Time',
    schema: { type: 'string', format: 'date-time', description: 'Instant as RFC 3339 text in whole seconds.' },
  },
  microTime: {
    name: 'io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime',
    schema: { type: 'string', format: 'date-time', description: 'Instant as RFC 3339 text in microseconds.' },
  },
  duration: {
    name: 'io.k8s.apimachinery.pkg.apis.meta.v1.Duration',
    schema: { type: 'string', description: 'Span of time such as 300ms, 1.5h or 2h45m.' },
  },
  quantity: {
    name: 'io.k8s.apimachinery.pkg.api.resource.Quantity',
    schema: {
      oneOf: [{ type: 'string' }, { type: 'number' }],
      description: 'Exact amount with an optional suffix: 500m, 1.5Gi, 12e6. Kept in a canonical form.',
    },
  },
  intOrString: {
    name: 'io.k8s.apimachinery.pkg.util.intstr.IntOrString',
    schema: {
      oneOf: [{ type: 'integer' }, { type: 'string' }],
      format: 'int-or-string',
      description: 'A number, or a text such as a name or a percentage.',
    },
  },
} as const satisfies Readonly<Record<string, { readonly name: string; readonly schema: JsonSchema }>>;

function listTraits(traits: ListTraits): JsonSchema {
  return {
    ...(traits.minItems === undefined ? {} : { minItems: traits.minItems }),
    ...(traits.maxItems === undefined ? {} : { maxItems: traits.maxItems }),
    ...(traits.listMapKeys ? { 'x-kubernetes-list-map-keys': traits.listMapKeys } : {}),
    ...(traits.listType ? { 'x-kubernetes-list-type': traits.listType } : {}),
    ...(traits.patchMergeKey === undefined ? {} : { 'x-kubernetes-patch-merge-key': traits.patchMergeKey }),
    ...(traits.patchStrategy ? { 'x-kubernetes-patch-strategy': traits.patchStrategy } : {}),
  };
}

/**
 * Collects JSON Schemas of messages under their component names. Every message is written once; the messages that it
 * refers to are added automatically. Two different messages of one name get different component names.
 */
export class SchemaComponents {
  readonly #refPrefix: string;
  readonly #names = new Map<MessageNode, string>();
  readonly #taken = new Set<string>();
  readonly #schemas = new Map<string, JsonSchema>();
  readonly #pending: MessageNode[] = [];

  /** @param refPrefix what stands before a component's name in a `$ref`. */
  constructor(refPrefix: string) {
    this.#refPrefix = refPrefix;
  }

  /** All components so far, by name, sorted. */
  all(): Record<string, JsonSchema> {
    this.#writePending();
    return Object.fromEntries([...this.#schemas].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** A reference to a component. */
  refTo(name: string): JsonSchema {
    return { $ref: `${this.#refPrefix}${name}` };
  }

  /** Adds a message and returns its component name. */
  message(node: MessageNode): string {
    const known = this.#names.get(node);
    if (known !== undefined) return known;
    const wanted = componentName(node.name);
    let name = wanted;
    for (let copy = 2; this.#taken.has(name); copy += 1) name = `${wanted}_${copy}`;
    this.#taken.add(name);
    this.#names.set(node, name);
    this.#pending.push(node);
    return name;
  }

  /**
   * Adds a component that is not derived from a message. Properties of an existing component of this name are kept
   * unless `schema` replaces them.
   */
  add(name: string, schema: JsonSchema): void {
    this.#writePending();
    this.#schemas.set(name, { ...this.#schemas.get(name), ...schema });
  }

  /** Schema of a value of this type. */
  of(node: SchemaNode): JsonSchema {
    switch (node.type) {
      case 'string': {
        const { type, values, ...traits } = node;
        return { type, ...(values === undefined ? {} : { enum: values }), ...traits };
      }
      case 'int32':
      case 'int64': {
        const { type, ...traits } = node;
        return { type: 'integer', format: type, ...traits };
      }
      case 'double': {
        const { type, ...traits } = node;
        return { type: 'number', format: type, ...traits };
      }
      case 'bool':
        return { type: 'boolean' };
      case 'bytes':
        return { type: 'string', format: 'byte' };
      case 'raw':
        return { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
      case 'any':
        return { 'x-kubernetes-preserve-unknown-fields': true };
      case 'list':
        return { type: 'array', items: this.of(node.items.node), ...listTraits(node) };
      case 'map':
        return {
          type: 'object',
          additionalProperties: this.of(node.values.node),
          ...(node.mapType ? { 'x-kubernetes-map-type': node.mapType } : {}),
        };
      // As in the OpenAPI documents of Kubernetes, the schema of such a value has no `type`.
      case 'union':
        return { description: `A value of one of several types: ${node.expected}.` };
      case 'message':
        return this.refTo(this.message(node));
      case 'time':
      case 'microTime':
      case 'duration':
      case 'quantity':
      case 'intOrString': {
        const { name, schema } = namedScalars[node.type];
        this.#schemas.set(name, schema);
        return this.refTo(name);
      }
    }
  }

  #field(field: Field<unknown, boolean>): JsonSchema {
    const schema = this.of(field.schema.node);
    const beside: JsonSchema = {
      ...(field.description === '' ? {} : { description: field.description }),
      ...(field.default === undefined ? {} : { default: field.default }),
      ...(field.patchStrategy ? { 'x-kubernetes-patch-strategy': field.patchStrategy } : {}),
    };
    // OpenAPI 3.0 ignores keywords beside a `$ref`, so the reference is wrapped in `allOf`.
    return schema.$ref === undefined ? { ...schema, ...beside } : { allOf: [schema], ...beside };
  }

  #write(node: MessageNode, name: string): void {
    if (node.json !== undefined) {
      this.#writeJsonForm(node, name, node.json.published());
      return;
    }
    const fields = [...jsonFields(node)];
    const required = fields.filter(([, field]) => field.required).map(([fieldName]) => fieldName);
    this.#schemas.set(name, {
      ...(node.description === '' ? {} : { description: node.description }),
      type: 'object',
      properties: Object.fromEntries(fields.map(([fieldName, field]) => [fieldName, this.#field(field)])),
      ...(required.length === 0 ? {} : { required }),
      ...(node.mapType ? { 'x-kubernetes-map-type': node.mapType } : {}),
    });
  }

  #writeJsonForm(node: MessageNode, name: string, published: JsonSchema): void {
    const head = Object.entries(node.fields).filter(([field]) => ['apiVersion', 'kind', 'metadata'].includes(field));
    this.#schemas.set(name, {
      ...published,
      properties: {
        ...Object.fromEntries(head.map(([field, schema]) => [field, this.#field(schema)])),
        ...published.properties,
      },
    });
  }

  #writePending(): void {
    for (let node = this.#pending.pop(); node; node = this.#pending.pop()) this.#write(node, this.message(node));
  }
}
