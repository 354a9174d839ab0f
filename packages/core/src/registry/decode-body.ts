import { hasProtobufForm, type ProtobufBodyType, parseProtobufBody } from '../codec/protobuf/protobuf-codec.ts';
import { parseYaml } from '../codec/yaml.ts';
import { type StatusError, statusErrors } from '../errors/status-error.ts';
import { isDocumentError, type ParsedDocument } from '../json/document-error.ts';
import { isJsonObject, parseJson } from '../json/json.ts';
import { isDecodeTypeError } from '../kind/decoder.ts';
import type { Schema } from '../kind/schema.ts';
import type { FieldError } from '../meta/field-error.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { AnyObject } from '../meta/types.ts';
import { dropRepeatedOwners } from './common-fields.ts';
import type { ObjectTarget } from './resource-binding.ts';
import { nextTurn } from './resource-binding.ts';
import type { Body, FieldValidation, WriteParameters } from './resource-service.ts';

/** The type that a request body must have: a kind, or the body kind of a subresource. */
export interface BodyType {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly apiVersion: string;
  /** Decodes bodies in protobuf. */
  readonly schema: Schema<unknown>;
  readonly decode: (
    input: unknown,
    options?: { readonly keepNulls?: boolean },
  ) => {
    readonly value: unknown;
    readonly unknownFields: readonly string[];
    readonly errors: readonly FieldError[];
  };
  readonly isRegistered: (apiVersion: string, kind: string) => boolean;
}

/**
 * An object in the shape of its schema. An object with `errors` is rejected when it is validated: see
 * docs/reference/api-rules.md#order-of-a-write.
 */
export interface DecodedObject {
  readonly object: AnyObject;
  readonly errors: readonly FieldError[];
  readonly unknownFields: readonly string[];
  /** True for the result of an apply, whose managedFields already include this write. */
  readonly isApplied?: boolean;
}

/** A request body and the way to decode it. */
export interface BodyRequest {
  readonly context: RequestContext;
  readonly body: Body;
  readonly parameters: Pick<WriteParameters, 'fieldValidation'>;
  /** Compares the name and namespace of the body with those of the path and completes them. Changes the object. */
  readonly settle: (object: AnyObject) => void;
  /** Further API versions in which a body has the same fields as in the version of the type. */
  readonly otherApiVersions?: readonly string[];
}

/**
 * Decodes the body of a POST or PUT: steps 1 to 3 of docs/reference/api-rules.md#order-of-a-write. Fields are checked
 * before anything is read from the store.
 *
 * @returns A function that gives a new object at every call, one for each attempt of the write.
 * @throws StatusError 400, 413 or 415.
 */
export async function decodeBody(type: BodyType, request: BodyRequest): Promise<() => DecodedObject> {
  const { context, body, parameters, settle, otherApiVersions = [] } = request;
  const size = body.bytes.length;
  const anyVersion = { kind: type.kind, schema: type.schema };
  const { value, ...repeated } = parseBody(
    otherApiVersions.length === 0 ? type : anyVersion,
    body,
    parameters.fieldValidation !== 'Ignore',
  );
  if (otherApiVersions.includes(value.apiVersion ?? '')) value.apiVersion = type.apiVersion;
  settleType(type, value);
  const parsed = nextTurn(size);
  if (parsed) await parsed;
  let first: DecodedObject | undefined = decodeObject(type, value);
  checkFields(parameters.fieldValidation, { unknownFields: first.unknownFields, ...repeated }, context, (text) =>
    cannotBeHandled(type, text),
  );
  const complete = ({ object }: DecodedObject) => {
    settle(object);
    dropRepeatedOwners(object.metadata, context.warn);
  };
  complete(first);
  const decoded = nextTurn(size);
  if (decoded) await decoded;
  return () => {
    if (first !== undefined) {
      const object = first;
      first = undefined;
      return object;
    }
    const again = decodeObject(type, value);
    complete(again);
    return again;
  };
}

