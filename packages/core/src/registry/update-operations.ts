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
import { optionsOfPatch } from './admission.ts';
import { applyConfig, parseApplied } from './apply-patch.ts';
import { prepareNewObject } from './create-operation.ts';
import {
  type BodyType,
  checkFields,
  type DecodedObject,
  decodeBody,
  decodeObject,
  settleIdentity,
  settleType,
} from './decode-body.ts';
import { checkUid, type ObjectWriter, type WriteMode } from './object-writer.ts';
import { nextTurn, type ObjectTarget, objectTarget, type ResourceBinding } from './resource-binding.ts';
import type { Answer, Body, PatchBody, Target, WriteParameters } from './resource-service.ts';

type UpdateMode = Extract<WriteMode, 'spec' | 'status'>;

/** PUT and PATCH of an object or of its status. */
export class UpdateOperations {
  readonly #binding: ResourceBinding;
  readonly #writer: ObjectWriter;

  constructor(binding: ResourceBinding, writer: ObjectWriter) {
    this.#binding = binding;
    this.#writer = writer;
  }

  /** PUT: see docs/reference/api-rules.md#order-of-a-write. */
  async update(
    context: RequestContext,
    target: Target,
    body: Body,
    parameters: WriteParameters,
    mode: UpdateMode = 'spec',
  ): Promise<Answer> {
    const binding = this.#binding;
    binding.requireVerb('update');
    const object = objectTarget(binding, target);
    const decode = await decodeBody(binding.bodyType, {
      context,
      body,
      parameters,
      settle: (decoded) => settleIdentity(object, decoded),
    });
    const create = async () => {
      const decoded = decode();
      const meta = decoded.object.metadata ?? {};
      checkUid(binding, object.name, meta.uid, undefined);
      delete meta.resourceVersion;
      return prepareNewObject(binding, context, decoded, parameters.dryRun, { kind: 'CreateOptions', parameters });
    };
    const written = await this.#writer.write({
      context,
      target: object,
      mode,
      dryRun: parameters.dryRun,
      options: { kind: 'UpdateOptions', parameters },
      propose: decode,
      ...(mode === 'status' ? { subresource: 'status' } : binding.kind.strategy.allowCreateOnUpdate ? { create } : {}),
    });
    return this.#writer.answer(written);
  }

  /**
   * PATCH: see docs/reference/api-rules.md#patches. The patch is applied again after a concurrent write. When it
   * contains a resourceVersion, the concurrent write is a conflict.
   */
  async patch(
    context: RequestContext,
    target: Target,
    patch: PatchBody,
    parameters: WriteParameters,
    mode: UpdateMode = 'spec',
  ): Promise<Answer> {
    const binding = this.#binding;
    binding.requireVerb('patch');
    const object = objectTarget(binding, target);
    if (patch.type === 'apply') return this.#apply(context, object, patch, parameters, mode);
    const schema = binding.kind.structural ? binding.kind.schema : undefined;
    const apply = decodePatch(binding.bodyType, { context, patch, parameters, target: object, schema });
    await nextTurn(patch.bytes.length);
    const written = await this.#writer.write({
      context,
      target: object,
      mode,
      dryRun: parameters.dryRun,
      options: optionsOfPatch(parameters),
      ...(mode === 'status' ? { subresource: 'status' } : {}),
      propose: (_old, current) => apply(binding.read(current)),
    });
    return this.#writer.answer(written);
  }

  /** An apply, which creates a missing object: see docs/reference/api-rules.md#server-side-apply. */
  async #apply(
    context: RequestContext,
    target: ObjectTarget,
    patch: PatchBody,
    parameters: WriteParameters,
    mode: UpdateMode,
  ): Promise<Answer> {
    const binding = this.#binding;
    const subresource = mode === 'status' ? 'status' : undefined;
    const config = parseApplied(binding.bodyType, { context, patch, parameters });
    await nextTurn(patch.bytes.length);
    const request = { config, target, subresource, parameters };
    const create = () => {
      const decoded = applyConfig(binding, {}, request);
      delete decoded.object.metadata?.resourceVersion;
      return prepareNewObject(
        binding,
        context,
        decoded,
        parameters.dryRun,
        optionsOfPatch(parameters, 'CreateOptions'),
      );
    };
    const written = await this.#writer.write({
      context,
      target,
      mode,
      dryRun: parameters.dryRun,
      options: optionsOfPatch(parameters),
      propose: (old) => applyConfig(binding, old, request),
      ...(subresource === undefined ? { create } : { subresource }),
    });
    return this.#writer.answer(written);
  }
}

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
