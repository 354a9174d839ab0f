import { X509Certificate } from 'node:crypto';
import { isConditionTrue } from '@keelson/controller-kit';
import { addErrors, dns1035LabelErrors, dns1123SubdomainErrors, type FieldError, fieldError } from '@keelson/core';
import { equalJson } from '@keelson/core/internal';
import {
  type CustomResourceDefinition,
  type CustomResourceDefinitionVersion,
  checkClientConfig,
  type JsonSchemaProps,
} from '@keelson/kinds';
import { schemaAt } from '../schema/field-path.ts';
import { checkWords } from './check-schema.ts';
import { checkStructural } from './check-structural.ts';

type Spec = CustomResourceDefinition['spec'];

/** An additional check of a schema, for example of the expressions in it. */
export type SchemaCheck = (schema: JsonSchemaProps, path: string, old: JsonSchemaProps | undefined) => FieldError[];

const columnTypes = ['boolean', 'date', 'integer', 'number', 'string'];
const columnFormats = ['byte', 'date', 'date-time', 'double', 'float', 'int32', 'int64', 'password'];
const reviewVersions = ['v1', 'v1beta1'];
const maxSelectableFields = 8;
const approvalAnnotation = 'api-approved.kubernetes.io';

/** Validates a new or changed definition. Source: `apiextensions-apiserver/pkg/apis/apiextensions/validation`. */
export function checkDefinition(
  definition: CustomResourceDefinition,
  old: CustomResourceDefinition | undefined,
  checkRules: SchemaCheck,
): FieldError[] {
  const { spec, status, metadata } = definition;
  const errors: FieldError[] = [];
  const required = `${spec.names.plural}.${spec.group}`;
  if (metadata?.name && metadata.name !== required && old === undefined)
    errors.push(fieldError.invalid('metadata.name', metadata.name, 'must be spec.names.plural+"."+spec.group'));
  addErrors(errors, checkSpec(spec, old, checkRules));
  addErrors(errors, checkNames(status?.acceptedNames ?? {}, 'status.acceptedNames'));
  addErrors(errors, checkStoredVersions(status?.storedVersions ?? [], spec.versions));
  addErrors(errors, checkApproval(definition, old));
  if (old !== undefined) addErrors(errors, immutableErrors(spec, old));
  return errors;
}

const immutable = 'field is immutable';

function immutableErrors(spec: Spec, { spec: before, status }: CustomResourceDefinition): FieldError[] {
  const established = isConditionTrue(status?.conditions, 'Established');
  const pairs: [field: string, value: string, old: string][] = [
    ...(established
      ? ([
          ['spec.scope', spec.scope, before.scope],
          ['spec.names.kind', spec.names.kind, before.names.kind],
        ] satisfies [string, string, string][])
      : []),
    ['spec.group', spec.group, before.group],
    ['spec.names.plural', spec.names.plural, before.names.plural],
  ];
  return pairs.flatMap(([field, value, old]) => (value === old ? [] : [fieldError.invalid(field, value, immutable)]));
}

function checkSpec(spec: Spec, old: CustomResourceDefinition | undefined, checkRules: SchemaCheck): FieldError[] {
  const errors: FieldError[] = [];
  const { group, scope, versions, names } = spec;
  if (group === '') errors.push(fieldError.required('spec.group'));
  else if (dns1123SubdomainErrors(group).length > 0)
    errors.push(fieldError.invalid('spec.group', group, dns1123SubdomainErrors(group).join(',')));
  else if (!group.includes('.'))
    errors.push(fieldError.invalid('spec.group', group, 'should be a domain with at least one dot'));
  if (scope === '') errors.push(fieldError.required('spec.scope'));
  else if (scope !== 'Cluster' && scope !== 'Namespaced')
    errors.push(fieldError.notSupported('spec.scope', scope, ['Cluster', 'Namespaced']));
  if (spec.preserveUnknownFields) {
    const detail =
      'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead';
    errors.push(fieldError.invalid('spec.preserveUnknownFields', true, detail));
  }
  addErrors(errors, checkVersions(versions, old?.spec.versions ?? [], checkRules));
  for (const name of ['plural', 'singular', 'kind', 'listKind'] as const)
    if (!names[name]) errors.push(fieldError.required(`spec.names.${name}`));
  addErrors(errors, checkNames(names, 'spec.names'));
  addErrors(errors, checkConversion(spec, old));
  return errors;
}

/**
 * Validates all versions. Errors in a part that is equal in all versions are reported once, with a path that does not
 * contain the version, as in Kubernetes.
 */
