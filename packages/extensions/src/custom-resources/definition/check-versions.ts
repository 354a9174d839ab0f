import { addErrors, dns1035LabelErrors, type FieldError, fieldError } from '@keelson/core';
import { equalJson } from '@keelson/core/internal';
import type { CustomResourceDefinitionVersion, JsonSchemaProps } from '@keelson/kinds';
import { schemaAt } from '../schema/field-path.ts';
import { checkWords } from './check-schema.ts';
import { checkStructural } from './check-structural.ts';

/** An additional check of a schema, for example of the expressions in it. */
export type SchemaCheck = (schema: JsonSchemaProps, path: string, old: JsonSchemaProps | undefined) => FieldError[];

const columnTypes = ['boolean', 'date', 'integer', 'number', 'string'];
const columnFormats = ['byte', 'date', 'date-time', 'double', 'float', 'int32', 'int64', 'password'];
const maxSelectableFields = 8;

/**
 * Validates all versions. Errors in a part that is equal in all versions are reported once, with a path that does not
 * contain the version, as in Kubernetes.
 */
export function checkVersions(
  versions: readonly CustomResourceDefinitionVersion[],
  old: readonly CustomResourceDefinitionVersion[],
  checkRules: SchemaCheck,
): FieldError[] {
  const errors: FieldError[] = [];
  const shared = <K extends keyof CustomResourceDefinitionVersion>(word: K): boolean =>
    versions.length > 0 && versions.every((version) => equalJson(version[word], versions[0]?.[word]));
  const once = {
    schema: shared('schema'),
    subresources: shared('subresources'),
    columns: shared('additionalPrinterColumns'),
  };
  const sharedFields = shared('selectableFields');
  for (const [i, version] of versions.entries()) {
    const path = `spec.versions[${i}]`;
    if (dns1035LabelErrors(version.name).length > 0)
      errors.push(fieldError.invalid(`${path}.name`, version.name, dns1035LabelErrors(version.name).join(',')));
    if (version.schema?.openAPIV3Schema === undefined)
      errors.push(fieldError.required(`${path}.schema.openAPIV3Schema`));
    addErrors(errors, deprecationErrors(version, `${path}.deprecationWarning`));
    const before = old.find(({ name }) => name === version.name)?.schema?.openAPIV3Schema;
    if (!once.schema || i === 0)
      addErrors(errors, checkSchema(version, once.schema ? 'spec.validation' : `${path}.schema`, before, checkRules));
    if (!once.subresources || i === 0)
      addErrors(errors, checkSubresources(version, once.subresources ? 'spec.subresources' : `${path}.subresources`));
    if (!once.columns || i === 0) {
      const at = once.columns ? 'spec.additionalPrinterColumns' : `${path}.additionalPrinterColumns`;
      for (const [n, column] of (version.additionalPrinterColumns ?? []).entries())
        addErrors(errors, checkColumn(column, `${at}[${n}]`));
    }
    if (!sharedFields || i === 0)
      addErrors(errors, checkSelectable(version, sharedFields ? 'spec.selectableFields' : `${path}.selectableFields`));
  }
  const names = versions.map(({ name }) => name);
  if (new Set(names).size < names.length)
    errors.push(fieldError.invalid('spec.versions', names, 'must contain unique version names'));
  if (versions.filter(({ storage }) => storage).length !== 1)
    errors.push(fieldError.invalid('spec.versions', names, 'must have exactly one version marked as storage version'));
  return errors;
}

const printable = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;

function deprecationErrors(
  { deprecated, deprecationWarning: text }: CustomResourceDefinitionVersion,
  path: string,
): FieldError[] {
  if (text === undefined) return [];
  if (!deprecated) return [fieldError.invalid(path, text, 'can only be set for deprecated versions')];
  const errors: FieldError[] = [];
  if (Buffer.byteLength(text) > 256) errors.push(fieldError.invalid(path, text, 'must be <= 256 characters long'));
  if (text === '') errors.push(fieldError.invalid(path, text, 'must not be an empty string'));
  let index = 0;
  for (const character of text) {
    if (!printable.test(character)) {
      const detail = `must only contain printable UTF-8 characters; non-printable character found at index ${index}`;
      errors.push(fieldError.invalid(path, text, detail));
      break;
    }
    index += Buffer.byteLength(character);
  }
  return errors;
}

/**
 * Schema fields that are permitted at the root of a schema with the status subresource, in the format of Kubernetes.
 */
const rootWords =
  '[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems ' +
  'MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations]';
const forbiddenAtRoot = [
  'default',
  'enum',
  'maxProperties',
  'minProperties',
  'allOf',
  'oneOf',
  'anyOf',
  'not',
] as const;
const emptyAtRoot = ['additionalProperties', 'x-kubernetes-embedded-resource', 'x-kubernetes-int-or-string'] as const;
const textAtRoot = ['x-kubernetes-list-type', 'x-kubernetes-map-type', 'x-kubernetes-list-map-keys'] as const;

