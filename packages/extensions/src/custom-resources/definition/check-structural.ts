import { addErrors, type FieldError, fieldError, isFull } from '@keelson/core';
import type { JsonSchemaProps } from '@keelson/kinds';
import { Pattern } from '../schema/pattern.ts';
import { isIntOrStringAlternatives } from './check-schema.ts';

type Level = 'root' | 'item' | 'field';

/**
 * Maximum size of all patterns of a definition together. A repetition counts with a fixed size, because it is expanded.
 */
const maxPatternSize = 1_000_000;
const repetitionSize = 1000;

/** The errors found so far, and the total size of the patterns. */
interface Check {
  readonly errors: FieldError[];
  patterns: number;
}

/**
 * Checks that a schema is structural: every field has a type outside of `allOf`, `anyOf`, `oneOf` and `not`, and these
 * only restrict values. Source: `apiextensions-apiserver/pkg/apiserver/schema/{validation,complete}.go`.
 */
export function checkStructural(schema: JsonSchemaProps, path: string): FieldError[] {
  const check: Check = { errors: [], patterns: 0 };
  checkNode(schema, 'root', path, check);
  checkComplete(schema, schema, path, path, check);
  return check.errors.sort((a, b) => (textOf(a) < textOf(b) ? -1 : 1));
}

const textOf = ({ field, message }: FieldError) => `${field}: ${message}`;

function single(items: JsonSchemaProps['items']): JsonSchemaProps | undefined {
  return Array.isArray(items) ? undefined : items;
}

function checkNode(schema: JsonSchemaProps, level: Level, path: string, check: Check): void {
  if (isFull(check.errors)) return;
  const items = single(schema.items);
  const { additionalProperties: values } = schema;
  if (schema.type === 'array' && items === undefined)
    check.errors.push(fieldError.required(`${path}.items`, 'must be specified'));
  if (items !== undefined) checkNode(items, 'item', `${path}.items`, check);
  for (const [name, property] of Object.entries(schema.properties ?? {}))
    checkNode(property, 'field', `${path}.properties[${name}]`, check);
  if (values !== undefined && level === 'root')
    check.errors.push(fieldError.forbidden(`${path}.additionalProperties`, 'must not be used at the root'));
  if (typeof values === 'object') checkNode(values, 'field', `${path}.additionalProperties`, check);
  addErrors(check.errors, [
    ...exclusions(schema, path),
    ...typeErrors(schema, level, path),
    ...metaErrors(schema, level, path),
  ]);
  checkRestrictions(
    schema,
    isIntOrStringAlternatives(schema),
    isIntOrStringAlternatives(schema.allOf?.[0]),
    path,
    check,
  );
}

function exclusions(schema: JsonSchemaProps, path: string): FieldError[] {
  if (!schema['x-kubernetes-int-or-string']) return [];
  return (['x-kubernetes-preserve-unknown-fields', 'x-kubernetes-embedded-resource'] as const)
    .filter((word) => schema[word])
    .map((word) => fieldError.invalid(`${path}.${word}`, true, 'must be false if x-kubernetes-int-or-string is true'));
}

const emptyType: Readonly<Record<Level, string>> = {
  root: 'must not be empty at the root',
  item: 'must not be empty for specified array items',
  field: 'must not be empty for specified object fields',
};

function typeErrors(schema: JsonSchemaProps, level: Level, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const { type = '' } = schema;
  const embedded = schema['x-kubernetes-embedded-resource'] === true;
  const preserves = schema['x-kubernetes-preserve-unknown-fields'] === true;
  if (embedded && type !== 'object') {
    const detail = 'must be object if x-kubernetes-embedded-resource is true';
    errors.push(
      type === '' ? fieldError.required(`${path}.type`, detail) : fieldError.invalid(`${path}.type`, type, detail),
    );
  } else if (type === '' && !schema['x-kubernetes-int-or-string'] && !preserves) {
    errors.push(fieldError.required(`${path}.type`, emptyType[level]));
  }
  if (embedded && schema.additionalProperties !== undefined) {
    const detail = 'must not be used if x-kubernetes-embedded-resource is set';
    errors.push(fieldError.forbidden(`${path}.additionalProperties`, detail));
  }
  if (level === 'root' && type !== '' && type !== 'object')
    errors.push(fieldError.invalid(`${path}.type`, type, 'must be object at the root'));
  if (embedded && !preserves && Object.keys(schema.properties ?? {}).length === 0) {
    const detail =
      'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields';
    errors.push(fieldError.required(`${path}.properties`, detail));
  }
  return errors;
}

function metaErrors(schema: JsonSchemaProps, level: Level, path: string): FieldError[] {
  if (level !== 'root' && !schema['x-kubernetes-embedded-resource']) return [];
  const errors: FieldError[] = [];
  const { kind, apiVersion, metadata } = schema.properties ?? {};
  for (const [name, property] of Object.entries({ kind, apiVersion })) {
    if (property !== undefined && property.type !== 'string')
      errors.push(fieldError.invalid(`${path}.properties[${name}].type`, property.type ?? '', 'must be string'));
  }
  if (metadata === undefined) return errors;
  const at = `${path}.properties[metadata]`;
  if (metadata.type !== 'object') errors.push(fieldError.invalid(`${at}.type`, metadata.type ?? '', 'must be object'));
  if (level === 'root' && !restrictsNamesOnly(metadata)) {
    const detail = 'must not specify anything other than name and generateName, but metadata is implicitly specified';
    errors.push(fieldError.forbidden(at, detail));
  }
  return errors;
}

