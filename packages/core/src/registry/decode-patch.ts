import { patchMediaTypes } from '../codec/media-type.ts';
import { isStatusError, type StatusError, statusErrors } from '../errors/status-error.ts';
import { isDocumentError, type ParsedDocument } from '../json/document-error.ts';
import { isJsonObject, parseJson } from '../json/json.ts';
import type { Schema } from '../kind/schema.ts';
import { fieldError } from '../meta/field-error.ts';
import type { RequestContext } from '../meta/request-context.ts';
import { StatusReason } from '../meta/status.ts';
import type { AnyObject } from '../meta/types.ts';
import { applyJsonPatch } from '../patch/json-patch.ts';
import { applyMergePatch } from '../patch/merge-patch.ts';
import { isPatchError, type PatchError } from '../patch/patch-budget.ts';
import { applyStrategicMergePatch } from '../patch/strategic-merge-patch.ts';
import {
  type BodyType,
  checkFields,
  type DecodedObject,
  decodeObject,
  settleIdentity,
  settleType,
} from './decode-body.ts';
import type { PatchBody, Target, WriteParameters } from './resource-service.ts';

/** A patch and the document to which it applies. */
export interface PatchRequest {
  readonly context: RequestContext;
  readonly patch: PatchBody;
  readonly parameters: Pick<WriteParameters, 'fieldValidation'>;
  /** Name and namespace that the patched document must keep. */
  readonly target: Required<Pick<Target, 'name'>> & { readonly namespace: string | undefined };
  /** Schema of the document for strategic merge patches; undefined for kinds without a struct schema. */
  readonly schema: Schema<unknown> | undefined;
}

/**
 * Decodes the body of a PATCH: see docs/reference/api-rules.md#patches.
 *
 * @returns A function that applies the patch to a document and decodes the result, once per attempt of the write.
 *   Fields are checked at the first call. It throws StatusError 400, 413, or 422 on the field `patch` when the result
 *   is not of the type.
 * @throws StatusError 400 when the patch is not JSON, or not an object although its type requires one; 413 when it is
 *   too large to parse; 415 when the kind does not support this type of patch.
 */
export function decodePatch(type: BodyType, request: PatchRequest): (document: AnyObject) => DecodedObject {
  const { context, patch, parameters, target, schema } = request;
  const { value, duplicateFields } = parsePatch(patch, schema, parameters.fieldValidation !== 'Ignore');
  let checked = false;
  return (document) => {
    const decoded = decodePatched(type, target.name, applyPatch(patch.type, document, value, schema));
    settleIdentity(target, decoded.object);
    if (!checked) {
      checked = true;
      const fields = { unknownFields: decoded.unknownFields, duplicateFields };
      checkFields(parameters.fieldValidation, fields, context, (text) => unusable(type, target.name, text));
    }
    return decoded;
  };
}

/** Media types of the patches that need no schema. */
const openPatchTypes = Object.entries(patchMediaTypes).flatMap(([mediaType, type]) =>
  type === 'strategic' ? [] : [mediaType],
);

function parsePatch(patch: PatchBody, schema: Schema<unknown> | undefined, duplicates: boolean): ParsedDocument {
  if (patch.type === 'strategic' && schema === undefined) throw statusErrors.unsupportedMediaType(openPatchTypes);
  let parsed: ParsedDocument;
  try {
    parsed = parseJson(patch.bytes, { duplicates });
  } catch (error) {
    if (!isDocumentError(error)) throw error;
    if (error.reason === 'tooLarge') throw statusErrors.tooLarge(`Request entity too large: ${error.message}`);
    throw statusErrors.badRequest(`error decoding patch: ${error.message}`, error);
  }
  if (patch.type !== 'json' && !isJsonObject(parsed.value))
    throw statusErrors.badRequest('error decoding patch: not an object');
  return parsed;
}

/** Returns a new document. @throws StatusError 400, 413 or 422. */
function applyPatch(
  type: PatchBody['type'],
  document: AnyObject,
  patch: unknown,
  schema: Schema<unknown> | undefined,
): unknown {
  try {
    if (type === 'json') return applyJsonPatch(document, patch);
    if (type === 'merge') return applyMergePatch(document, patch);
    return schema === undefined ? document : applyStrategicMergePatch(document, patch, schema);
  } catch (error) {
    if (isPatchError(error)) throw statusOf(error);
    throw error;
  }
}

function statusOf(error: PatchError): StatusError {
  switch (error.kind) {
    case 'malformed':
      return statusErrors.badRequest(error.message, error);
    case 'tooLarge':
      return statusErrors.tooLarge(error.message);
    case 'unprocessable':
      return statusErrors.unprocessable(error);
    default: {
      const unknown: never = error.kind;
      return statusErrors.internal(`unknown patch failure ${String(unknown)}`, error);
    }
  }
}

/** The error for a patch whose result does not have the type of the document. */
function unusable(type: BodyType, name: string, why: string): StatusError {
  return statusErrors.invalid(type, name, [fieldError.invalid('patch', '', why)]);
}

function decodePatched(type: BodyType, name: string, patched: unknown): DecodedObject {
  if (!isJsonObject(patched)) throw unusable(type, name, 'the result is not an object');
  const object = patched as AnyObject;
  try {
    settleType(type, object);
    return decodeObject(type, object);
  } catch (error) {
    if (isStatusError(error, StatusReason.BadRequest)) throw unusable(type, name, error.message);
    throw error;
  }
}
