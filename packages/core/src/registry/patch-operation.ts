import { isStatusError, type StatusError, statusErrors } from '../errors/status-error.ts';
import { fieldError } from '../meta/field-error.ts';
import type { RequestContext } from '../meta/request-context.ts';
import { StatusReason } from '../meta/status.ts';
import { isJsonObject } from '../patch/json-value.ts';
import { type BodyType, type DecodedObject, decodeObject, settleType } from './decode-body.ts';
import { type DecodedPatch, decodePatch } from './decode-patch.ts';
import { checkFields } from './field-validation.ts';
import type { AnyObject } from './json-values.ts';
import { objectTarget, settleIdentity } from './object-target.ts';
import type { ObjectWriter, WriteMode } from './object-writer.ts';
import type { ResourceBinding } from './resource-binding.ts';
import type { Answer, PatchBody, Target, WriteParameters } from './resource-service.ts';
import { nextTurn } from './turns.ts';

/**
 * The error for a patch whose result does not have the type of the document: 422 on the field `patch`. See
 * docs/reference/api-rules.md#patches.
 */
function unusable(type: BodyType, name: string, why: string): StatusError {
  return statusErrors.invalid(type, name, [fieldError.invalid('patch', '', why)]);
}

/**
 * Applies a patch to a document and gives the result the shape of its type.
 *
 * @throws StatusError what the patch is refused with; 422 on the field `patch` when its result is not of the type.
 */
export function patchObject(type: BodyType, name: string, patch: DecodedPatch, document: AnyObject): DecodedObject {
  const patched = patch.apply(document);
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

/** Remarks on or refuses fields that a patch brought in; only once per request, however many attempts it takes. */
export function patchFieldCheck(
  type: BodyType,
  name: string,
  patch: DecodedPatch,
  context: RequestContext,
  parameters: WriteParameters,
): (decoded: DecodedObject) => void {
  let done = false;
  return (decoded) => {
    if (done) return;
    done = true;
    checkFields(
      parameters.fieldValidation,
      { unknownFields: decoded.unknownFields, duplicateFields: patch.duplicateFields },
      context,
      (text) => unusable(type, name, text),
    );
  };
}

/**
 * PATCH of an object or of its status: see docs/reference/api-rules.md#patches. The patch is applied again after a
 * concurrent write, unless it has a resourceVersion, which then conflicts.
 */
export class PatchOperation {
  readonly #binding: ResourceBinding;
  readonly #writer: ObjectWriter;

  constructor(binding: ResourceBinding, writer: ObjectWriter) {
    this.#binding = binding;
    this.#writer = writer;
  }

  async run(
    context: RequestContext,
    target: Target,
    body: PatchBody,
    parameters: WriteParameters,
    mode: Extract<WriteMode, 'spec' | 'status'> = 'spec',
  ): Promise<Answer> {
    const binding = this.#binding;
    binding.requireVerb('patch');
    const { kind, bodyType } = binding;
    const patch = decodePatch(body, kind.structural ? kind.schema : undefined, parameters.fieldValidation !== 'Ignore');
    await nextTurn(body.bytes.length);
    const place = objectTarget(binding, target);
    const check = patchFieldCheck(bodyType, place.name, patch, context, parameters);
    const written = await this.#writer.write({
      context,
      target: place,
      mode,
      dryRun: parameters.dryRun,
      ...(mode === 'status' ? { subresource: 'status' } : {}),
      propose: (_old, current) => {
        const decoded = patchObject(bodyType, place.name, patch, binding.read(current));
        settleIdentity(place, decoded.object);
        check(decoded);
        return decoded;
      },
    });
    return this.#writer.answer(written);
  }
}
