import { type FieldError, fieldError, objectMetaSchema, validateObjectMeta } from '@keelson/core';
import { decoderOf, isDecodeTypeError, isJsonObject, jsonText } from '@keelson/core/internal';
import type { JsonSchemaProps } from '@keelson/kinds';
import { childSchemas, type SchemaNode } from './schema-node.ts';

/**
 * Errors for duplicate items in lists of the types `set` and `map`. Source:
 * `apiextensions-apiserver/pkg/apiserver/schema/listtype`.
 */
export function validateListTypes(value: unknown, schema: SchemaNode | undefined, path = ''): FieldError[] {
  const errors: FieldError[] = [];
  visit(value, schema, path, (list, node, at) => {
    if (!Array.isArray(list)) return;
    const type = node.props['x-kubernetes-list-type'];
    if (type === 'set') errors.push(...repeated(list, list, at));
    else if (type === 'map') errors.push(...repeatedKeys(list, node.props['x-kubernetes-list-map-keys'] ?? [], at));
  });
  return errors;
}

const marked = new WeakMap<JsonSchemaProps, boolean>();

/**
 * True if the schema or a subschema has a list of the type `set` or `map`, or an embedded object. Values of other
 * schemas are not visited.
 */
function hasMarks(schema: JsonSchemaProps): boolean {
  let known = marked.get(schema);
  if (known === undefined) {
    const { 'x-kubernetes-list-type': listType, 'x-kubernetes-embedded-resource': embedded } = schema;
    const own = listType === 'set' || listType === 'map' || embedded === true;
    known = own || childSchemas(schema, '').some(([child]) => hasMarks(child));
    marked.set(schema, known);
  }
  return known;
}

/** Calls `found` for each object and list whose schema has a list type or an embedded object at any depth. */
function visit(
  value: unknown,
  schema: SchemaNode | undefined,
  path: string,
  found: (value: unknown, schema: SchemaNode, path: string) => void,
): void {
  if (schema === undefined || typeof value !== 'object' || value === null || !hasMarks(schema.props)) return;
  found(value, schema, path);
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) visit(item, schema.items, `${path}[${index}]`, found);
    return;
  }
  for (const [name, item] of Object.entries(value)) {
    const property = schema.property(name);
    if (property !== undefined) visit(item, property, path === '' ? name : `${path}.${name}`, found);
    else visit(item, schema.values, `${path}[${name}]`, found);
  }
}

function repeated(list: readonly unknown[], shown: readonly unknown[], path: string): FieldError[] {
  const seen = new Map<string, number>();
  const errors: FieldError[] = [];
  for (const [index, item] of list.entries()) {
    const text = jsonText(sorted(item));
    const times = seen.get(text) ?? 0;
    seen.set(text, times + 1);
    if (times === 1) errors.push(fieldError.duplicate(`${path}[${index}]`, shown[index]));
  }
  return errors;
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isJsonObject(value)) return value;
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, item]) => [name, sorted(item)]);
}

function repeatedKeys(list: readonly unknown[], keys: readonly string[], path: string): FieldError[] {
  const wrong = list.findIndex((item) => item !== null && !isJsonObject(item));
  if (wrong !== -1)
    return [fieldError.invalid(`${path}[${wrong}]`, list[wrong], 'must be an object for an array of list-type map')];
  const identities = list.map((item) => {
    const object = (item ?? {}) as Readonly<Record<string, unknown>>;
    return Object.fromEntries(keys.filter((key) => Object.hasOwn(object, key)).map((key) => [key, object[key]]));
  });
  return repeated(identities, identities, path);
}

const kindPattern = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;
const kindRule =
  "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', " +
  "start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex " +
  "used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

/**
 * Validates the type and metadata of embedded objects. Source:
 * `apiextensions-apiserver/pkg/apiserver/schema/objectmeta/validation.go`.
 */
export function validateEmbedded(value: unknown, schema: SchemaNode | undefined, path = ''): FieldError[] {
  const errors: FieldError[] = [];
  visit(value, schema, path, (object, node, at) => {
    if (node.embedded && isJsonObject(object)) errors.push(...embeddedErrors(object, at));
  });
  return errors;
}

function embeddedErrors(object: Readonly<Record<string, unknown>>, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const at = (name: string) => (path === '' ? name : `${path}.${name}`);
  for (const name of ['apiVersion', 'kind']) {
    const value = object[name];
    if (value === undefined) errors.push(fieldError.required(at(name)));
    else if (typeof value !== 'string') errors.push(fieldError.invalid(at(name), value, 'must be a string'));
    else if (value === '') errors.push(fieldError.invalid(at(name), value, 'must not be empty'));
    else if (name === 'apiVersion' && value.split('/').length > 2)
      errors.push(fieldError.invalid(at(name), value, `unexpected GroupVersion string: ${value}`));
    else if (name === 'kind' && (value.length > 63 || !kindPattern.test(value.toLowerCase())))
      errors.push(fieldError.invalid(at(name), value, kindRule));
  }
  const { metadata } = object;
  if (metadata === undefined) return errors;
  try {
    const decoded = decoderOf(objectMetaSchema)(metadata);
    const { namespace = '', name = '' } = decoded.value;
    const found = validateObjectMeta(
      { ...decoded.value, ...(name === '' ? { name: 'fakename' } : {}) },
      { nameRule: 'pathSegment', namespaced: namespace !== '' },
    );
    for (const error of [...decoded.errors, ...found])
      errors.push({
        ...error,
        field: at(error.field.startsWith('metadata') ? error.field : `metadata.${error.field}`),
      });
  } catch (error) {
    if (!isDecodeTypeError(error)) throw error;
    errors.push(
      fieldError.invalid(at('metadata'), metadata, `${error.path}: expected ${error.expected}, got ${error.got}`),
    );
  }
  return errors;
}
