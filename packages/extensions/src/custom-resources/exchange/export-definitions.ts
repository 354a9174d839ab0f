import type { Field, KindDefinition, SchemaNode } from '@keelson/core';
import { messageNode, storageKindOf, zeroValue } from '@keelson/core/internal';
import type { CustomResourceDefinition, CustomResourceDefinitionVersion, JsonSchemaProps } from '@keelson/kinds';
import { compareVersions } from '../serving/names.ts';

/** The exported definitions, with notes about what they cannot express. */
export interface ExportedDefinitions {
  readonly definitions: readonly CustomResourceDefinition[];
  readonly notes: readonly string[];
}

const metaFields = ['apiVersion', 'kind', 'metadata'];
const quantityPattern =
  '^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$';

/** Exports kinds that are declared with `defineKind` as CustomResourceDefinitions, one for each resource. */
export function exportDefinitions(kinds: readonly KindDefinition[]): ExportedDefinitions {
  const notes: string[] = [];
  const resources = new Map<string, KindDefinition[]>();
  for (const kind of kinds) {
    if (kind.virtual) {
      notes.push(`${kind.kind} of ${kind.apiVersion} is virtual and has no definition`);
      continue;
    }
    const id = `${kind.names.plural}.${kind.group}`;
    resources.set(id, [...(resources.get(id) ?? []), kind]);
  }
  return { definitions: [...resources].map(([name, versions]) => definitionOf(name, versions, notes)), notes };
}

function definitionOf(name: string, kinds: readonly KindDefinition[], notes: string[]): CustomResourceDefinition {
  const [first] = kinds as [KindDefinition];
  const stored = storageKindOf(first);
  const { plural, singular, shortNames, categories } = first.names;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name },
    spec: {
      group: first.group,
      names: {
        ...{ plural, singular, kind: first.kind, listKind: first.listKind },
        ...(shortNames.length > 0 ? { shortNames: [...shortNames] } : {}),
        ...(categories.length > 0 ? { categories: [...categories] } : {}),
      },
      scope: first.scope,
      versions: [...kinds]
        .sort((a, b) => compareVersions(a.version, b.version))
        .map((kind) => versionOf(kind, kind.version === stored.version, notes)),
    },
  };
}

