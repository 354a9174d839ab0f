import type { RequestContext } from '../meta/request-context.ts';
import { decodeObject, parseBody, settleType } from './decode-body.ts';
import { checkFields } from './field-validation.ts';
import { prepareNewObject } from './new-object.ts';
import { objectTarget, settleIdentity } from './object-target.ts';
import type { ObjectWriter, WriteMode } from './object-writer.ts';
import { checkUid } from './preconditions.ts';
import type { ResourceBinding } from './resource-binding.ts';
import type { Answer, Body, Target, WriteParameters } from './resource-service.ts';
import { nextTurn } from './turns.ts';

/** PUT of an object or of its status: see docs/reference/api-rules.md#order-of-a-write. */
export class UpdateOperation {
  readonly #binding: ResourceBinding;
  readonly #writer: ObjectWriter;

  constructor(binding: ResourceBinding, writer: ObjectWriter) {
    this.#binding = binding;
    this.#writer = writer;
  }

  async run(
    context: RequestContext,
    target: Target,
    body: Body,
    parameters: WriteParameters,
    mode: Extract<WriteMode, 'spec' | 'status'> = 'spec',
  ): Promise<Answer> {
    const binding = this.#binding;
    binding.requireVerb('update');
    const place = objectTarget(binding, target);
    const parsed = parseBody(binding.bodyType, body, parameters.fieldValidation !== 'Ignore');
    settleType(binding.bodyType, parsed.value);
    await nextTurn(body.bytes.length);
    const decode = () => {
      const decoded = decodeObject(binding.bodyType, parsed.value);
      settleIdentity(place, decoded.object);
      return decoded;
    };

    // Decoded once here, so that a body in doubt is refused before anything is read; attempts after the first decode
    // again.
    let first: ReturnType<typeof decode> | undefined = decode();
    checkFields(
      parameters.fieldValidation,
      { unknownFields: first.unknownFields, duplicateFields: parsed.duplicateFields },
      context,
    );
    await nextTurn(body.bytes.length);
    const next = () => {
      const decoded = first ?? decode();
      first = undefined;
      return decoded;
    };
    const create = async () => {
      const decoded = next();
      const meta = decoded.object.metadata ?? {};
      checkUid(binding, place.name, meta.uid, undefined);
      delete meta.resourceVersion;
      return prepareNewObject(binding, context, decoded, parameters.dryRun);
    };
    const written = await this.#writer.write({
      context,
      target: place,
      mode,
      dryRun: parameters.dryRun,
      propose: next,
      ...(mode === 'status' ? { subresource: 'status' } : binding.kind.strategy.allowCreateOnUpdate ? { create } : {}),
    });
    return this.#writer.answer(written);
  }
}
