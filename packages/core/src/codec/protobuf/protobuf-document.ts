import type { Schema } from '../../kind/schema.ts';
import { isDocumentError } from '../document-error.ts';
import { parseJson } from '../json.ts';
import { jsonMediaType } from '../media-type.ts';
import { decodeEnvelope, encodeEnvelope } from './envelope.ts';
import { protobufDecoderOf, protobufEncoderOf } from './protobuf-codec.ts';
import { ProtobufSyntaxError } from './wire.ts';

/** A whole body with an object of a schema; `kind` and `apiVersion` travel in the envelope. */
export function encodeProtobufObject(
  schema: Schema<unknown>,
  apiVersion: string,
  kind: string,
  object: unknown,
): Buffer {
  return encodeEnvelope(apiVersion, kind, protobufEncoderOf(schema)(object));
}

/** What a reader of bodies expects. */
export interface ProtobufBodyType {
  readonly kind: string;
  /** Absent: every version has the same form. */
  readonly apiVersion?: string;
  readonly schema: Schema<unknown>;
}

/** Media type of protobuf under any brand. */
const protobufType = /^application\/vnd\.[^/;\s]+\.protobuf$/;

/**
 * Reads a body as the value that an equal JSON body would parse to, `kind` and `apiVersion` included where the envelope
 * has them. An object of another type than `type` is not looked into: it comes with these two fields alone, for the
 * caller to refuse by name.
 *
 * @throws ProtobufSyntaxError when the bytes are no envelope, or its content is not in a form that is known here.
 */
export function parseProtobufBody(bytes: Buffer, type: ProtobufBodyType): Record<string, unknown> {
  const { apiVersion, kind, raw, contentEncoding, contentType } = decodeEnvelope(bytes);
  const named = { ...(kind === '' ? {} : { kind }), ...(apiVersion === '' ? {} : { apiVersion }) };
  if (kind !== '' && kind !== type.kind) return named;
  if (apiVersion !== '' && type.apiVersion !== undefined && apiVersion !== type.apiVersion) return named;
  if (contentEncoding !== '') throw new ProtobufSyntaxError('the object in the envelope is encoded in an unknown way');
  if (contentType === '' || protobufType.test(contentType))
    return Object.assign(named, protobufDecoderOf(type.schema)(raw));
  if (contentType !== jsonMediaType)
    throw new ProtobufSyntaxError('the object in the envelope is neither protobuf nor JSON');
  return { ...named, ...jsonObject(raw) };
}

function jsonObject(raw: Buffer): object {
  try {
    const { value } = parseJson(raw);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch (error) {
    if (!isDocumentError(error)) throw error;
    throw new ProtobufSyntaxError(`the object in the envelope is not JSON: ${error.message}`, { cause: error });
  }
  throw new ProtobufSyntaxError('the object in the envelope is not an object');
}
