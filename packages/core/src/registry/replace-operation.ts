import { statusErrors } from '../errors/status-error.ts';
import type { SubresourceDefinition } from '../kind/subresource.ts';
import type { RequestContext } from '../meta/request-context.ts';
import { decodeObject, parseBody, settleType } from './decode-body.ts';
import { checkFields } from './field-validation.ts';
import { type ObjectTarget, settleIdentity } from './object-target.ts';
import type { ObjectWriter } from './object-writer.ts';
import type { ResourceBinding } from './resource-binding.ts';
import type { Answer, Body, WriteParameters } from './resource-service.ts';

type Replace = Extract<SubresourceDefinition, { type: 'replace' }>;

/** PUT of one part of an object by a body that is the whole object, such as `finalize`; everything else keeps its stored value. */
export class ReplaceOperation {
  readonly #binding: ResourceBinding;
  readonly #writer: ObjectWriter;

  constructor(binding: ResourceBinding, writer: ObjectWriter) {
    this.#binding = binding;
    this.#writer = writer;
  }

  async run(
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
    const written = await this.#writer.write({
      context,
      target,
      subresource: subresource.name,
      mode: 'raw',
      dryRun: parameters.dryRun,
      propose: (_old, current) => {
        if (given.errors.length > 0) throw statusErrors.invalid(this.#binding.kind, target.name, given.errors);
        const next = this.#binding.read(current);
        subresource.apply(next, given.object);
        const decoded = decodeObject(bodyType, next);
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
