import type { KindDefinition } from '../kind/kind-definition.ts';
import { openApiSchemas } from '../kind/open-api-schema.ts';
import type { GroupVersionKind } from '../meta/types.ts';
import { metaSchemas, refTo } from './meta-schemas.ts';
import type { OpenApiSchema } from './open-api-types.ts';

/** The schemas of a document, and where the schema of a kind is among them. */
export interface Components {
  readonly schemas: Readonly<Record<string, OpenApiSchema>>;
  /** Reference to the schema of a kind. Throws when the document has none, which is a defect of this package. */
  refOf(kind: GroupVersionKind): OpenApiSchema;
}

function keyOf({ group, version, kind }: GroupVersionKind): string {
  return `${group}/${version}/${kind}`;
}

/**
 * Schemas for documents about these kinds: the kinds, their lists, the bodies of their subresources, and what all of
 * them use. They are found by the kinds that they name, because messages with equal names get numbers as suffixes.
 */
export function componentsOf(kinds: readonly KindDefinition[]): Components {
  const schemas: Record<string, OpenApiSchema> = { ...openApiSchemas(kinds), ...metaSchemas };
  const names = new Map<string, string>();
  for (const [name, schema] of Object.entries(schemas)) {
    for (const shown of schema['x-kubernetes-group-version-kind'] ?? []) names.set(keyOf(shown), name);
  }
  return {
    schemas,
    refOf(kind) {
      const name = names.get(keyOf(kind));
      if (name === undefined) throw new Error(`no schema for ${keyOf(kind)}`);
      return refTo(name);
    },
  };
}