function restrictsNamesOnly({
  type: _type,
  default: _default,
  description,
  properties = {},
  ...rest
}: JsonSchemaProps): boolean {
  const names = Object.keys(properties).every((name) => name === 'name' || name === 'generateName');
  return names && description === undefined && Object.keys(rest).length === 0;
}

/** Checks the alternatives and the pattern of a schema. */
function checkRestrictions(
  schema: JsonSchemaProps,
  skipAnyOf: boolean,
  skipFirstAllOf: boolean,
  path: string,
  check: Check,
): void {
  for (const [i, one] of (skipAnyOf ? [] : (schema.anyOf ?? [])).entries())
    checkNested(one, false, `${path}.anyOf[${i}]`, check);
  for (const [i, one] of (schema.allOf ?? []).entries())
    checkNested(one, skipFirstAllOf && i === 0, `${path}.allOf[${i}]`, check);
  for (const [i, one] of (schema.oneOf ?? []).entries()) checkNested(one, false, `${path}.oneOf[${i}]`, check);
  if (schema.not !== undefined) checkNested(schema.not, false, `${path}.not`, check);
  if (schema.pattern) checkPattern(schema.pattern, `${path}.pattern`, check);
}

function checkPattern(pattern: string, path: string, check: Check): void {
  check.patterns += pattern.length + repetitionSize * (pattern.split('{').length - 1);
  if (check.patterns > maxPatternSize) {
    check.errors.push(
      fieldError.forbidden(path, `the patterns of a schema may not be larger than ${maxPatternSize} together`),
    );
    return;
  }
  const { problem } = new Pattern(pattern);
  if (problem !== undefined)
    check.errors.push(fieldError.invalid(path, pattern, `must be a valid regular expression, but isn't: ${problem}`));
}

const forbiddenWords: readonly (readonly [word: keyof JsonSchemaProps, detail: string])[] = [
  ['type', 'must be empty to be structural'],
  ['additionalProperties', 'must be undefined to be structural'],
  ['default', 'must be undefined to be structural'],
  ['title', 'must be empty to be structural'],
  ['description', 'must be empty to be structural'],
  ['nullable', 'must be false to be structural'],
  ['x-kubernetes-preserve-unknown-fields', 'must be false to be structural'],
  ['x-kubernetes-embedded-resource', 'must be false to be structural'],
  ['x-kubernetes-int-or-string', 'must be false to be structural'],
  ['x-kubernetes-list-map-keys', 'must be empty to be structural'],
  ['x-kubernetes-list-type', 'must be undefined to be structural'],
  ['x-kubernetes-map-type', 'must be undefined to be structural'],
  ['x-kubernetes-validations', 'must be empty to be structural'],
];

function isSet(value: unknown): boolean {
  return value !== undefined && value !== '' && value !== false && !(Array.isArray(value) && value.length === 0);
}

function checkNested(schema: JsonSchemaProps, skipAnyOf: boolean, path: string, check: Check): void {
  if (isFull(check.errors)) return;
  checkRestrictions(schema, skipAnyOf, false, path, check);
  const items = single(schema.items);
  if (items !== undefined) checkNested(items, false, `${path}.items`, check);
  for (const [name, property] of Object.entries(schema.properties ?? {}))
    checkNested(property, false, `${path}.properties[${name}]`, check);
  for (const [word, detail] of forbiddenWords) {
    const value = schema[word];
    if (word === 'default' ? value !== undefined : isSet(value))
      check.errors.push(fieldError.forbidden(`${path}.${word}`, detail));
  }
  if (schema.properties && Object.hasOwn(schema.properties, 'metadata'))
    check.errors.push(
      fieldError.forbidden(`${path}.properties[metadata]`, 'must not be specified in a nested context'),
    );
}

/**
 * Requires that every field or item restricted inside of `allOf`, `anyOf`, `oneOf` or `not` is also specified outside
 * of it.
 */
function checkComplete(
  nested: JsonSchemaProps,
  schema: JsonSchemaProps,
  path: string,
  nestedPath: string,
  check: Check,
): void {
  if (isFull(check.errors)) return;
  const alternatives: [JsonSchemaProps, string][] = [
    ...(nested.not ? [[nested.not, `${nestedPath}.not`] as [JsonSchemaProps, string]] : []),
    ...(['allOf', 'anyOf', 'oneOf'] as const).flatMap((word) =>
      (nested[word] ?? []).map((one, i): [JsonSchemaProps, string] => [one, `${nestedPath}.${word}[${i}]`]),
    ),
  ];
  for (const [one, at] of alternatives) checkRestricted(one, schema, path, at, check);
}

function checkRestricted(
  nested: JsonSchemaProps,
  schema: JsonSchemaProps | undefined,
  path: string,
  nestedPath: string,
  check: Check,
): void {
  if (schema === undefined) {
    check.errors.push(fieldError.required(path, `because it is defined in ${nestedPath}`));
    return;
  }
  checkComplete(nested, schema, path, nestedPath, check);
  const items = single(nested.items);
  if (items !== undefined) checkRestricted(items, single(schema.items), `${path}.items`, `${nestedPath}.items`, check);
  for (const [name, property] of Object.entries(nested.properties ?? {})) {
    const own = schema.properties && Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined;
    const word = `.properties[${name}]`;
    checkRestricted(property, own, `${path}${word}`, `${nestedPath}${word}`, check);
  }
}
