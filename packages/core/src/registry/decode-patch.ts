import { isDocumentError, type ParsedDocument } from '../codec/document-error.ts';
import { parseJson } from '../codec/json.ts';
import { patchMediaTypes } from '../codec/media-type.ts';
import { type StatusError, statusErrors } from '../errors/status-error.ts';
import type { Schema } from '../kind/schema.ts';
import { applyJsonPatch } from '../patch/json-patch.ts';
import { isJsonObject } from '../patch/json-value.ts';
import { applyMergePatch } from '../patch/merge-patch.ts';
import { isPatchError, type PatchError } from '../patch/patch-error.ts';
import { applyStrategicMergePatch } from '../patch/strategic-merge-patch.ts';
import type { PatchBody } from './resource-service.ts';

/** A patch that has been read, ready to be applied any number of times. */
export interface DecodedPatch {
  readonly duplicateFields: readonly string[];
  /** Returns a new document. @throws StatusError 400, 413 or 422: see docs/reference/api-rules.md#patches. */
  readonly apply: (document: unknown) => unknown;
}

/** Media types of the patches that need no schema. */
const openPatchTypes = Object.entries(patchMediaTypes).flatMap(([mediaType, type]) =>
  type === 'strategic' ? [] : [mediaType],
);

function refused(error: PatchError): StatusError {
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

/**
 * Reads a patch. `schema` is that of the document, undefined for kinds without a struct schema, which take no strategic
 * merge patch.
 *
 * @throws StatusError 400 when it is not JSON or not an object where its type wants one, 415 when the kind does not
 *   take this type.
 */
export function decodePatch(patch: PatchBody, schema: Schema<unknown> | undefined, duplicates: boolean): DecodedPatch {
  if (patch.type === 'strategic' && schema === undefined) {
    throw statusErrors.unsupportedMediaType(openPatchTypes);
  }
  let parsed: ParsedDocument;
  try {
    parsed = parseJson(patch.bytes, { duplicates });
  } catch (error) {
    if (isDocumentError(error) && error.reason === 'tooLarge') {
      throw statusErrors.tooLarge(`Request entity too large: ${error.message}`);
    }
    if (isDocumentError(error)) throw statusErrors.badRequest(`error decoding patch: ${error.message}`, error);
    throw error;
  }
  if (patch.type !== 'json' && !isJsonObject(parsed.value))
    throw statusErrors.badRequest('error decoding patch: not an object');
  return {
    duplicateFields: parsed.duplicateFields,
    apply: (document) => {
      try {
        if (patch.type === 'json') return applyJsonPatch(document, parsed.value);
        if (patch.type === 'merge') return applyMergePatch(document, parsed.value);
        return schema === undefined ? document : applyStrategicMergePatch(document, parsed.value, schema);
      } catch (error) {
        if (isPatchError(error)) throw refused(error);
        throw error;
      }
    },
  };
}
