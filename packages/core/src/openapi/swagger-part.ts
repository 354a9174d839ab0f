import { isDeepStrictEqual } from 'node:util';
import { isJsonObject } from '../json/json.ts';
import type { GroupVersion } from '../meta/types.ts';
import type { OpenApiMethod } from './open-api-types.ts';
import type {
  SwaggerDocument,
  SwaggerOperation,
  SwaggerParameter,
  SwaggerPathItem,
  SwaggerResponse,
  SwaggerSchema,
} from './swagger-types.ts';

/** What the Swagger document of another server contains about one version of an API group. */
export interface SwaggerPart {
  readonly paths: SwaggerDocument['paths'];
  /** The schemas to which the paths refer. */
  readonly definitions: SwaggerDocument['definitions'];
}

type Json = Readonly<Record<string, unknown>>;

const methods: readonly OpenApiMethod[] = ['get', 'put', 'post', 'delete', 'patch'];
const textWords = ['$ref', 'format', 'title', 'description', 'pattern'] as const;
const numberWords = ['maximum', 'minimum', 'maxLength', 'minLength', 'maxItems', 'minItems'] as const;
const types = ['object', 'array', 'string', 'integer', 'number', 'boolean'];
const plainTypes = ['string', 'integer', 'boolean'];
/** Deeper schemas are left out. */
const maxDepth = 64;
const reference = '#/definitions/';

const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : [];
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

function extensionsOf(value: Json): Json {
  return Object.fromEntries(Object.entries(value).filter(([name]) => name.startsWith('x-')));
}

/** The keywords of a schema that documents of this server also use. */
function schemaOf(value: unknown, depth = 0): SwaggerSchema {
  if (!isJsonObject(value) || depth > maxDepth) return {};
  const inside = (child: unknown) => schemaOf(child, depth + 1);
  const found: Record<string, unknown> = extensionsOf(value);
  for (const word of textWords) if (typeof value[word] === 'string') found[word] = value[word];
  for (const word of numberWords) if (typeof value[word] === 'number') found[word] = value[word];
  if (types.includes(textOf(value['type']))) found['type'] = value['type'];
  if (Array.isArray(value['required'])) found['required'] = textsOf(value['required']);
  if (Array.isArray(value['enum'])) found['enum'] = value['enum'];
  if (value['default'] !== undefined) found['default'] = value['default'];
  const { additionalProperties, items, allOf, properties } = value;
  if (additionalProperties === true) found['additionalProperties'] = true;
  else if (isJsonObject(additionalProperties)) found['additionalProperties'] = inside(additionalProperties);
  if (isJsonObject(items)) found['items'] = inside(items);
  if (Array.isArray(allOf)) found['allOf'] = allOf.map(inside);
  if (isJsonObject(properties)) found['properties'] = mapped(properties, inside);
  return found;
}

function mapped<T>(values: Json, change: (value: unknown) => T): Record<string, T> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value)]));
}

/** Parameters in the path, the query and the body; those that the document shares are repeated. */
function parametersOf(values: unknown, shared: Json): SwaggerParameter[] {
  return (Array.isArray(values) ? values : []).flatMap((given: unknown): SwaggerParameter[] => {
    const ref = isJsonObject(given) ? textOf(given['$ref']) : '';
    const value = ref === '' ? given : shared[ref.replace('#/parameters/', '')];
    if (!isJsonObject(value)) return [];
    const required = value['required'] === true ? ({ required: true } as const) : {};
    if (value['in'] === 'body') return [{ name: 'body', in: 'body', ...required, schema: schemaOf(value['schema']) }];
    if (value['in'] !== 'path' && value['in'] !== 'query') return [];
    const type = plainTypes.includes(textOf(value['type'])) ? (value['type'] as 'string') : 'string';
    const texts = { name: textOf(value['name']), description: textOf(value['description']) };
    return [{ ...texts, in: value['in'], type, uniqueItems: true, ...required }];
  });
}

function responseOf(value: unknown): SwaggerResponse {
  if (!isJsonObject(value)) return { description: '' };
  const { description, schema } = value;
  return { description: textOf(description), ...(isJsonObject(schema) ? { schema: schemaOf(schema) } : {}) };
}

function operationOf(value: Json, shared: Json): SwaggerOperation {
  const parameters = parametersOf(value['parameters'], shared);
  return {
    ...extensionsOf(value),
    tags: textsOf(value['tags']),
    description: textOf(value['description']),
    operationId: textOf(value['operationId']),
    consumes: textsOf(value['consumes']),
    produces: textsOf(value['produces']),
    schemes: textsOf(value['schemes']),
    ...(value['deprecated'] === true ? { deprecated: true } : {}),
    ...(parameters.length > 0 ? { parameters } : {}),
    responses: isJsonObject(value['responses']) ? mapped(value['responses'], responseOf) : {},
  };
}

