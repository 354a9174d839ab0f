import {
  type Column,
  type ColumnType,
  defineKind,
  type FieldError,
  fieldError,
  humanDuration,
  type KindDefinition,
  type KubeObject,
  optional,
  type Schema,
  type SelectableField,
  type Strategy,
  s,
  timeMs,
} from '@keelson/core';
import type { AnyObject, JsonSchema } from '@keelson/core/internal';
import type { CustomResourceDefinition, CustomResourceDefinitionVersion, JsonSchemaProps } from '@keelson/kinds';
import { completeObject } from '../schema/complete.ts';
import { parseFieldPath } from '../schema/field-path.ts';
import { validateEmbedded, validateListTypes } from '../schema/list-types.ts';
import type { RuleChecks } from '../schema/rules.ts';
import { SchemaNode } from '../schema/schema-node.ts';
import { validateValue } from '../schema/validate.ts';
import { parseJsonPath, printedValue, readJsonPath } from './json-path.ts';
import { publishedSchema } from './published-schema.ts';
import { scaleErrors, scaleOf } from './scale.ts';
import { structureOf } from './structure.ts';

type Column_ = NonNullable<CustomResourceDefinitionVersion['additionalPrinterColumns']>[number];

const metaFields = ['apiVersion', 'kind', 'metadata'];

/** The kind for one version of a definition. */
export function customKind(
  definition: CustomResourceDefinition,
  version: CustomResourceDefinitionVersion,
  rulesOf: (schema: JsonSchemaProps) => RuleChecks | undefined,
): KindDefinition<KubeObject> {
  const { group, scope } = definition.spec;
  const names = definition.status?.acceptedNames ?? definition.spec.names;
  const { kind } = names;
  const apiVersion = `${group}/${version.name}`;
  const props = version.schema?.openAPIV3Schema ?? {};
  const node = new SchemaNode(props);
  const status = version.subresources?.status !== undefined;
  const { scale } = version.subresources ?? {};
  const strategy = customStrategy(node, rulesOf(props), status, scale && ((object) => scaleErrors(scale, object)));
  const defined = defineKind({
    group,
    version: version.name,
    kind,
    scope: scope === 'Cluster' ? 'Cluster' : 'Namespaced',
    names: {
      plural: names.plural,
      singular: names.singular ?? kind.toLowerCase(),
      shortNames: names.shortNames ?? [],
      categories: names.categories ?? [],
    },
    schema: objectSchema(node, status, scale !== undefined, () => publishedSchema(version)),
    strategy,
    subresources: [
      ...(status ? [{ type: 'status', name: 'status' } as const] : []),
      ...(scale ? [scaleOf(scale)] : []),
    ],
    columns: columnsOf(version.additionalPrinterColumns),
    selectableFields: (version.selectableFields ?? []).flatMap(({ jsonPath }) => selectableField(jsonPath)),
    structural: false,
  }) as KindDefinition;
  const deprecationWarning = version.deprecated
    ? (version.deprecationWarning ?? `${apiVersion} ${kind} is deprecated`)
    : undefined;
  return Object.freeze({
    ...defined,
    listKind: names.listKind ?? `${kind}List`,
    ...(definition.spec.conversion?.strategy === 'Webhook' ? { convertedByWebhook: true } : {}),
    ...(deprecationWarning === undefined ? {} : { deprecationWarning }),
  });
}

function objectSchema(
  node: SchemaNode,
  status: boolean,
  scale: boolean,
  published: () => JsonSchema,
): Schema<AnyObject> {
  const { node: structure } = structureOf(node.props);
  const fields = { ...(structure.type === 'message' ? structure.fields : {}) };
  for (const name of metaFields) delete fields[name];
  // The fields of enabled subresources exist even if the schema only preserves unknown fields.
  if (status) fields['status'] ??= optional(s.any());
  if (scale) fields['spec'] ??= optional(s.any());
  return {
    node: {
      type: 'message',
      name: '',
      description: node.props.description ?? '',
      fields,
      json: {
        complete: (object, unknown, keepNulls) => completeObject(object, node, unknown, keepNulls),
        published,
      },
    },
  };
}

type Check = (object: KubeObject) => FieldError[];

const blocking: readonly string[] = [
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
];
const unchecked = fieldError.invalid(
  '<nil>',
  null,
  'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
);

