import { objectMetaSchema } from '@keelson/core';
import { copyJson, decoderOf, isJsonObject, setOwn } from '@keelson/core/internal';
import type { SchemaNode } from './schema-node.ts';

type Json = Readonly<Record<string, unknown>>;

/** Called with the path of each field that no schema describes. */
type Report = ((path: string) => void) | undefined;

const metaFields = ['apiVersion', 'kind', 'metadata'];

const below = (path: string, name: string) => (path === '' ? name : `${path}.${name}`);

/** What a completion needs at every level. */
interface Run {
  readonly unknown: Report;
  /** Receives the unknown fields in the metadata of embedded objects, which defaults may have. */
  readonly unknownMetadata: Report;
  readonly keepNulls: boolean;
}

/**
 * A copy of a value with the defaults of its schema and without fields that the schema does not describe, as in
 * kube-apiserver. Nulls of fields that are not nullable are dropped or replaced by the default. Unknown fields are
 * dropped unless the schema preserves them. The metadata of embedded objects has the fields of ObjectMeta.
 *
 * Sources: `apiextensions-apiserver/pkg/apiserver/schema/{defaulting,pruning,objectmeta}`.
 */
export function complete(value: unknown, schema: SchemaNode | undefined, path = '', unknown?: Report): unknown {
  return completed(
    value,
    schema,
    path,
    { unknown, unknownMetadata: undefined, keepNulls: false },
    schema?.preserves ?? false,
  );
}

/** Completes an object, except for its type and metadata. For `keepNulls` see JsonSchemaForm. */
export function completeObject(
  object: Json,
  schema: SchemaNode,
  unknown?: Report,
  keepNulls = false,
): Record<string, unknown> {
  return fieldsOf(object, schema, '', { unknown, unknownMetadata: unknown, keepNulls }, schema.preserves, true);
}

function completed(
  value: unknown,
  schema: SchemaNode | undefined,
  path: string,
  run: Run,
  preserves: boolean,
): unknown {
  if (schema === undefined) return preserves ? copyJson(value) : pruned(value, path, run.unknown);
  if (Array.isArray(value)) {
    const { items } = schema;
    return value.map((item, index) => {
      const given = item === null && items?.props.nullable !== true ? (items?.props.default ?? null) : item;
      const keeps = preserves || (items?.preserves ?? false);
      return completed(given, items, `${path}[${index}]`, run, keeps);
    });
  }
  if (!isJsonObject(value)) return value;
  return fieldsOf(value, schema, path, run, preserves, false);
}

/** Prunes a value without a schema: scalars and lists remain, and all fields of objects are dropped as unknown. */
function pruned(value: unknown, path: string, unknown: Report): unknown {
  if (Array.isArray(value)) return value.map((item, index) => pruned(item, `${path}[${index}]`, unknown));
  if (!isJsonObject(value)) return value;
  for (const name of Object.keys(value)) unknown?.(below(path, name));
  return {};
}

function fieldsOf(
  object: Json,
  schema: SchemaNode,
  path: string,
  run: Run,
  preserves: boolean,
  root: boolean,
): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const name of Object.keys(object)) {
    if ((root || schema.embedded) && metaFields.includes(name)) {
      if (!root)
        setOwn(out, name, name === 'metadata' ? metadataOf(object[name], below(path, name), run) : object[name]);
      continue;
    }
    const property = schema.property(name);
    const child = property ?? schema.values;
    let value = object[name];
    if (value === null && child !== undefined && child.props.nullable !== true) {
      value = child.props.default ?? (run.keepNulls ? null : undefined);
      if (value === undefined) continue;
    }
    if (property === undefined && !schema.isMap) {
      if (preserves) setOwn(out, name, copyJson(value));
      else run.unknown?.(below(path, name));
      continue;
    }
    // The values of a map with `additionalProperties: true` have no schema, so that their fields are unknown.
    setOwn(out, name, completed(value, child, below(path, name), run, child?.preserves ?? false));
  }
  for (const name of schema.defaultedProperties) {
    if (Object.hasOwn(out, name) || (root && metaFields.includes(name))) continue;
    const property = schema.property(name);
    const quiet = { ...run, unknown: undefined, unknownMetadata: undefined };
    const value = completed(property?.props.default, property, below(path, name), quiet, property?.preserves ?? false);
    setOwn(out, name, value);
  }
  return out;
}

/** The pruned metadata of an embedded object. A value that is not an object is rejected later by the validation. */
function metadataOf(value: unknown, path: string, { unknownMetadata }: Run): unknown {
  if (!isJsonObject(value)) return value;
  const { value: metadata, unknownFields } = decoderOf(objectMetaSchema)(value);
  if (unknownMetadata !== undefined) for (const name of unknownFields) unknownMetadata(below(path, name));
  return metadata;
}