/** A body as JSON, before its schema has been applied. */
interface ParsedBody {
  readonly value: AnyObject;
  readonly duplicateFields: readonly string[];
  readonly repeatedKeys?: readonly string[];
}

/** Number of bytes of a malformed body in the error message. */
const quotedBytes = 30;

function unrecognized(type: Pick<BodyType, 'kind'>, why: string, bytes: Buffer, cause?: unknown): StatusError {
  const start = bytes.subarray(0, quotedBytes);
  const quoted = `${start.toString('hex')} ${JSON.stringify(start.toString('latin1'))}`;
  return statusErrors.badRequest(
    `the object provided is unrecognized (must be of type ${type.kind}): ${why} (${quoted})`,
    cause,
  );
}

function parse(type: ProtobufBodyType, { bytes, format }: Body, duplicates: boolean): ParsedDocument {
  if (format === 'protobuf') return { value: parseProtobufBody(bytes, type), duplicateFields: [] };
  return format === 'yaml' ? parseYaml(bytes) : parseJson(bytes, { duplicates });
}

/**
 * Parses a body without its schema. A protobuf body becomes JSON of the same content. A protobuf body of another type
 * becomes an object with kind and apiVersion only, which {@link settleType} rejects.
 *
 * @throws StatusError 400 when it is empty, malformed or not an object; 413 when it is too large to parse; 415 for
 *   protobuf when the type has no protobuf form.
 */
function parseBody(type: ProtobufBodyType, body: Body, duplicates: boolean): ParsedBody {
  const { bytes, format } = body;
  if (format === 'protobuf' && !hasProtobufForm(type.schema)) {
    throw statusErrors.unsupportedMediaType(['application/json', 'application/yaml']);
  }
  if (bytes.length === 0)
    throw statusErrors.badRequest(`object provided is unrecognized (must be of type ${type.kind}): the body is empty`);
  let parsed: ParsedDocument;
  try {
    parsed = parse(type, body, duplicates);
  } catch (error) {
    if (!isDocumentError(error)) throw error;
    if (error.reason === 'tooLarge') throw statusErrors.tooLarge(`Request entity too large: ${error.message}`);
    throw unrecognized(type, error.message, bytes, error);
  }
  if (!isJsonObject(parsed.value)) throw unrecognized(type, 'the body is not an object', bytes);
  return { ...parsed, value: parsed.value as AnyObject };
}

function jsonTypeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

/**
 * Compares kind and apiVersion with those of the path, and sets them where the body has none: see
 * docs/reference/api-rules.md#types-of-bodies. Changes `value`.
 *
 * @throws StatusError 400.
 */
export function settleType(type: BodyType, value: AnyObject): void {
  for (const field of ['kind', 'apiVersion'] as const) {
    const given: unknown = value[field];
    if (given === undefined || given === null || given === '') {
      value[field] = type[field];
    } else if (typeof given !== 'string') {
      throw cannotBeHandled(type, `field ${field}: expected string, got ${jsonTypeOf(given)}`);
    }
  }
  const { kind = '', apiVersion = '' } = value;
  if (kind !== type.kind) {
    const inVersion = `version ${JSON.stringify(apiVersion)}`;
    if (!type.isRegistered(apiVersion, kind)) {
      throw statusErrors.badRequest(`no kind ${JSON.stringify(kind)} is registered for ${inVersion}`);
    }
    throw statusErrors.badRequest(
      `${kind} in ${inVersion} cannot be handled as a ${type.kind}: this path takes objects of kind ${type.kind}`,
    );
  }
  if (apiVersion !== type.apiVersion) {
    throw statusErrors.badRequest(
      `the API version in the data (${apiVersion}) does not match the expected API version (${type.apiVersion})`,
    );
  }
}

function cannotBeHandled(type: BodyType, why: string, cause?: unknown): StatusError {
  return statusErrors.badRequest(
    `${type.kind} in version ${JSON.stringify(type.version)} cannot be handled as a ${type.kind}: ${why}`,
    cause,
  );
}

