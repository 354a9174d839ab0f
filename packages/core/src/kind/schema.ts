import type { JsonSchema } from './json-schema.ts';

/**
 * Schemas of kinds. A schema is a small immutable tree; everything else (static type, decoding, defaulting,
 * OpenAPI, protobuf descriptors, merge keys) is derived from it. Building one costs an object literal, so a
 * process may declare thousands of fields without a noticeable start-up.
 */

/** How lists behave in patches and server-side apply: the values of the `x-kubernetes-*` extensions. */
export interface ListTraits {
  /**
   * Strategic merge: `merge` with a key for lists of objects, `merge` without one for sets of scalars; absent =
   * replaced whole.
   */
  readonly patchMergeKey?: string;
  readonly patchStrategy?: 'merge' | 'merge,retainKeys' | 'replace';
  readonly listType?: 'atomic' | 'set' | 'map';
  readonly listMapKeys?: readonly string[];
  readonly minItems?: number;
  readonly maxItems?: number;
}

/** Constraints on a string; a violation is a 422 with the field's path. */
export interface StringTraits {
  readonly enum?: readonly string[];
  /**
   * Accepted values that OpenAPI documents state as `enum`, but the strategy of the kind checks: it gives other
   * messages, or accepts further values.
   */
  readonly values?: readonly string[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
}

/** Inclusive bounds; a violation is a 422 with the field's path. */
export interface NumberTraits {
  readonly minimum?: number;
  readonly maximum?: number;
}

/**
 * For kinds whose schema is a JSON Schema received through the API (CustomResourceDefinition): how their objects are
 * decoded and documented.
 */
export interface JsonSchemaForm {
  /**
   * Completes and prunes the fields besides the metadata; `unknown` receives the paths of fields that are dropped. With
   * `keepNulls` a null of a field that is not nullable and has no default remains, for the validation to reject it.
   */
  readonly complete: (
    object: Readonly<Record<string, unknown>>,
    unknown: (path: string) => void,
    keepNulls?: boolean,
  ) => object;
  /** The schema in OpenAPI documents, without apiVersion, kind and metadata. */
  readonly published: () => JsonSchema;
}

/** What a schema describes: a scalar, or a list, map or message of schemas. */
export type SchemaNode =
  | ({ readonly type: 'string' } & StringTraits)
  | ({ readonly type: 'int32' | 'int64' | 'double' } & NumberTraits)
  | { readonly type: 'bool' }
  /** base64 text in JSON. */
  | { readonly type: 'bytes' }
  | { readonly type: 'time' | 'microTime' }
  /** Go duration text, e.g. `1h30m`. */
  | { readonly type: 'duration' }
  | { readonly type: 'quantity' }
  | { readonly type: 'intOrString' }
  /** Any JSON object, kept verbatim (RawExtension, FieldsV1). */
  | { readonly type: 'raw' }
  /** Any JSON value, kept verbatim. */
  | { readonly type: 'any' }
  | ({ readonly type: 'list'; readonly items: Schema<unknown> } & ListTraits)
  | { readonly type: 'map'; readonly values: Schema<unknown>; readonly mapType?: 'atomic' }
  /** One of several types in JSON. In protobuf it is a message with one field for each of them. */
  | {
      readonly type: 'union';
      readonly message: Schema<unknown>;
      /** The field of the message that a JSON value belongs to; undefined for values of another type. */
      readonly fieldOf: (json: unknown) => string | undefined;
      /** The allowed types, as error messages name them. */
      readonly expected: string;
    }
  | {
      readonly type: 'message';
      /** Full protobuf-style name, e.g. `k8s.io.api.core.v1.Pod`. */
      readonly name: string;
      readonly description: string;
      /** Server-side apply treats the whole object as one leaf (`x-kubernetes-map-type: atomic`). */
      readonly mapType?: 'atomic';
      /** Present: `fields` only describe the structure, for patches and server-side apply. */
      readonly json?: JsonSchemaForm;
      /** Fields in the order in which they are encoded. */
      readonly fields: Readonly<Record<string, Field<unknown, boolean>>>;
    };

/** A schema whose JSON values have the static type `T`. */
export interface Schema<T> {
  readonly node: SchemaNode;
  /** Phantom: carries `T`, never set. */
  readonly '~type'?: T;
}

/** Static type of a schema: `type Pod = Infer<typeof PodSchema>`. */
export type Infer<S> = S extends { readonly '~type'?: infer T } ? Exclude<T, undefined> : never;

/** A field of a message. `Present`: the field is always present in the static type. */
export interface Field<T, Present extends boolean> {
  /** Phantom: carries `Present`, never set. */
  readonly '~present'?: Present;
  readonly schema: Schema<T>;
  /** Protobuf field number; absent = the message has no protobuf form. */
  readonly number?: number;
  readonly description: string;
  /** Listed under `required` in OpenAPI. */
  readonly required: boolean;
  /**
   * What an absent field becomes when decoded: `error` = 422 "Required value"; `zero` = the type's zero value (`""`, 0,
   * false, [], {}), as Go servers write it; `absent` = remains absent.
   */
  readonly whenAbsent: 'error' | 'zero' | 'absent';
  /**
   * Static default, applied when the field is absent or null. Defaults that depend on other fields belong to the
   * strategy.
   */
  readonly default?: unknown;
  /** The fields of the nested message appear directly in the parent's JSON object; in protobuf they stay nested. */
  readonly inline?: boolean;
  /**
   * Strategic merge of a message: `replace` = a patch replaces it whole; `retainKeys` = clients state the keys that
   * remain.
   */
  readonly patchStrategy?: 'retainKeys' | 'replace';
  /**
   * Exists in JSON alone, like `kind` and `apiVersion` of an object: has no number, and the message has a protobuf form
   * all the same.
   */
  readonly jsonOnly?: boolean;
  /**
   * The zero value of the optional scalar, or the empty list, differs from absence, as for pointers in Go types.
   * Without it, a zero value in a message with a protobuf form means that the field is absent: Go writes all zeros in
   * protobuf and none in JSON.
   */
  readonly presence?: boolean;
}

type Fields = Readonly<Record<string, Field<unknown, boolean>>>;
type TypeOf<F> = F extends Field<infer T, boolean> ? T : never;
type InlineKeys<F extends Fields> = { [K in keyof F]: F[K] extends { readonly inline: true } ? K : never }[keyof F];
type RequiredKeys<F extends Fields> = {
  [K in keyof F]: F[K] extends { readonly '~present'?: true } ? K : never;
}[keyof F];
type UnionToIntersection<U> = (U extends unknown ? (u: U) => void : never) extends (i: infer I) => void ? I : never;
type InlineTypes<F extends Fields> = [InlineKeys<F>] extends [never]
  ? unknown
  : UnionToIntersection<TypeOf<F[InlineKeys<F>]>>;

/** Object type of a record of fields: fields that are always present are mandatory, inlined messages are spread. */
export type FieldsType<F extends Fields> = {
  [K in Exclude<RequiredKeys<F>, InlineKeys<F>>]: TypeOf<F[K]>;
} & { [K in Exclude<keyof F, RequiredKeys<F> | InlineKeys<F>>]?: TypeOf<F[K]> } & InlineTypes<F>;

/** What `s.object` takes: fields, or bare schemas for fields that a client must give. */
type ObjectFields = Readonly<Record<string, Schema<unknown> | Field<unknown, boolean>>>;
type ObjectFieldsOf<F extends ObjectFields> = {
  readonly [K in keyof F]: F[K] extends Field<unknown, boolean>
    ? F[K]
    : F[K] extends Schema<infer T>
      ? Field<T, true>
      : never;
};

/** Options of a field besides number, schema and description. */
export interface FieldOptions {
  readonly default?: unknown;
  readonly patchStrategy?: 'retainKeys' | 'replace';
  readonly jsonOnly?: boolean;
  readonly presence?: boolean;
}

/** Builders of schemas. */
export const s = {
  string: (traits: StringTraits = {}): Schema<string> => ({ node: { type: 'string', ...traits } }),
  /** A string out of a closed set; anything else is a 422 `Unsupported value`. */
  enum: <const E extends readonly string[]>(...values: E): Schema<E[number]> => ({
    node: { type: 'string', enum: values },
  }),
  int32: (traits: NumberTraits = {}): Schema<number> => ({ node: { type: 'int32', ...traits } }),
  int64: (traits: NumberTraits = {}): Schema<number> => ({ node: { type: 'int64', ...traits } }),
  double: (traits: NumberTraits = {}): Schema<number> => ({ node: { type: 'double', ...traits } }),
  bool: (): Schema<boolean> => ({ node: { type: 'bool' } }),
  bytes: (): Schema<string> => ({ node: { type: 'bytes' } }),
  time: (): Schema<string> => ({ node: { type: 'time' } }),
  microTime: (): Schema<string> => ({ node: { type: 'microTime' } }),
  duration: (): Schema<string> => ({ node: { type: 'duration' } }),
  quantity: (): Schema<string> => ({ node: { type: 'quantity' } }),
  intOrString: (): Schema<number | string> => ({ node: { type: 'intOrString' } }),
  raw: (): Schema<Record<string, unknown>> => ({ node: { type: 'raw' } }),
  any: (): Schema<unknown> => ({ node: { type: 'any' } }),
  list: <T>(items: Schema<T>, traits: ListTraits = {}): Schema<T[]> => ({ node: { type: 'list', items, ...traits } }),
  /** List of objects merged by `key` in strategic merge patches. */
  listByKey: <T>(items: Schema<T>, key: string, traits: ListTraits = {}): Schema<T[]> => ({
    node: {
      type: 'list',
      items,
      patchStrategy: 'merge',
      patchMergeKey: key,
      listType: 'map',
      listMapKeys: [key],
      ...traits,
    },
  }),
  /** List of scalars merged as a set. */
  set: <T>(items: Schema<T>, traits: ListTraits = {}): Schema<T[]> => ({
    node: { type: 'list', items, patchStrategy: 'merge', listType: 'set', ...traits },
  }),
  map: <T>(values: Schema<T>, traits: { readonly mapType?: 'atomic' } = {}): Schema<Record<string, T>> => ({
    node: { type: 'map', values, ...traits },
  }),
  message: <const F extends Fields>(
    name: string,
    description: string,
    fields: F,
    traits: { readonly mapType?: 'atomic' } = {},
  ): Schema<FieldsType<F>> => ({
    node: { type: 'message', name, description, fields, ...traits },
  }),
  /**
   * Message of a kind without a protobuf form. `defineKind` derives its name from the path of the field that contains
   * it. A field given as a bare schema is required; `optional(...)` and the other builders declare other kinds of
   * fields.
   */
  object: <const F extends ObjectFields>(fields: F, description = ''): Schema<FieldsType<ObjectFieldsOf<F>>> => ({
    node: {
      type: 'message',
      name: '',
      description,
      fields: Object.fromEntries(Object.entries(fields).map(([name, entry]) => [name, toField(entry)])),
    },
  }),
} as const;

function toField(entry: Schema<unknown> | Field<unknown, boolean>): Field<unknown, boolean> {
  return 'schema' in entry ? entry : required(entry, '');
}

function field<T, Present extends boolean>(
  required: boolean,
  whenAbsent: Field<T, Present>['whenAbsent'],
  number: number | undefined,
  schema: Schema<T>,
  description: string,
  options: FieldOptions,
): Field<T, Present> {
  return { schema, description, required, whenAbsent, ...(number === undefined ? {} : { number }), ...options };
}

type FieldWords<T> =
  | [number: number | undefined, schema: Schema<T>, description: string, options?: FieldOptions | undefined]
  | [schema: Schema<T>, description?: string | undefined, options?: FieldOptions | undefined];

/** The arguments of a field builder with the number first; it is undefined for kinds without a protobuf form. */
function orderedWords<T>(words: FieldWords<T>): [number | undefined, Schema<T>, string, FieldOptions] {
  if (typeof words[0] === 'object') {
    const [schema, description = '', options = {}] = words as [Schema<T>, string?, FieldOptions?];
    return [undefined, schema, description, options];
  }
  const [number, schema, description, options = {}] = words as [number | undefined, Schema<T>, string, FieldOptions?];
  return [number, schema, description, options];
}

/** Optional field; `number` is its protobuf number, or undefined for kinds without a protobuf form. */
export function optional<T>(
  number: number | undefined,
  schema: Schema<T>,
  description: string,
  options?: FieldOptions,
): Field<T, false>;
export function optional<T>(schema: Schema<T>, description?: string, options?: FieldOptions): Field<T, false>;
export function optional<T>(...words: FieldWords<T>): Field<T, false> {
  return field(false, 'absent', ...orderedWords(words));
}

/** Field that a client must give: absent is a 422 "Required value". */
export function required<T>(
  number: number | undefined,
  schema: Schema<T>,
  description: string,
  options?: FieldOptions,
): Field<T, true>;
export function required<T>(schema: Schema<T>, description?: string, options?: FieldOptions): Field<T, true>;
export function required<T>(...words: FieldWords<T>): Field<T, true> {
  return field(true, 'error', ...orderedWords(words));
}

/** Field that is always present on the wire and required in OpenAPI: absent becomes the type's zero value. */
export function always<T>(
  number: number | undefined,
  schema: Schema<T>,
  description: string,
  options?: FieldOptions,
): Field<T, true>;
export function always<T>(schema: Schema<T>, description?: string, options?: FieldOptions): Field<T, true>;
export function always<T>(...words: FieldWords<T>): Field<T, true> {
  return field(true, 'zero', ...orderedWords(words));
}

/**
 * Struct that is part of its parent, like the `spec` of a kind: always present on the wire and in the static type
 * (absent becomes `{}` with its own zero values and defaults), yet not required in OpenAPI.
 */
export function embedded<T>(
  number: number | undefined,
  schema: Schema<T>,
  description: string,
  options?: FieldOptions,
): Field<T, true>;
export function embedded<T>(schema: Schema<T>, description?: string, options?: FieldOptions): Field<T, true>;
export function embedded<T>(...words: FieldWords<T>): Field<T, true> {
  return field(false, 'zero', ...orderedWords(words));
}

/**
 * Field that writers may leave out and readers always find on the wire, like a `status`: absent becomes the type's zero
 * value. Optional in the static type and in OpenAPI.
 */
export function filled<T>(
  number: number | undefined,
  schema: Schema<T>,
  description: string,
  options?: FieldOptions,
): Field<T, false>;
export function filled<T>(schema: Schema<T>, description?: string, options?: FieldOptions): Field<T, false>;
export function filled<T>(...words: FieldWords<T>): Field<T, false> {
  return field(false, 'zero', ...orderedWords(words));
}

/** Message whose fields appear directly in the parent's JSON object. */
export function inline<T>(number: number | undefined, schema: Schema<T>): Field<T, false> & { readonly inline: true } {
  return { ...field(false, 'absent', number, schema, '', {}), inline: true };
}