function checkSchema(
  version: CustomResourceDefinitionVersion,
  path: string,
  old: JsonSchemaProps | undefined,
  checkRules: SchemaCheck,
): FieldError[] {
  const schema = version.schema?.openAPIV3Schema;
  if (schema === undefined) return [];
  const at = `${path}.openAPIV3Schema`;
  const errors: FieldError[] = [];
  if (version.subresources?.status !== undefined) {
    const { type = '' } = schema;
    const forbidden = [...forbiddenAtRoot, ...emptyAtRoot, ...textAtRoot].some((word) => schema[word] !== undefined);
    if (type !== 'object') {
      const detail =
        'only "object" is allowed as the type at the root of the schema if the status subresource is enabled';
      errors.push(fieldError.invalid(`${at}.type`, type, detail));
    } else if (forbidden) {
      const detail = `only ${rootWords} fields are allowed at the root of the schema if the status subresource is enabled`;
      errors.push(fieldError.invalid(at, schema, detail));
    }
  }
  if (schema.nullable) errors.push(fieldError.forbidden(`${at}.nullable`, 'nullable cannot be true at the root'));
  addErrors(errors, checkStructural(schema, at));
  addErrors(errors, checkWords(schema, at));
  return errors.length > 0 ? errors : checkRules(schema, at, old);
}

function pathErrors(path: string, at: string, roots: readonly string[], detail: string): FieldError[] {
  if (!path.startsWith('.')) return [fieldError.invalid(at, path, 'must be a simple json path starting with .')];
  if (roots.some((root) => path.startsWith(root))) return [];
  return [fieldError.invalid(at, path, detail)];
}

function checkSubresources({ subresources }: CustomResourceDefinitionVersion, path: string): FieldError[] {
  const { scale } = subresources ?? {};
  if (scale === undefined) return [];
  const { specReplicasPath: desired, statusReplicasPath: observed, labelSelectorPath: selector = '' } = scale;
  const at = (word: string) => `${path}.scale.${word}`;
  return [
    ...(desired === ''
      ? [fieldError.required(at('specReplicasPath'))]
      : pathErrors(desired, at('specReplicasPath'), ['.spec.'], 'should be a json path under .spec')),
    ...(observed === ''
      ? [fieldError.required(at('statusReplicasPath'))]
      : pathErrors(observed, at('statusReplicasPath'), ['.status.'], 'should be a json path under .status')),
    ...(selector === ''
      ? []
      : pathErrors(
          selector,
          at('labelSelectorPath'),
          ['.spec.', '.status.'],
          'should be a json path under either .spec or .status',
        )),
  ];
}

type ColumnDefinition = NonNullable<CustomResourceDefinitionVersion['additionalPrinterColumns']>[number];

function checkColumn({ name, type, format, jsonPath }: ColumnDefinition, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const typeDetail = `must be one of ${columnTypes.join(',')}`;
  if (name === '') errors.push(fieldError.required(`${path}.name`));
  if (type === '') errors.push(fieldError.required(`${path}.type`, typeDetail));
  else if (!columnTypes.includes(type)) errors.push(fieldError.invalid(`${path}.type`, type, typeDetail));
  if (format && !columnFormats.includes(format))
    errors.push(fieldError.invalid(`${path}.format`, format, `must be one of ${columnFormats.join(',')}`));
  if (jsonPath === '') errors.push(fieldError.required(`${path}.JSONPath`));
  else errors.push(...pathErrors(jsonPath, `${path}.JSONPath`, ['.'], ''));
  return errors;
}

function checkSelectable(
  { selectableFields = [], schema }: CustomResourceDefinitionVersion,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const props = schema?.openAPIV3Schema;
  const seen = new Set<string>();
  for (const [i, { jsonPath }] of selectableFields.entries()) {
    const at = `${path}[${i}].jsonPath`;
    if (jsonPath === '') {
      errors.push(fieldError.required(at));
      continue;
    }
    const found = jsonPath.includes('[') ? 'array notation is not allowed' : schemaAt(jsonPath, props ?? {});
    if (typeof found === 'string') {
      errors.push(fieldError.invalid(at, jsonPath, `is an invalid path: ${found}`));
      continue;
    }
    if (/^\.?metadata(?:\.|$)/.test(jsonPath))
      errors.push(fieldError.invalid(at, jsonPath, 'must not point to fields in metadata'));
    if (!['string', 'boolean', 'integer'].includes(found.type ?? '')) {
      const detail =
        'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.';
      errors.push(fieldError.invalid(at, jsonPath, detail));
    }
    if (seen.has(jsonPath)) errors.push(fieldError.duplicate(at, jsonPath));
    seen.add(jsonPath);
  }
  if (seen.size > maxSelectableFields) errors.push(fieldError.tooMany(path, seen.size, maxSelectableFields));
  return errors;
}