/**
 * Converts parsed JSON into the shape of its schema. The result is a new object at every call.
 *
 * @throws StatusError 400 with the name of the field when a value has the wrong JSON type.
 */
export function decodeObject(
  type: BodyType,
  value: AnyObject,
  options?: { readonly keepNulls?: boolean },
): DecodedObject {
  value.metadata ??= {};
  try {
    const decoded = type.decode(value, options);
    return { object: decoded.value as AnyObject, errors: decoded.errors, unknownFields: decoded.unknownFields };
  } catch (error) {
    if (isDecodeTypeError(error)) {
      throw cannotBeHandled(type, `field ${error.path}: expected ${error.expected}, got ${error.got}`, error);
    }
    throw error;
  }
}

/** Maximum number of fields that one message lists; further ones are omitted. */
const listedFields = 100;

/**
 * Applies `fieldValidation` to the fields of a body that its schema does not contain and to those that it contains
 * twice: see docs/reference/api-rules.md#field-validation.
 *
 * @throws StatusError The result of `rejection`.
 */
export function checkFields(
  mode: FieldValidation | undefined,
  fields: { readonly unknownFields: readonly string[] } & Omit<ParsedDocument, 'value'>,
  context: RequestContext,
  rejection: (text: string) => StatusError,
): void {
  // Repeated keys of a YAML document are in both lists. `repeatedKeys` has the texts that Kubernetes reports, so it is
  // preferred.
  const { repeatedKeys = [] } = fields;
  const duplicateFields = repeatedKeys.length > 0 ? [] : fields.duplicateFields;
  if (mode === 'Ignore') return;
  const texts = [
    ...fields.unknownFields.map((path) => `unknown field ${JSON.stringify(path)}`),
    ...duplicateFields.map((path) => `duplicate field ${JSON.stringify(path)}`),
  ].slice(0, listedFields);
  if (texts.length === 0 && repeatedKeys.length === 0) return;
  if (mode === 'Strict') {
    const repeated = repeatedKeys.length === 0 ? [] : [`yaml: unmarshal errors:\n  ${repeatedKeys.join('\n  ')}`];
    throw rejection(`strict decoding error: ${[...repeated, ...texts].join(', ')}`);
  }
  for (const text of [...repeatedKeys, ...texts]) context.warn(text);
}

/** Completes the namespace of a body. @throws The error of `mismatch` when the body names another namespace. */
function completeNamespace(
  namespace: string | undefined,
  object: AnyObject,
  mismatch: (given: string, expected: string) => string,
): void {
  const meta = object.metadata ?? {};
  object.metadata = meta;
  if (namespace === undefined) delete meta.namespace;
  else if (meta.namespace === undefined || meta.namespace === '') meta.namespace = namespace;
  else if (meta.namespace !== namespace) throw statusErrors.badRequest(mismatch(meta.namespace, namespace));
}

/**
 * Compares the namespace of a new object with that of the path and sets it: see
 * docs/reference/api-rules.md#server-set-metadata. Changes `object`.
 *
 * @throws StatusError 400.
 */
export function settleNamespace(namespace: string | undefined, object: AnyObject): void {
  completeNamespace(
    namespace,
    object,
    () => 'the namespace of the provided object does not match the namespace sent on the request',
  );
}

/**
 * Compares the name and namespace of a body with those of the path: steps 2 and 3 of
 * docs/reference/api-rules.md#order-of-a-write. Changes `object`.
 *
 * @throws StatusError 400.
 */
export function settleIdentity(target: Pick<ObjectTarget, 'name' | 'namespace'>, object: AnyObject): void {
  const name = object.metadata?.name;
  if (!name) {
    throw statusErrors.badRequest(
      `the name of the object (${target.name} based on URL) was undeterminable: name must be provided`,
    );
  }
  if (name !== target.name) {
    throw statusErrors.badRequest(
      `the name of the object (${name}) does not match the name on the URL (${target.name})`,
    );
  }
  completeNamespace(
    target.namespace,
    object,
    (given, expected) =>
      `the namespace of the object (${given}) does not match the namespace on the request (${expected})`,
  );
}
