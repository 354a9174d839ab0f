import { statusErrors } from '../errors/status-error.ts';
import { decoderOf } from '../kind/decoder.ts';
import type { SubresourceDefinition } from '../kind/subresource.ts';
import type { RequestContext } from '../meta/request-context.ts';
import { apiVersionOf } from '../meta/types.ts';
import { type BodyType, type DecodedObject, decodeObject, parseBody, settleType } from './decode-body.ts';
import { decodePatch } from './decode-patch.ts';
import { checkFields } from './field-validation.ts';
import type { AnyObject } from './json-values.ts';
import { type ObjectTarget, settleIdentity } from './object-target.ts';
import type { Proposal } from './object-writer.ts';
import type { ParentOperations } from './parent-access.ts';
import { patchFieldCheck, patchObject } from './patch-operation.ts';
import type { ResourceBinding } from './resource-binding.ts';
import type { Answer, Body, PatchBody, WriteParameters } from './resource-service.ts';

type Projection = Extract<SubresourceDefinition, { type: 'projection' }>;

/** The body type of a subresource that has one of its own. */
export function bodyTypeOf(
  binding: ResourceBinding,
  subresource: Extract<SubresourceDefinition, { readonly bodyKind: unknown }>,
): BodyType {
  const apiVersion = apiVersionOf(subresource.bodyKind);
  return {
    group: subresource.bodyKind.group,
    version: subresource.bodyKind.version,
    kind: subresource.bodyKind.kind,
    apiVersion,
    schema: subresource.schema,
    decode: decoderOf(subresource.schema),
    isRegistered: binding.services.isRegistered,
  };
}

/**
 * GET, PUT and PATCH of a part of an object that is represented as an object of its own, such as `scale`: see
 * docs/reference/api-rules.md#subresources.
 */
export class ProjectionOperations {
  readonly #binding: ResourceBinding;
  readonly #parent: ParentOperations;

  constructor(binding: ResourceBinding, parent: ParentOperations) {
    this.#binding = binding;
    this.#parent = parent;
  }

  async get(context: RequestContext, target: ObjectTarget, projection: Projection): Promise<Answer> {
    const parent = this.#binding.read(await this.#parent.get.stored(context, target));
    return { object: projection.read(parent), code: 200 };
  }

  async update(
    context: RequestContext,
    target: ObjectTarget,
    projection: Projection,
    body: Body,
    parameters: WriteParameters,
  ): Promise<Answer> {
    const type = bodyTypeOf(this.#binding, projection);
    const parsed = parseBody(type, body, parameters.fieldValidation !== 'Ignore');
    settleType(type, parsed.value);
    const decoded = decodeObject(type, parsed.value);
    settleIdentity(target, decoded.object);
    checkFields(
      parameters.fieldValidation,
      { unknownFields: decoded.unknownFields, duplicateFields: parsed.duplicateFields },
      context,
    );
    return this.#write(context, target, projection, parameters, () => decoded);
  }

  async patch(
    context: RequestContext,
    target: ObjectTarget,
    projection: Projection,
    body: PatchBody,
    parameters: WriteParameters,
  ): Promise<Answer> {
    const type = bodyTypeOf(this.#binding, projection);
    const patch = decodePatch(body, projection.schema, parameters.fieldValidation !== 'Ignore');
    const check = patchFieldCheck(type, target.name, patch, context, parameters);
    return this.#write(context, target, projection, parameters, (old) => {
      const shown = projection.read(old) as AnyObject;
      const decoded = patchObject(type, target.name, patch, shown);
      settleIdentity(target, decoded.object);
      check(decoded);
      return decoded;
    });
  }

  /** Applies what the client wants the projection to be to the parent, whose version the projection carries. */
  async #write(
    context: RequestContext,
    target: ObjectTarget,
    projection: Projection,
    parameters: WriteParameters,
    wanted: (old: AnyObject) => DecodedObject,
  ): Promise<Answer> {
    const written = await this.#parent.writer.write({
      context,
      target,
      subresource: projection.name,
      mode: 'spec',
      dryRun: parameters.dryRun,
      propose: (old, current): Proposal => {
        const { object, errors } = wanted(old);
        if (errors.length > 0) throw statusErrors.invalid(projection.bodyKind, target.name, errors);
        const parent = this.#binding.read(current);
        projection.write(parent, object);
        const decoded = decodeObject(this.#binding.bodyType, parent);
        const { uid, resourceVersion } = object.metadata ?? {};
        const meta = { ...decoded.object.metadata };
        delete meta.resourceVersion;
        decoded.object.metadata = {
          ...meta,
          ...(uid ? { uid } : {}),
          ...(resourceVersion ? { resourceVersion } : {}),
        };
        return decoded;
      },
    });
    const parent = written.stored ? this.#binding.read(written.stored) : written.object;
    return { object: projection.read(parent), code: 200 };
  }
}
