import { addErrors, type FieldError, fieldError, isFull } from '@keelson/core';
import { equalJson, isJsonObject } from '@keelson/core/internal';
import type { JsonSchemaProps, ValidationRule } from '@keelson/kinds';
import { complete } from '../schema/complete.ts';
import { fieldPathProblem } from '../schema/field-path.ts';
import { validateEmbedded } from '../schema/list-types.ts';
import { childSchemas, SchemaNode } from '../schema/schema-node.ts';
import { validateValue } from '../schema/validate.ts';

const types = ['array', 'boolean', 'integer', 'number', 'object', 'string'];
const reasons = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired'];
const metaFields = ['metadata', 'kind', 'apiVersion'];

/** Properties of a schema that its parent schemas determine. */
interface Place {
  readonly root: boolean;
  /** The reason why defaults are forbidden; absent when they are allowed. */
  readonly noDefaults?: string;
  readonly insideMeta: boolean;
  /** True inside of `allOf`, `anyOf`, `oneOf` or `not`. */
  readonly nested: boolean;
}

/** Checks the fields of a schema and of all its subschemas. Source: `ValidateCustomResourceDefinitionOpenAPISchema`. */
export function checkWords(schema: JsonSchemaProps, path: string): FieldError[] {
  const errors: FieldError[] = [];
  visit(schema, path, { root: true, insideMeta: false, nested: false }, errors);
  return errors;
}

function visit(schema: JsonSchemaProps, path: string, place: Place, errors: FieldError[]): void {
  if (isFull(errors)) return;
  addErrors(errors, [
    ...supportErrors(schema, path, place),
    ...extensionErrors(schema, path),
    ...listErrors(schema, path),
    ...(schema['x-kubernetes-validations'] ?? []).flatMap((rule, i) =>
      ruleErrors(schema, rule, `${path}.x-kubernetes-validations[${i}]`),
    ),
  ]);
  for (const [child, at] of childSchemas(schema, path)) visit(child, at, placeOf(schema, path, at, place), errors);
  if (!place.nested) addErrors(errors, defaultErrors(schema, path));
}

function placeOf(schema: JsonSchemaProps, path: string, childPath: string, place: Place): Place {
  const word = childPath.slice(path.length + 1);
  const property = /^properties\[(.*)\]$/s.exec(word)?.[1];
  const nested = place.nested || /^(?:allOf|anyOf|oneOf|not)/.test(word);
  if (
    property !== undefined &&
    (place.root || schema['x-kubernetes-embedded-resource']) &&
    metaFields.includes(property)
  ) {
    return { root: false, nested, insideMeta: true, ...(place.root ? { noDefaults: `in top-level ${property}` } : {}) };
  }
  const inMap = word === 'additionalProperties' && place.insideMeta;
  return {
    ...place,
    root: false,
    nested,
    ...(inMap ? { noDefaults: 'inside additionalProperties applying to object metadata' } : {}),
  };
}

function supportErrors(schema: JsonSchemaProps, path: string, place: Place): FieldError[] {
  const errors: FieldError[] = [];
  const forbid = (word: string, detail = `${word} is not supported`) =>
    errors.push(fieldError.forbidden(`${path}.${word}`, detail));
  if (schema.type && !types.includes(schema.type))
    errors.push(fieldError.notSupported(`${path}.type`, schema.type, types));
  if (schema.default !== undefined && place.noDefaults !== undefined)
    forbid('default', `must not be set ${place.noDefaults}`);
  if (schema.id) forbid('id');
  if (schema.additionalItems !== undefined) forbid('additionalItems');
  if (Object.keys(schema.patternProperties ?? {}).length > 0) forbid('patternProperties');
  if (Object.keys(schema.definitions ?? {}).length > 0) forbid('definitions');
  if (schema.dependencies !== undefined) forbid('dependencies');
  if (schema.$ref !== undefined) forbid('$ref');
  if (schema.type === 'null') forbid('type', 'type cannot be set to null, use nullable as an alternative');
  if (Array.isArray(schema.items)) forbid('items', 'items must be a schema object and not an array');
  if (place.insideMeta && schema['x-kubernetes-embedded-resource'])
    forbid('x-kubernetes-embedded-resource', 'must not be used inside of resource meta');
  if (schema.uniqueItems)
    forbid('uniqueItems', 'uniqueItems cannot be set to true since the runtime complexity becomes quadratic');
  if (schema.additionalProperties !== undefined && Object.keys(schema.properties ?? {}).length > 0) {
    if (schema.additionalProperties !== true)
      forbid('additionalProperties', 'additionalProperties and properties are mutual exclusive');
  }
  return errors;
}