function pathItemOf(value: unknown, shared: Json): SwaggerPathItem {
  if (!isJsonObject(value)) return {};
  const parameters = parametersOf(value['parameters'], shared);
  const operations = methods.flatMap((method) => {
    const operation = value[method];
    return isJsonObject(operation) ? [[method, operationOf(operation, shared)]] : [];
  });
  return { ...Object.fromEntries(operations), ...(parameters.length > 0 ? { parameters } : {}) };
}

/** Calls `change` for every reference to a definition in a value, and returns the value with the results. */
function withReferences<T>(value: T, change: (name: string) => string): T {
  if (Array.isArray(value)) return value.map((item) => withReferences(item, change)) as T;
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([word, child]) => [
      word,
      word === '$ref' && typeof child === 'string' && child.startsWith(reference)
        ? reference + change(child.slice(reference.length))
        : withReferences(child, change),
    ]),
  ) as T;
}

/** The part of another server's document about a version of a group; undefined when it has none. */
export function swaggerPart(document: unknown, { group, version }: GroupVersion): SwaggerPart | undefined {
  if (!isJsonObject(document) || !isJsonObject(document['paths'])) return undefined;
  const shared = isJsonObject(document['parameters']) ? document['parameters'] : {};
  const all = isJsonObject(document['definitions']) ? document['definitions'] : {};
  const root = `/apis/${group}/${version}/`;
  const paths = Object.fromEntries(
    Object.entries(document['paths'])
      .filter(([path]) => path.startsWith(root))
      .map(([path, item]) => [path, pathItemOf(item, shared)]),
  );
  const definitions: Record<string, SwaggerSchema> = {};
  const use = (value: unknown): void => {
    withReferences(value, (name) => {
      if (!Object.hasOwn(definitions, name) && Object.hasOwn(all, name)) {
        definitions[name] = schemaOf(all[name]);
        use(definitions[name]);
      }
      return name;
    });
  };
  use(paths);
  return Object.keys(paths).length === 0 ? undefined : { paths, definitions };
}

const kindsWord = 'x-kubernetes-group-version-kind';

const withoutKinds = ({ [kindsWord]: _, ...schema }: SwaggerSchema): SwaggerSchema => schema;

/** Merges two equal definitions into one that lists the kinds of both. */
function joined(a: SwaggerSchema, b: SwaggerSchema): SwaggerSchema {
  const kinds = [...(a[kindsWord] ?? [])];
  for (const kind of Array.isArray(b[kindsWord]) ? b[kindsWord] : [])
    if (!kinds.some((known) => isDeepStrictEqual(known, kind))) kinds.push(kind);
  return kinds.length === 0 ? a : { ...a, [kindsWord]: kinds };
}

type Definitions = SwaggerDocument['definitions'];
type Rename = (name: string) => string;

/**
 * Maximum number of passes over the definitions to find names for them. A definition that refers to others can be
 * compared only under their final names, so a new name requires a further pass.
 */
const maxAttempts = 8;

/**
 * Finds the names for the definitions `added` to a document with the definitions `known`. A definition that equals a
 * known one gets its name; otherwise the name is one that is not in use.
 */
function namesIn(known: Definitions, added: Definitions): Rename {
  let names = new Map<string, string>();
  const rename: Rename = (name) => names.get(name) ?? name;
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const next = new Map(
      Object.entries(added).map(([name, schema]) => {
        const fits = (free: string) => {
          const existing = known[free];
          if (existing === undefined) return true;
          const seen = withReferences(schema, (used) => (used === name ? free : rename(used)));
          return isDeepStrictEqual(withoutKinds(existing), withoutKinds(seen));
        };
        return [name, firstName(name, fits)];
      }),
    );
    if (isDeepStrictEqual(next, names)) return rename;
    names = next;
  }
  names = new Map(Object.keys(added).map((name) => [name, firstName(name, (free) => known[free] === undefined)]));
  return rename;
}

function firstName(name: string, fits: (name: string) => boolean): string {
  let free = name;
  for (let i = 2; !fits(free); i++) free = `${name}_v${i}`;
  return free;
}

/**
 * A document with the parts of other servers. Paths that exist already remain; a definition that differs from the one
 * with its name gets a number as a suffix, as in kube-aggregator.
 */
export function mergeSwagger(own: SwaggerDocument, parts: readonly SwaggerPart[]): SwaggerDocument {
  const paths: Record<string, SwaggerPathItem> = { ...own.paths };
  const definitions: Record<string, SwaggerSchema> = { ...own.definitions };
  for (const part of parts) {
    const rename = namesIn(definitions, part.definitions);
    for (const [name, schema] of Object.entries(part.definitions)) {
      const known = definitions[rename(name)];
      definitions[rename(name)] = known ? joined(known, schema) : withReferences(schema, rename);
    }
    for (const [path, item] of Object.entries(part.paths)) paths[path] ??= withReferences(item, rename);
  }
  return { ...own, paths, definitions };
}