function checkVersions(
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

type Names = Partial<Spec['names']>;

function checkNames({ plural, singular, kind, listKind, shortNames, categories }: Names, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const check = (word: string, name: string | undefined, mixedCase = false) => {
    const found = name ? dns1035LabelErrors(mixedCase ? name.toLowerCase() : name) : [];
    if (found.length === 0) return;
    const prefix = mixedCase ? 'may have mixed case, but should otherwise match: ' : '';
    errors.push(fieldError.invalid(`${path}.${word}`, name, `${prefix}${found.join(',')}`));
  };
  check('plural', plural);
  check('singular', singular);
  check('kind', kind, true);
  check('listKind', listKind, true);
  for (const [i, name] of (shortNames ?? []).entries()) check(`shortNames[${i}]`, name);
  if (kind && kind === listKind)
    errors.push(fieldError.invalid(`${path}.listKind`, listKind, 'kind and listKind may not be the same'));
  for (const [i, name] of (categories ?? []).entries()) check(`categories[${i}]`, name);
  return errors;
}

function checkStoredVersions(
  stored: readonly string[],
  versions: readonly CustomResourceDefinitionVersion[],
): FieldError[] {
  const path = 'status.storedVersions';
  if (stored.length === 0) return [fieldError.invalid(path, stored, 'must have at least one stored version')];
  const errors: FieldError[] = [];
  for (const { name, storage } of versions) {
    if (storage && !stored.includes(name))
      errors.push(fieldError.invalid(path, stored, `must have the storage version ${name}`));
  }
  for (const [i, name] of stored.entries()) {
    if (versions.some((version) => version.name === name)) continue;
    const detail =
      `missing from spec.versions; ${name} was previously a storage version, and must remain in spec.versions until a storage ` +
      `migration ensures no data remains persisted in ${name} and removes ${name} from status.storedVersions`;
    errors.push(fieldError.invalid(`${path}[${i}]`, name, detail));
  }
  return errors;
}

type Approval = 'missing' | 'bypassed' | 'approved' | 'invalid';

function approvalOf({ metadata }: CustomResourceDefinition): Approval {
  const text = metadata?.annotations?.[approvalAnnotation] ?? '';
  if (text === '') return 'missing';
  if (text.startsWith('unapproved')) return 'bypassed';
  return /^[a-z][a-z0-9+.-]*:\/\/[^/]/i.test(text) && URL.canParse(text) ? 'approved' : 'invalid';
}

/** API groups of the Kubernetes community require an approval annotation. */
function checkApproval(definition: CustomResourceDefinition, old: CustomResourceDefinition | undefined): FieldError[] {
  if (!/(?:^|\.)(?:k8s|kubernetes)\.io$/.test(definition.spec.group)) return [];
  const approval = approvalOf(definition);
  if (approval === 'approved' || approval === 'bypassed' || (old !== undefined && approvalOf(old) === approval))
    return [];
  const path = `metadata.annotations[${approvalAnnotation}]`;
  const enhancement = 'see https://github.com/kubernetes/enhancements/pull/1111';
  const rule = `protected groups must have approval annotation ${JSON.stringify(approvalAnnotation)}`;
  if (approval === 'missing') return [fieldError.required(path, `${rule}, ${enhancement}`)];
  const detail = `${rule} with either a URL or a reason starting with "unapproved", ${enhancement}`;
  return [fieldError.invalid(path, definition.metadata?.annotations?.[approvalAnnotation], detail)];
}

function checkConversion({ conversion }: Spec, old: CustomResourceDefinition | undefined): FieldError[] {
  const path = 'spec.conversion';
  if (conversion === undefined) return [];
  const { strategy, webhook } = conversion;
  if (strategy === '') return [fieldError.required(`${path}.strategy`)];
  if (strategy !== 'None' && strategy !== 'Webhook')
    return [fieldError.notSupported(`${path}.strategy`, strategy, ['None', 'Webhook'])];
  if (strategy === 'None') {
    if (webhook === undefined) return [];
    return [fieldError.forbidden(`${path}.webhook`, 'should not be set when strategy is not set to Webhook')];
  }
  const client = webhook?.clientConfig;
  const at = `${path}.webhookClientConfig`;
  if (client === undefined) return [fieldError.required(at, 'required when strategy is set to Webhook')];
  const errors: FieldError[] = [];
  checkClientConfig(client, at, errors);
  const established = isConditionTrue(old?.status?.conditions, 'Established');
  if (
    client.caBundle &&
    established &&
    !isBundle(client.caBundle) &&
    old?.spec.conversion?.webhook?.clientConfig?.caBundle !== client.caBundle
  )
    errors.push(
      fieldError.invalid(
        `${at}.caBundle`,
        client.caBundle,
        'unable to load root certificates: unable to parse bytes as PEM block',
      ),
    );
  errors.push(...reviewVersionErrors(webhook?.conversionReviewVersions ?? [], `${path}.conversionReviewVersions`));
  return errors;
}

function isBundle(base64: string): boolean {
  try {
    return new X509Certificate(Buffer.from(base64, 'base64')).subject !== '';
  } catch {
    return false;
  }
}

function reviewVersionErrors(versions: readonly string[], path: string): FieldError[] {
  if (versions.length === 0) return [fieldError.required(path)];
  const errors: FieldError[] = [];
  for (const [i, version] of versions.entries()) {
    if (versions.indexOf(version) < i) errors.push(fieldError.invalid(`${path}[${i}]`, version, 'duplicate version'));
    else
      for (const text of dns1035LabelErrors(version)) errors.push(fieldError.invalid(`${path}[${i}]`, version, text));
  }
  if (!versions.some((version) => reviewVersions.includes(version)))
    errors.push(fieldError.invalid(path, versions, `must include at least one of ${reviewVersions.join(', ')}`));
  return errors;
}