/** Source: `apiextensions-apiserver/pkg/registry/customresource/strategy.go`. */
function customStrategy(
  node: SchemaNode,
  rules: RuleChecks | undefined,
  status: boolean,
  scale: Check = () => [],
): Strategy {
  const errorsOf = (object: KubeObject, old: KubeObject | undefined): FieldError[] => {
    const errors = [...validateValue(object, node, '', old), ...scale(object)];
    errors.push(...unlessBefore(validateEmbedded(object, node), () => old && validateEmbedded(old, node)));
    errors.push(...unlessBefore(validateListTypes(object, node), () => old && validateListTypes(old, node)));
    if (rules === undefined) return errors;
    if (errors.some(({ reason }) => blocking.includes(reason))) return [...errors, unchecked];
    return [...errors, ...rules(object, old)];
  };
  const statusErrors = (object: KubeObject, old: KubeObject): FieldError[] => {
    const schema = node.property('status');
    const [value, before] = [(object as AnyObject)['status'], (old as AnyObject)['status']];
    if (value === undefined || schema === undefined) return [];
    const errors = [
      ...validateValue(value, schema, '.status', before),
      ...unlessBefore(validateEmbedded(value, schema, 'status'), () => validateEmbedded(before, schema, 'status')),
      ...unlessBefore(validateListTypes(value, schema, 'status'), () => validateListTypes(before, schema, 'status')),
      ...scale(object),
    ];
    if (rules === undefined) return errors;
    if (errors.some(({ reason }) => blocking.includes(reason))) return [...errors, unchecked];
    return [...errors, ...rules(object, old)];
  };
  return {
    allowUnconditionalUpdate: false,
    finalizerRule: 'qualifiedName',
    generation: status ? 'spec' : 'content',
    validateCreate: (object: KubeObject) => errorsOf(object, undefined),
    validateUpdate: errorsOf,
    ...(status ? { statusKeepsMetadata: true, validateStatusUpdate: statusErrors } : {}),
    warnings: finalizerWarnings,
  };
}

/** Accepts errors of an update if the old object has errors of the same check. */
function unlessBefore(errors: FieldError[], before: () => readonly FieldError[] | undefined): FieldError[] {
  return errors.length > 0 && (before()?.length ?? 0) > 0 ? [] : errors;
}

const standardFinalizers = ['orphan', 'foregroundDeletion', 'kubernetes'];

function finalizerWarnings({ metadata }: KubeObject): string[] {
  const advice = 'to avoid accidental conflicts with other finalizer writers';
  return (metadata?.finalizers ?? [])
    .filter((name) => !name.includes('/') && !standardFinalizers.includes(name))
    .map((name) => {
      const form = name.includes('.') ? 'finalizer name including a path (/)' : 'finalizer name';
      return `metadata.finalizers: ${JSON.stringify(name)}: prefer a domain-qualified ${form} ${advice}`;
    });
}

function selectableField(jsonPath: string): SelectableField<KubeObject>[] {
  const names = parseFieldPath(jsonPath);
  if (typeof names === 'string') return [];
  const read = (object: KubeObject): string => {
    let value: unknown = object;
    for (const name of names) value = (value as Record<string, unknown> | undefined | null)?.[name];
    return value === undefined || value === null ? '' : String(value);
  };
  return [[jsonPath.replace(/^\./, ''), read]];
}

const nameColumn: Column<KubeObject> = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Name of the object, unique among its kind in the namespace.',
  priority: 0,
  value: ({ metadata }) => metadata?.name ?? '',
};
const ageColumn: Column_ = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };

function columnsOf(columns: readonly Column_[] | undefined): Column<KubeObject>[] {
  const given = columns === undefined || columns.length === 0 ? [ageColumn] : columns;
  return [nameColumn, ...given.map(columnOf)];
}

function columnOf({ name, type, format, description, priority = 0, jsonPath }: Column_): Column<KubeObject> {
  const path = parseJsonPath(jsonPath);
  return {
    name,
    type: type as ColumnType,
    ...(format ? { format } : {}),
    description: description || `Custom resource definition column (in JSONPath format): ${jsonPath}`,
    priority,
    value: (object, { now }) => {
      const [value] = path === undefined ? [] : readJsonPath(path, object);
      return value === undefined || value === null ? null : cellOf(type, value, now);
    },
  };
}

function cellOf(type: string, value: unknown, now: Date): string | number | boolean | null {
  switch (type) {
    case 'string':
      return printedValue(value);
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : typeof value === 'bigint' ? Number(value) : null;
    case 'number':
      return typeof value === 'number' || typeof value === 'bigint' ? Number(value) : null;
    case 'boolean':
      return typeof value === 'boolean' ? value : null;
    case 'date': {
      const at = typeof value === 'string' ? timeMs(value) : undefined;
      return at === undefined ? '<invalid>' : humanDuration(now.getTime() - at);
    }
    default:
      return null;
  }
}
