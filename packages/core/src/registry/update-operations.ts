import type { RequestContext } from '../meta/request-context.ts';
import { applyConfig, parseApplied } from './apply-patch.ts';
import { prepareNewObject } from './create-operation.ts';
import { decodeBody, settleIdentity } from './decode-body.ts';
import { decodePatch } from './decode-patch.ts';
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
      options: { kind: 'PatchOptions', parameters },
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
      return prepareNewObject(binding, context, decoded, parameters.dryRun, { kind: 'CreateOptions', parameters });
    };
    const written = await this.#writer.write({
      context,
      target,
      mode,
      dryRun: parameters.dryRun,
      options: { kind: 'PatchOptions', parameters },
      propose: (old) => applyConfig(binding, old, request),
      ...(subresource === undefined ? { create } : { subresource }),
    });
    return this.#writer.answer(written);
  }
}
