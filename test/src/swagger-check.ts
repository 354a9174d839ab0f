/** The part of a Swagger 2.0 document that the tests read. */
export interface SwaggerSchema {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, SwaggerSchema>>;
  readonly items?: SwaggerSchema;
  readonly additionalProperties?: SwaggerSchema;
  readonly 'x-kubernetes-group-version-kind'?: readonly {
    readonly group: string;
    readonly version: string;
    readonly kind: string;
  }[];
}

export interface SwaggerOperation {
  readonly operationId: string;
  readonly 'x-kubernetes-action'?: string;
  readonly responses: Readonly<Record<string, { readonly schema?: SwaggerSchema }>>;
}

export interface SwaggerDocument {
  readonly info: { readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, SwaggerOperation>>>>;
  readonly definitions: Readonly<Record<string, SwaggerSchema>>;
}

/** Texts that JSON has for a type which the document calls a string. */
const looseFormats: ReadonlySet<string> = new Set(['int-or-string']);

/**
 * Holds a value against a schema of a document: required fields, types, and so on inward. Gives the paths that do not
 * fit.
 */
export function misfits(document: SwaggerDocument, schema: SwaggerSchema, value: unknown, path = ''): string[] {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.replace('#/definitions/', '');
    // The published documents describe it by its field in Go; on the wire it is the object itself.
    if (name.endsWith('.runtime.RawExtension')) return [];
    const target = document.definitions[name];
    return target === undefined ? [`${path}: no definition ${name}`] : misfits(document, target, value, path);
  }
  switch (schema.type) {
    case 'string':
      return typeof value === 'string' || (looseFormats.has(schema.format ?? '') && typeof value === 'number')
        ? []
        : [`${path}: ${JSON.stringify(value)} is no string`];
    case 'integer':
      return Number.isInteger(value) ? [] : [`${path}: ${JSON.stringify(value)} is no integer`];
    case 'boolean':
      return typeof value === 'boolean' ? [] : [`${path}: ${JSON.stringify(value)} is no boolean`];
    case 'array':
      if (!Array.isArray(value)) return [`${path}: ${JSON.stringify(value)} is no list`];
      return value.flatMap((item, i) => misfits(document, schema.items ?? {}, item, `${path}[${i}]`));
    default:
      return schema.properties || schema.additionalProperties || schema.required
        ? objectMisfits(document, schema, value, path)
        : [];
  }
}

function objectMisfits(document: SwaggerDocument, schema: SwaggerSchema, value: unknown, path: string): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return [`${path}: ${JSON.stringify(value)} is no object`];
  const members = value as Readonly<Record<string, unknown>>;
  const missing = (schema.required ?? [])
    .filter((name) => members[name] === undefined || members[name] === null)
    .map((name) => `${path}.${name}: missing`);
  const wrong = Object.entries(members).flatMap(([name, member]) => {
    const known = schema.properties?.[name] ?? schema.additionalProperties;
    // Null is what Go writes for an instant that is not set.
    return known === undefined || member === null ? [] : misfits(document, known, member, `${path}.${name}`);
  });
  return [...missing, ...wrong];
}

/** The kind that a schema of the document is of, '' when it names none. */
export function kindOfSchema(document: SwaggerDocument, schema: SwaggerSchema | undefined): string {
  const definition = document.definitions[schema?.$ref?.replace('#/definitions/', '') ?? ''];
  return definition?.['x-kubernetes-group-version-kind']?.[0]?.kind ?? '';
}
