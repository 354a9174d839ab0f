import {
  boolType,
  bytesType,
  type CelField,
  type CelType,
  doubleType,
  durationType,
  dynType,
  intType,
  keywords,
  type ListSemantics,
  listType,
  mapType,
  stringType,
  structType,
  timestampType,
} from './base/types.ts';

/** The fields of a JSON schema that determine CEL types and sizes. */
export interface TypeSchema {
  readonly type?: string | undefined;
  readonly format?: string | undefined;
  readonly maxLength?: number | undefined;
  readonly maxItems?: number | undefined;
  readonly maxProperties?: number | undefined;
  readonly enum?: readonly unknown[] | undefined;
  readonly required?: readonly string[] | undefined;
  readonly default?: unknown;
  readonly items?: TypeSchema | undefined;
  readonly properties?: Readonly<Record<string, TypeSchema>> | undefined;
  readonly additionalProperties?: TypeSchema | boolean | undefined;
  readonly 'x-kubernetes-int-or-string'?: boolean | undefined;
  readonly 'x-kubernetes-embedded-resource'?: boolean | undefined;
  readonly 'x-kubernetes-list-type'?: string | undefined;
  readonly 'x-kubernetes-list-map-keys'?: readonly string[] | undefined;
}

const escapes: Readonly<Record<string, string>> = {
  __: '__underscores__',
  '.': '__dot__',
  '-': '__dash__',
  '/': '__slash__',
};

/** The name of a property in expressions; undefined when expressions cannot contain it. */
export function escapeName(property: string): string | undefined {
  if (keywords.has(property)) return `__${property}__`;
  if (!/^[a-zA-Z_./-][a-zA-Z0-9_./-]*$/.test(property)) return undefined;
  return property.replace(/__|[./-]/g, (part) => escapes[part] ?? part);
}

/** Maximum size of a request in bytes, as in Kubernetes. */
export const maxRequestBytes = 3 * 1024 * 1024;
/** Maximum length of a string in a request, without its quotation marks. */
const longestText = maxRequestBytes - 2;

const sized = (type: CelType, maxElements: number, minBytes: number): CelType => ({ ...type, maxElements, minBytes });

const textTypes: Readonly<Record<string, CelType>> = {
  date: sized(timestampType, 12, 12),
  'date-time': sized(timestampType, 32, 21),
  duration: sized(durationType, 32, 3),
};

function textType({ format = '', maxLength, enum: values = [] }: TypeSchema): CelType {
  const known = textTypes[format];
  if (known) return known;
  if (format === 'byte') return sized(bytesType, Math.max(0, maxLength ?? longestText), 2);
  if (maxLength !== undefined) return sized(stringType, longestOf(maxLength), 2);
  const lengths = values.map((value) => (typeof value === 'string' ? Buffer.byteLength(value) : 0));
  return sized(stringType, lengths.length > 0 ? Math.max(...lengths) : longestText, 2);
}

/** Maximum number of bytes of a string: a code point has at most four bytes. */
function longestOf(codePoints: number): number {
  return Math.max(0, codePoints) * 4;
}

/** The maximum number of values of a type in a request, with `overhead` additional bytes for each value. */
function mostOf({ minBytes = 0 }: CelType, overhead: number): number {
  return Math.floor(longestText / (minBytes + overhead));
}

const anyType = sized(dynType, longestText, 1);
const scalarTypes: Readonly<Record<string, CelType>> = {
  boolean: sized(boolType, 0, 4),
  number: sized(doubleType, 0, 1),
  integer: sized(intType, 0, 1),
};

/** Fields of every object, which are available even if the schema does not contain them. */
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

/** True if the schema itself describes the name fields of the metadata. Only then its metadata is used. */
function describesNames({ properties = {} }: TypeSchema): boolean {
  const { kind, apiVersion, metadata } = properties;
  const { name, generateName } = metadata?.properties ?? {};
  const texts = [kind, apiVersion, name, generateName];
  return metadata?.type === 'object' && texts.every((schema) => schema?.type === 'string');
}

/**
 * The CEL type for values of a structural schema. Undefined if the schema says nothing about the values, so that
 * expressions cannot use them. `root` is true for the schema of a complete object.
 */
export function schemaType(schema: TypeSchema, root = false): CelType | undefined {
  if (schema['x-kubernetes-int-or-string']) {
    return schema.maxLength === undefined ? anyType : sized(dynType, longestOf(schema.maxLength), 1);
  }
  const whole = root || schema['x-kubernetes-embedded-resource'] === true;
  switch (whole ? 'object' : schema.type) {
    case 'array': {
      const element = schema.items && schemaType(schema.items);
      if (element === undefined) return undefined;
      const most = schema.maxItems === undefined ? mostOf(element, 1) : Math.max(0, schema.maxItems);
      return sized(listType(element, listSemantics(schema)), most, 2);
    }
    case 'object': {
      const { additionalProperties: values } = schema;
      if (typeof values === 'object' && !whole) {
        const value = schemaType(values);
        if (value === undefined) return undefined;
        const most = schema.maxProperties === undefined ? mostOf(value, 6) : Math.max(0, schema.maxProperties);
        return sized(mapType(stringType, value), most, 2);
      }
      return objectType(whole && !describesNames(schema) ? { ...schema, properties: withNames(schema) } : schema);
    }
    case 'string':
      return textType(schema);
    default:
      return scalarTypes[schema.type ?? ''];
  }
}

function withNames({ properties }: TypeSchema): Readonly<Record<string, TypeSchema>> {
  return { ...properties, ...rootProperties };
}

function objectType({ properties = {}, required = [] }: TypeSchema): CelType {
  const fields = new Map<string, CelField>();
  let minBytes = 2;
  for (const [property, schema] of Object.entries(properties)) {
    const type = schemaType(schema);
    const name = escapeName(property);
    if (type === undefined) continue;
    if (name !== undefined) fields.set(name, { property, type });
    if (required.includes(property) && schema.default === undefined) {
      minBytes += Buffer.byteLength(property) + (type.minBytes ?? 0) + 4;
    }
  }
  return sized(structType('object', fields), 0, minBytes);
}