function versionOf(kind: KindDefinition, storage: boolean, notes: string[]): CustomResourceDefinitionVersion {
  const { strategy, columns, selectableFields, subresources, deprecationWarning } = kind;
  const where = `${kind.kind} of ${kind.apiVersion}`;
  const hooks = [
    'default',
    'validate',
    'validateCreate',
    'validateUpdate',
    'prepareForCreate',
    'prepareForUpdate',
  ] as const;
  const lost = hooks.filter((hook) => strategy[hook] !== undefined);
  if (lost.length > 0) notes.push(`${where}: the functions ${lost.join(', ')} are not part of a definition`);
  if (columns.length > 0) notes.push(`${where}: the columns are functions and not part of a definition`);
  if (kind.storage)
    notes.push(`${where}: the conversion to ${kind.storage.kind.apiVersion} is not part of a definition`);
  const fields = [...selectableFields.keys()].filter((path) => !path.startsWith('metadata.'));
  const status = subresources.some(({ name }) => name === 'status');
  const scale = subresources.some(({ name }) => name === 'scale');
  for (const { name } of subresources)
    if (name !== 'status' && name !== 'scale')
      notes.push(`${where}: the subresource ${name} is not part of a definition`);
  return {
    name: kind.version,
    served: true,
    storage,
    ...(deprecationWarning === undefined ? {} : { deprecated: true, deprecationWarning }),
    schema: { openAPIV3Schema: rootSchema(kind) },
    ...(status || scale
      ? {
          subresources: {
            ...(status ? { status: {} } : {}),
            ...(scale ? { scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' } } : {}),
          },
        }
      : {}),
    ...(fields.length > 0 ? { selectableFields: fields.map((path) => ({ jsonPath: `.${path}` })) } : {}),
  } as CustomResourceDefinitionVersion;
}

function rootSchema(kind: KindDefinition): JsonSchemaProps {
  const node = messageNode(kind.schema);
  if (node === undefined) return { type: 'object' };
  const fields = Object.fromEntries(Object.entries(node.fields).filter(([name]) => !metaFields.includes(name)));
  const { properties, ...rest } = objectSchema({ ...node, fields }, []);
  const text = { type: 'string' };
  return { ...rest, properties: { apiVersion: text, kind: text, metadata: { type: 'object' }, ...properties } };
}

type Message = Extract<SchemaNode, { type: 'message' }>;

function objectSchema(node: Message, above: readonly SchemaNode[]): JsonSchemaProps {
  const properties: Record<string, JsonSchemaProps> = {};
  const required: string[] = [];
  const add = (message: Message) => {
    for (const [name, field] of Object.entries(message.fields)) {
      const inner = field.inline ? messageNode(field.schema) : undefined;
      if (inner) add(inner);
      else {
        properties[name] = fieldSchema(field, [...above, node]);
        if (field.whenAbsent === 'error') required.push(name);
      }
    }
  };
  add(node);
  return {
    type: 'object',
    ...(node.description === '' ? {} : { description: node.description }),
    properties,
    ...(required.length > 0 ? { required } : {}),
    ...(node.mapType ? { 'x-kubernetes-map-type': node.mapType } : {}),
  };
}

function fieldSchema(field: Field<unknown, boolean>, above: readonly SchemaNode[]): JsonSchemaProps {
  const { format, ...schema } = schemaOf(field.schema.node, above);
  const zero = field.whenAbsent === 'zero' && schema.required === undefined ? zeroValue(field.schema) : undefined;
  const fallback = field.default ?? zero ?? undefined;
  // In Kubernetes an empty text is not of the format byte.
  const isEmptyBytes = format === 'byte' && fallback === '';
  return {
    ...schema,
    ...(format === undefined || isEmptyBytes ? {} : { format }),
    ...(field.description === '' ? {} : { description: field.description }),
    ...(fallback === undefined ? {} : { default: fallback }),
  };
}

function schemaOf(node: SchemaNode, above: readonly SchemaNode[]): JsonSchemaProps {
  switch (node.type) {
    case 'string': {
      const { type, enum: values, ...traits } = node;
      return { type, ...traits, ...(values ? { enum: [...values] } : {}) };
    }
    case 'int32':
    case 'int64':
      return { ...node, type: 'integer', format: node.type };
    case 'double':
      return { ...node, type: 'number', format: 'double' };
    case 'bool':
      return { type: 'boolean' };
    case 'bytes':
      return { type: 'string', format: 'byte' };
    case 'time':
    case 'microTime':
      return { type: 'string', format: 'date-time' };
    case 'duration':
      return { type: 'string' };
    case 'quantity':
      return { 'x-kubernetes-int-or-string': true, pattern: quantityPattern };
    case 'intOrString':
      return { 'x-kubernetes-int-or-string': true };
    case 'raw':
      return { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
    case 'any':
    case 'union':
      return { 'x-kubernetes-preserve-unknown-fields': true };
    case 'list': {
      const { listType, listMapKeys, minItems, maxItems } = node;
      const items = schemaOf(node.items.node, above);
      // A CustomResourceDefinition is valid only if all list map keys are required or have a default.
      const hasKeys = (listMapKeys ?? []).every(
        (key) => items.required?.includes(key) || items.properties?.[key]?.default !== undefined,
      );
      return {
        type: 'array',
        items,
        ...(minItems === undefined ? {} : { minItems }),
        ...(maxItems === undefined ? {} : { maxItems }),
        ...(listType && hasKeys ? { 'x-kubernetes-list-type': listType } : {}),
        ...(listMapKeys && hasKeys ? { 'x-kubernetes-list-map-keys': [...listMapKeys] } : {}),
      };
    }
    case 'map':
      return {
        type: 'object',
        additionalProperties: schemaOf(node.values.node, above),
        ...(node.mapType ? { 'x-kubernetes-map-type': node.mapType } : {}),
      };
    case 'message':
      // A schema in a CustomResourceDefinition cannot be recursive.
      if (above.includes(node)) return { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
      return objectSchema(node, above);
  }
}