function mustBeType(schema: JsonSchemaProps, path: string, type: string, word: string): FieldError[] {
  if (schema.type === type) return [];
  const detail = `must be ${type} if ${word} is specified`;
  return [
    schema.type ? fieldError.invalid(`${path}.type`, schema.type, detail) : fieldError.required(`${path}.type`, detail),
  ];
}

function extensionErrors(schema: JsonSchemaProps, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const mapType = schema['x-kubernetes-map-type'];
  if (schema['x-kubernetes-preserve-unknown-fields'] === false) {
    errors.push(fieldError.invalid(`${path}.x-kubernetes-preserve-unknown-fields`, false, 'must be true or undefined'));
  }
  if (mapType !== undefined) {
    errors.push(...mustBeType(schema, path, 'object', 'x-kubernetes-map-type'));
    if (mapType !== 'atomic' && mapType !== 'granular')
      errors.push(fieldError.notSupported(`${path}.x-kubernetes-map-type`, mapType, ['atomic', 'granular']));
  }
  return errors;
}

function listErrors(schema: JsonSchemaProps, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const listType = schema['x-kubernetes-list-type'];
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  const typePath = `${path}.x-kubernetes-list-type`;
  const items = Array.isArray(schema.items) ? undefined : schema.items;
  if (listType !== undefined) {
    errors.push(...mustBeType(schema, path, 'array', 'x-kubernetes-list-type'));
    if (!['atomic', 'set', 'map'].includes(listType))
      errors.push(fieldError.notSupported(typePath, listType, ['atomic', 'set', 'map']));
  }
  if (schema.type === 'array' && listType === 'set' && items !== undefined) errors.push(...setItemErrors(items, path));
  if (keys.length > 0 && listType !== 'map') {
    const detail = 'must be map if x-kubernetes-list-map-keys is non-empty';
    errors.push(
      listType === undefined ? fieldError.required(typePath, detail) : fieldError.invalid(typePath, listType, detail),
    );
  }
  if (listType === 'map') errors.push(...mapItemErrors(schema, items, keys, path));
  if ((listType === 'set' || listType === 'map') && items?.nullable)
    errors.push(
      fieldError.forbidden(`${path}.items.nullable`, `cannot be nullable when x-kubernetes-list-type is ${listType}`),
    );
  return errors;
}

function setItemErrors(items: JsonSchemaProps, path: string): FieldError[] {
  const detail = 'must be atomic as item of a list with x-kubernetes-list-type=set';
  const list = items['x-kubernetes-list-type'];
  if (items.type === 'array' && list !== undefined && list !== 'atomic')
    return [fieldError.invalid(`${path}.items.x-kubernetes-list-type`, list, detail)];
  if (items.type === 'object' && items['x-kubernetes-map-type'] !== 'atomic')
    return [fieldError.invalid(`${path}.items.x-kubernetes-map-type`, list ?? null, detail)];
  return [];
}

