import { statusErrors } from '../errors/status-error.ts';
import type { SubresourceDefinition } from '../kind/subresource.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import { type DecodedObject, decodeObject, parseBody, settleType } from './decode-body.ts';
import { decodePatch } from './decode-patch.ts';
import { checkFields } from './field-validation.ts';
import { type ObjectTarget, settleIdentity } from './object-target.ts';
import type { ObjectWriter } from './object-writer.ts';
import { patchFieldCheck, patchObject } from './patch-operation.ts';
import type { ResourceBinding } from './resource-binding.ts';
import type { Answer, Body, PatchBody, WriteParameters } from './resource-service.ts';

/** The definition of a subresource of this type. */
export type Replace = Extract<SubresourceDefinition, { type: 'replace' }>;

/**
 * PUT and PATCH of one part of an object by a body that is the whole object, such as `finalize`; everything else keeps
 * its stored value.
 */
export class ReplaceOperation {
  readonly #binding: ResourceBinding;
  readonly #writer: ObjectWriter;

  constructor(binding: ResourceBinding, writer: ObjectWriter) {
    this.#binding = binding;
    this.#writer = writer;
  }

  async update(
    context: RequestContext,
    target: ObjectTarget,
    subresource: Replace,
    body: Body,
    parameters: WriteParameters,
  ): Promise<Answer> {
    const { bodyType } = this.#binding;
    const parsed = parseBody(bodyType, body, parameters.fieldValidation !== 'Ignore');
    settleType(bodyType, parsed.value);
    const given = decodeObject(bodyType, parsed.value);
    settleIdentity(target, given.object);
    checkFields(
      parameters.fieldValidation,
      { unknownFields: given.unknownFields, duplicateFields: parsed.duplicateFields },
      context,
    );
    return this.#write(context, target, subresource, parameters, () => given);
  }

  async patch(
    context: RequestContext,
    target: ObjectTarget,
    subresource: Replace,
    body: PatchBody,
    parameters: WriteParameters,
  ): Promise<Answer> {
    const { kind, bodyType } = this.#binding;
    const patch = decodePatch(body, kind.structural ? kind.schema : undefined, parameters.fieldValidation !== 'Ignore');
    const check = patchFieldCheck(bodyType, target.name, patch, context, parameters);
    return this.#write(context, target, subresource, parameters, (current) => {
      const decoded = patchObject(bodyType, target.name, patch, this.#binding.read(current));
      settleIdentity(target, decoded.object);
      check(decoded);
      return decoded;
    });
  }

  async #write(
    context: RequestContext,
    target: ObjectTarget,
    subresource: Replace,
    parameters: WriteParameters,
    wanted: (current: StoredObject) => DecodedObject,
  ): Promise<Answer> {
    const binding = this.#binding;
    const written = await this.#writer.write({
      context,
      target,
      subresource: subresource.name,
      mode: 'raw',
      dryRun: parameters.dryRun,
      propose: (_old, current) => {
        const given = wanted(current);
        if (given.errors.length > 0) throw statusErrors.invalid(binding.kind, target.name, given.errors);
        const next = binding.read(current);
        subresource.apply(next, given.object, binding.strategyContext(context));
        const decoded = decodeObject(binding.bodyType, next);
        const { uid, resourceVersion } = given.object.metadata ?? {};
        const meta = { ...decoded.object.metadata };
        delete meta.resourceVersion;
        decoded.object.metadata = { ...meta, ...(uid ? { uid } : {}), ...(resourceVersion ? { resourceVersion } : {}) };
        return decoded;
      },
    });
    return this.#writer.answer(written);
  }
}
