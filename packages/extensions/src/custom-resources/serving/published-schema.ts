import type { JsonSchema } from '@keelson/core/internal';
import type { CustomResourceDefinitionVersion, JsonSchemaProps } from '@keelson/kinds';

const metaFields = ['apiVersion', 'kind', 'metadata'];

/** The fields of embedded objects, which every definition has without stating them. */
const embeddedFields = {
  apiVersion: { type: 'string', description: 'Group and version of the embedded object.' },
  kind: { type: 'string', description: 'Kind of the embedded object.' },
  metadata: {
    allOf: [{ $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' }],
    description: 'Name, labels and other metadata of the embedded object.',
  },
};

/**
 * The schema of a version in OpenAPI documents, without the fields that every object has. Embedded objects keep these
 * fields, because kubectl and other clients expect them.
 * Source: `apiextensions-apiserver/pkg/controller/openapi/builder`.
 */
export function publishedSchema({ schema, selectableFields = [] }: CustomResourceDefinitionVersion): JsonSchema {
  const { properties, ...rest } = schema?.openAPIV3Schema ?? {};
  const own = Object.entries(properties ?? {}).filter(([name]) => !metaFields.includes(name));
  const fields = selectableFields.map(({ jsonPath }) => ({ fieldPath: jsonPath.replace(/^\./, '') }));
  return {
    ...published({ ...rest, ...(properties ? { properties: Object.fromEntries(own) } : {}) }),
    ...(fields.length > 0 ? { 'x-kubernetes-selectable-fields': fields } : {}),
  } as JsonSchema;
}

function published(props: JsonSchemaProps): Readonly<Record<string, unknown>> {
  const { properties, items, additionalProperties, required = [] } = props;
  const scalar = props['x-kubernetes-int-or-string'] && props.anyOf === undefined && props.allOf === undefined;
  const fields = {
    ...Object.fromEntries(Object.entries(properties ?? {}).map(([name, child]) => [name, published(child)])),
    ...(props['x-kubernetes-embedded-resource'] ? embeddedFields : {}),
  };
  const always = props['x-kubernetes-embedded-resource'] ? ['kind', 'apiVersion'] : [];
  return {
    ...props,
    ...(Object.keys(fields).length > 0 ? { properties: fields } : {}),
    ...(items !== undefined && !Array.isArray(items) ? { items: published(items) } : {}),
    ...(typeof additionalProperties === 'object' ? { additionalProperties: published(additionalProperties) } : {}),
    ...(scalar ? { anyOf: [{ type: 'integer' }, { type: 'string' }] } : {}),
    ...(always.length > 0 ? { required: [...new Set([...required, ...always])] } : {}),
  };
}