function mapItemErrors(
  schema: JsonSchemaProps,
  items: JsonSchemaProps | undefined,
  keys: readonly string[],
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const keysPath = `${path}.x-kubernetes-list-map-keys`;
  if (keys.length === 0)
    errors.push(fieldError.required(keysPath, 'must not be empty if x-kubernetes-list-type is map'));
  if (schema.items === undefined)
    errors.push(fieldError.required(`${path}.items`, 'must have a schema if x-kubernetes-list-type is map'));
  else if (items === undefined)
    errors.push(
      fieldError.invalid(
        `${path}.items`,
        schema.items,
        'must only have a single schema if x-kubernetes-list-type is map',
      ),
    );
  else if (items.type !== 'object')
    errors.push(
      fieldError.invalid(
        `${path}.items.type`,
        items.type ?? '',
        "must be object if parent array's x-kubernetes-list-type is map",
      ),
    );
  if (items?.type !== 'object') return errors;
  for (const [i, key] of keys.entries()) {
    const property = items.properties && Object.hasOwn(items.properties, key) ? items.properties[key] : undefined;
    const at = `${path}.items.properties[${key}]`;
    if (property === undefined)
      errors.push(fieldError.invalid(keysPath, keys, 'entries must all be names of item properties'));
    else if (property.type === 'array' || property.type === 'object')
      errors.push(
        fieldError.invalid(
          `${at}.type`,
          items.type,
          "must be a scalar type if parent array's x-kubernetes-list-type is map",
        ),
      );
    if (keys.indexOf(key) < i) errors.push(fieldError.invalid(keysPath, keys, 'must not contain duplicate entries'));
    if (property === undefined) continue;
    if (!items.required?.includes(key) && property.default === undefined) {
      const detail =
        'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property';
      errors.push(fieldError.required(`${at}.default`, detail));
    }
    if (property.nullable)
      errors.push(
        fieldError.forbidden(
          `${at}.nullable`,
          'this property is in x-kubernetes-list-map-keys, so it cannot be nullable',
        ),
      );
  }
  return errors;
}

const hasNewline = (text: string) => /[\n\r]/.test(text);

function ruleErrors(schema: JsonSchemaProps, rule: ValidationRule, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const { message = '', messageExpression = '', reason, fieldPath = '' } = rule;
  if (rule.rule.trim() === '') errors.push(fieldError.required(`${path}.rule`, 'rule is not specified'));
  else if (message !== '' && message.trim() === '')
    errors.push(fieldError.invalid(`${path}.message`, message, 'must be non-empty if specified'));
  else if (hasNewline(message.trim()))
    errors.push(fieldError.invalid(`${path}.message`, message, 'must not contain line breaks'));
  else if (hasNewline(rule.rule.trim()) && message.trim() === '')
    errors.push(fieldError.required(`${path}.message`, 'message must be specified if rule contains line breaks'));
  if (messageExpression !== '' && messageExpression.trim() === '')
    errors.push(fieldError.required(`${path}.messageExpression`, 'messageExpression must be non-empty if specified'));
  if (reason !== undefined && !reasons.includes(reason))
    errors.push(fieldError.notSupported(`${path}.reason`, reason, reasons));
  if (fieldPath !== '' && fieldPath.trim() === '')
    errors.push(fieldError.invalid(`${path}.fieldPath`, fieldPath, 'must be non-empty if specified'));
  if (hasNewline(fieldPath))
    errors.push(fieldError.invalid(`${path}.fieldPath`, fieldPath, 'must not contain line breaks'));
  if (fieldPath !== '' && fieldPathProblem(fieldPath, schema) !== undefined)
    errors.push(fieldError.invalid(`${path}.fieldPath`, fieldPath, 'must be a valid path'));
  return errors;
}

/**
 * Requires that a default matches its own schema and has no unknown fields. Source:
 * `apiserver/schema/defaulting/validation.go`.
 */
function defaultErrors(schema: JsonSchemaProps, path: string): FieldError[] {
  const { default: value } = schema;
  if (value === undefined) return [];
  const node = new SchemaNode(schema, true);
  const at = `${path}.default`;
  let unknown = false;
  const completed = complete(value, node, '', () => {
    unknown = true;
  });
  if (unknown) return [fieldError.invalid(at, value, 'must not have unknown fields')];
  const embedded = validateEmbedded(completed, node, at);
  if (embedded.length > 0) return embedded;
  // As in Kubernetes, messages contain the path below the default only, and lists are not searched for duplicates.
  return validateValue(completed, node, '').map((error) => ({ ...error, field: fieldBelow(at, error.field) }));
}

function fieldBelow(path: string, field: string): string {
  if (field === '<nil>') return path;
  return field.startsWith('[') ? `${path}${field}` : `${path}.${field}`;
}

/** True for `anyOf` of an integer and a string, which the structural form permits. */
export function isIntOrStringAlternatives(schema: JsonSchemaProps | undefined): boolean {
  const { anyOf } = schema ?? {};
  return (
    anyOf?.length === 2 && anyOf.every(isJsonObject) && equalJson(anyOf, [{ type: 'integer' }, { type: 'string' }])
  );
}
