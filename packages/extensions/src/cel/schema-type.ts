import {
  boolType,
  bytesType,
  type CelField,
  type CelType,
  doubleType,
  durationType,
  dynType,
  intType,
  type ListSemantics,
  listType,
  mapType,
  stringType,
  structType,
  timestampType,
} from './base/types.ts';

/** The parts of a JSON schema that determine types. */
export interface TypeSchema {
  readonly type?: string | undefined;
  readonly format?: string | undefined;
  readonly items?: TypeSchema | undefined;
  readonly properties?: Readonly<Record<string, TypeSchema>> | undefined;
  readonly additionalProperties?: TypeSchema | boolean | undefined;
  readonly 'x-kubernetes-int-or-string'?: boolean | undefined;
  readonly 'x-kubernetes-embedded-resource'?: boolean | undefined;
  readonly 'x-kubernetes-list-type'?: string | undefined;
  readonly 'x-kubernetes-list-map-keys'?: readonly string[] | undefined;
}

const keywords = new Set(
  (
    'true false null in as break const continue else for function if import let loop package namespace return var ' +
    'void while'
  ).split(' '),
);

const escapes: Readonly<Record<string, string>> = {
  __: '__underscores__',
  '.': '__dot__',
  '-': '__dash__',
  '/': '__slash__',
};

/** The name of a property in expressions; undefined when none can be written. */
export function escapeName(property: string): string | undefined {
  if (keywords.has(property)) return `__${property}__`;
  if (!/^[a-zA-Z_./-][a-zA-Z0-9_./-]*$/.test(property)) return undefined;
  return property.replace(/__|[./-]/g, (part) => escapes[part] ?? part);
}

const textTypes: Readonly<Record<string, CelType>> = {
  byte: bytesType,
  date: timestampType,
  'date-time': timestampType,
  duration: durationType,
};

/** The fields that every object has: the schema does not need to have them. */
const rootProperties: Readonly<Record<string, TypeSchema>> = {
  apiVersion: { type: 'string' },
  kind: { type: 'string' },
  metadata: { type: 'object', properties: { name: { type: 'string' }, generateName: { type: 'string' } } },
};

function listSemantics(schema: TypeSchema): ListSemantics | undefined {
  const type = schema['x-kubernetes-list-type'];
  if (type === 'set') return { type };
  return type === 'map' ? { type, keys: schema['x-kubernetes-list-map-keys'] ?? [] } : undefined;
}

/**
 * The type of values of a structural schema. Undefined: expressions cannot use them, because nothing is known about
 * them. `root` is set for the schema of a whole object.
 */
export function schemaType(schema: TypeSchema, root = false): CelType | undefined {
  if (schema['x-kubernetes-int-or-string']) return dynType;
  const whole = root || schema['x-kubernetes-embedded-resource'] === true;
  switch (whole ? 'object' : schema.type) {
    case 'array': {
      const element = schema.items && schemaType(schema.items);
      return element && listType(element, listSemantics(schema));
    }
    case 'object': {
      const { additionalProperties: values } = schema;
      if (typeof values === 'object' && !whole) {
        const value = schemaType(values);
        return value && mapType(stringType, value);
      }
      return structType('object', fieldsOf({ ...schema.properties, ...(whole ? rootProperties : {}) }));
    }
    case 'string':
      return textTypes[schema.format ?? ''] ?? stringType;
    case 'boolean':
      return boolType;
    case 'number':
      return doubleType;
    case 'integer':
      return intType;
    default:
      return undefined;
  }
}

function fieldsOf(properties: Readonly<Record<string, TypeSchema>>): ReadonlyMap<string, CelField> {
  const fields = new Map<string, CelField>();
  for (const [property, schema] of Object.entries(properties)) {
    const type = schemaType(schema);
    const name = escapeName(property);
    if (type !== undefined && name !== undefined) fields.set(name, { property, type });
  }
  return fields;
}
