import type { OpenApiSchema } from './open-api-types.ts';
import type { SwaggerSchema } from './swagger-types.ts';

const oldPrefix = '#/components/schemas/';
const newPrefix = '#/definitions/';

function reference(ref: string): string {
  return ref.startsWith(oldPrefix) ? `${newPrefix}${ref.slice(oldPrefix.length)}` : ref;
}

function mapped(schemas: Readonly<Record<string, OpenApiSchema>>): Record<string, SwaggerSchema> {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, swaggerSchema(schema)]));
}

/**
 * The Swagger form of an OpenAPI schema. Swagger has no alternatives: a quantity or a number-or-text is a string there,
 * for which clients also accept a number. A reference may have other keywords beside it, so that `allOf` is not needed;
 * every reader ignores a default beside a reference, so it is omitted.
 */
export function swaggerSchema(schema: OpenApiSchema): SwaggerSchema {
  const { $ref, allOf, oneOf, anyOf: _any, not: _not, nullable: _null, ...others } = schema;
  const { properties, additionalProperties, items, ...rest } = others;
  if (rest['x-kubernetes-preserve-unknown-fields'] === true) {
    // Clients that read Swagger take declared fields as the only ones: kubectl would report all others.
    const { 'x-kubernetes-group-version-kind': versions } = rest;
    return versions === undefined ? rest : { type: 'object', 'x-kubernetes-group-version-kind': versions };
  }
  if ($ref !== undefined) return { $ref: reference($ref), ...rest };
  const [only] = allOf ?? [];
  if (only?.$ref !== undefined && allOf?.length === 1) {
    const { default: _, ...beside } = rest;
    return { $ref: reference(only.$ref), ...beside };
  }
  return {
    ...rest,
    ...(oneOf && rest.type === undefined ? { type: 'string' as const } : {}),
    ...(allOf ? { allOf: allOf.map(swaggerSchema) } : {}),
    ...(properties ? { properties: mapped(properties) } : {}),
    ...(additionalProperties
      ? { additionalProperties: additionalProperties === true || swaggerSchema(additionalProperties) }
      : {}),
    ...(items ? { items: swaggerSchema(items) } : {}),
  };
}

/** {@link swaggerSchema} of each schema, names kept. */
export const swaggerSchemas = mapped;
