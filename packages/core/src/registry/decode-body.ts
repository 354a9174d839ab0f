import { isDocumentError, type ParsedDocument } from '../codec/document-error.ts';
import { parseJson } from '../codec/json.ts';
import { hasProtobufForm } from '../codec/protobuf/protobuf-codec.ts';
import { type ProtobufBodyType, parseProtobufBody } from '../codec/protobuf/protobuf-document.ts';
import { parseYaml } from '../codec/yaml.ts';
import { type StatusError, statusErrors } from '../errors/status-error.ts';
import { isDecodeTypeError } from '../kind/decoder.ts';
import type { Schema } from '../kind/schema.ts';
import type { FieldError } from '../meta/field-error.ts';
import { isJsonObject } from '../patch/json-value.ts';
import type { AnyObject } from './json-values.ts';
import type { Body } from './resource-service.ts';

/** A type that a body can be of: a kind, or the body kind of a subresource. */
export interface BodyType {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly apiVersion: string;
  /** What a body in protobuf is read by. */
  readonly schema: Schema<unknown>;
  readonly decode: (input: unknown) => {
    readonly value: unknown;
    readonly unknownFields: readonly string[];
    readonly errors: readonly FieldError[];
  };
  readonly isRegistered: (apiVersion: string, kind: string) => boolean;
}

/** A body as JSON, before its schema has been applied. */
export interface ParsedBody {
  readonly value: AnyObject;
  readonly duplicateFields: readonly string[];
}

/**
 * An object in the shape of its schema. An object with `errors` is rejected when it is validated: see
 * docs/reference/api-rules.md#order-of-a-write.
 */
export interface DecodedObject {
  readonly object: AnyObject;
  readonly errors: readonly FieldError[];
  readonly unknownFields: readonly string[];
}

const shownBytes = 30;

function unrecognized(type: Pick<BodyType, 'kind'>, why: string, bytes: Buffer, cause?: unknown): StatusError {
  const start = bytes.subarray(0, shownBytes);
  return statusErrors.badRequest(
    `the object provided is unrecognized (must be of type ${type.kind}): ${why} (${start.toString('hex')} ${JSON.stringify(start.toString('latin1'))})`,
    cause,
  );
}

function parse(type: ProtobufBodyType, { bytes, format }: Body, duplicates: boolean): ParsedDocument {
  if (format === 'protobuf') return { value: parseProtobufBody(bytes, type), duplicateFields: [] };
  return format === 'yaml' ? parseYaml(bytes) : parseJson(bytes, { duplicates });
}

/**
 * Reads a body without looking at its fields. A protobuf body comes out as the JSON of the same content; one that
 * claims to be another type has nothing but that claim.
 *
 * @throws StatusError 400 when it is empty, not in the format it claims, or not an object; 415 for protobuf where the
 *   type has no such form.
 */
export function parseBody(type: ProtobufBodyType, body: Body, duplicates: boolean): ParsedBody {
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
  return { value: parsed.value as AnyObject, duplicateFields: parsed.duplicateFields };
}

function typeWord(value: unknown): string {
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
      throw cannotBeHandled(type, `field ${field}: expected string, got ${typeWord(given)}`);
    }
  }
  const { kind = '', apiVersion = '' } = value;
  if (kind !== type.kind) {
    if (!type.isRegistered(apiVersion, kind)) {
      throw statusErrors.badRequest(
        `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)}`,
      );
    }
    throw statusErrors.badRequest(
      `${kind} in version ${JSON.stringify(apiVersion)} cannot be handled as a ${type.kind}: this path takes objects of kind ${type.kind}`,
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
 * Gives a parsed body the shape of its schema. Every call makes a new object, so a body can be decoded once per
 * attempt.
 *
 * @throws StatusError 400 naming the field when a value has the wrong JSON type.
 */
export function decodeObject(type: BodyType, value: AnyObject): DecodedObject {
  value.metadata ??= {};
  try {
    const decoded = type.decode(value);
    return { object: decoded.value as AnyObject, errors: decoded.errors, unknownFields: decoded.unknownFields };
  } catch (error) {
    if (isDecodeTypeError(error)) {
      throw cannotBeHandled(type, `field ${error.path}: expected ${error.expected}, got ${error.got}`, error);
    }
    throw error;
  }
}
