import { type StatusError, statusErrors } from '../errors/status-error.ts';
import { isJsonObject } from '../json/json.ts';
import type { Schema } from '../kind/schema.ts';
import type { SubresourceDefinition } from '../kind/subresource.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { AnyObject } from '../meta/types.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import { ActionOperation, type ParentOperations } from './action-operation.ts';
import { type OperationOptions, optionsOfPatch } from './admission.ts';
import { applyConfig, parseApplied } from './apply-patch.ts';
import { type BodyType, type DecodedObject, decodeBody, decodeObject, settleIdentity } from './decode-body.ts';
import type { WriteMode, WrittenObject } from './object-writer.ts';
import { requirePreconditions } from './object-writer.ts';
import { bodyTypeOf, type ObjectTarget, objectTarget, type ResourceBinding } from './resource-binding.ts';
import type { Answer, Body, PatchBody, Target, WriteParameters } from './resource-service.ts';
import { decodePatch } from './update-operations.ts';

/** Subresources that change a part of their parent. */
type PartDefinition = Extract<SubresourceDefinition, { type: 'projection' | 'replace' }>;

/**
 * How a write of a part of an object works. The body of `projection` (such as `scale`) has a kind of its own; the body
 * of `replace` (such as `finalize`) is the complete object, of which everything but the part is ignored.
 */
interface Part {
  readonly type: BodyType;
  /** Schema of the document to which a patch applies. */
  readonly schema: Schema<unknown> | undefined;
  readonly mode: WriteMode;
  /** The document to which a patch applies. */
  readonly document: (old: AnyObject, current: StoredObject) => AnyObject;
  /** Copies the part that the subresource may change from the body into the parent. */
  readonly apply: (parent: AnyObject, body: AnyObject) => void;
  readonly answer: (written: WrittenObject) => Answer;
}

/**
 * Converts the configuration of an apply to `scale` into one for the parent, which contains the identity of the parent
 * and the number of replicas.
 */
function parentConfig(
  { kind }: ResourceBinding,
  { replicasPath = ['spec', 'replicas'] }: Extract<PartDefinition, { type: 'projection' }>,
  { metadata, ['spec']: spec }: AnyObject,
): AnyObject {
  const config: AnyObject = { apiVersion: kind.apiVersion, kind: kind.kind, ...(metadata ? { metadata } : {}) };
  const replicas = isJsonObject(spec) ? spec['replicas'] : undefined;
  if (replicas === undefined) return config;
  let value: unknown = replicas;
  for (const name of [...replicasPath].reverse()) value = { [name]: value };
  return { ...config, ...(value as AnyObject) };
}

function isReadable(subresource: SubresourceDefinition): boolean {
  return subresource.type === 'status' || (subresource.type === 'replace' && subresource.patchable === true);
}

/**
 * The operations on subresources: see docs/reference/api-rules.md#subresources. An operation that the type of a
 * subresource does not support is a 405.
 */
export class SubresourceOperations {
  readonly #binding: ResourceBinding;
  readonly #parent: ParentOperations;
  readonly #action: ActionOperation;

  constructor(binding: ResourceBinding, parent: ParentOperations) {
    this.#binding = binding;
    this.#parent = parent;
    this.#action = new ActionOperation(binding, parent);
  }

  async get(context: RequestContext, target: Target, subresource: SubresourceDefinition): Promise<Answer> {
    const object = objectTarget(this.#binding, target);
    if (subresource.type === 'projection') {
      const parent = this.#binding.read(await this.#parent.reads.stored(context, object));
      return { object: subresource.read(parent), code: 200 };
    }
    if (!isReadable(subresource)) throw this.#unsupported(subresource, 'get');
    return { stored: await this.#parent.reads.stored(context, object), kind: this.#binding.kind, code: 200 };
  }

  async update(
    context: RequestContext,
    target: Target,
    subresource: SubresourceDefinition,
    body: Body,
    parameters: WriteParameters,
  ): Promise<Answer> {
    if (subresource.type === 'status') return this.#parent.updates.update(context, target, body, parameters, 'status');
    if (subresource.type !== 'projection' && subresource.type !== 'replace')
      throw this.#unsupported(subresource, 'update');
    const object = objectTarget(this.#binding, target);
    const part = this.#partOf(context, subresource);
    const settle = (decoded: AnyObject) => settleIdentity(object, decoded);
    const decode = await decodeBody(part.type, { context, body, parameters, settle });
    return this.#write(context, object, subresource, { kind: 'UpdateOptions', parameters }, part, decode);
  }

  async patch(
    context: RequestContext,
    target: Target,
    subresource: SubresourceDefinition,
    patch: PatchBody,
    parameters: WriteParameters,
  ): Promise<Answer> {
    if (subresource.type === 'status') return this.#parent.updates.patch(context, target, patch, parameters, 'status');
    const object = objectTarget(this.#binding, target);
    if (subresource.type !== 'projection' && !(subresource.type === 'replace' && subresource.patchable))
      throw this.#unsupported(subresource, 'patch');
    const part = this.#partOf(context, subresource);
    if (patch.type === 'apply') {
      const config = parseApplied(part.type, { context, patch, parameters });
      return this.#apply(context, object, subresource, parameters, part, config);
    }
    const apply = decodePatch(part.type, { context, patch, parameters, target: object, schema: part.schema });
    return this.#write(context, object, subresource, optionsOfPatch(parameters), part, (old, current) =>
      apply(part.document(old, current)),
    );
  }

  async create(
    context: RequestContext,
    target: Target,
    subresource: SubresourceDefinition,
    body: Body,
    parameters: WriteParameters,
  ): Promise<Answer> {
    if (subresource.type !== 'action') throw this.#unsupported(subresource, 'create');
    return this.#action.run(context, objectTarget(this.#binding, target), subresource, body, parameters);
  }

  #partOf(context: RequestContext, subresource: PartDefinition): Part {
    const binding = this.#binding;
    if (subresource.type === 'projection') {
      return {
        type: bodyTypeOf(binding, subresource),
        schema: subresource.schema,
        mode: 'spec',
        document: (old) => subresource.read(old) as AnyObject,
        apply: (parent, body) => subresource.write(parent, body),
        answer: ({ stored, object }) => ({
          object: subresource.read(stored ? binding.read(stored) : object),
          code: 200,
        }),
      };
    }
    return {
      type: binding.bodyType,
      schema: binding.kind.structural ? binding.kind.schema : undefined,
      mode: 'raw',
      document: (_old, current) => binding.read(current),
      apply: (parent, body) => subresource.apply(parent, body, binding.strategyContext(context)),
      answer: (written) => this.#parent.writer.answer(written),
    };
  }

  /** An apply to a subresource. It is executed as an apply of the corresponding fields of the parent. */
  async #apply(
    context: RequestContext,
    target: ObjectTarget,
    subresource: PartDefinition,
    parameters: WriteParameters,
    part: Part,
    config: AnyObject,
  ): Promise<Answer> {
    const binding = this.#binding;
    const isProjection = subresource.type === 'projection';
    const request = {
      config: isProjection ? parentConfig(binding, subresource, config) : config,
      target,
      subresource: subresource.name,
      parameters,
    };
    const written = await this.#parent.writer.write({
      context,
      target,
      subresource: subresource.name,
      mode: part.mode,
      dryRun: parameters.dryRun,
      options: optionsOfPatch(parameters),
      propose: (old, current) => {
        const applied = applyConfig(binding, old, request);
        if (isProjection) {
          part.apply(applied.object, subresource.read(applied.object) as AnyObject);
          return applied;
        }
        const parent = binding.read(current);
        part.apply(parent, applied.object);
        const managedFields = applied.object.metadata?.managedFields;
        const { uid, resourceVersion } = applied.object.metadata ?? {};
        parent.metadata = { ...parent.metadata, ...(managedFields ? { managedFields } : {}) };
        requirePreconditions(parent, { uid, resourceVersion });
        return { ...decodeObject(binding.bodyType, parent), isApplied: true };
      },
    });
    return part.answer(written);
  }

  /** Writes the parent with the changed part. The uid and resourceVersion of the body are preconditions. */
  async #write(
    context: RequestContext,
    target: ObjectTarget,
    subresource: PartDefinition,
    options: Extract<OperationOptions, { readonly parameters: WriteParameters }>,
    part: Part,
    decode: (old: AnyObject, current: StoredObject) => DecodedObject,
  ): Promise<Answer> {
    const binding = this.#binding;
    const written = await this.#parent.writer.write({
      context,
      target,
      subresource: subresource.name,
      mode: part.mode,
      dryRun: options.parameters.dryRun,
      options,
      propose: (old, current) => {
        const { object, errors } = decode(old, current);
        if (errors.length > 0) throw statusErrors.invalid(part.type, target.name, errors);
        const parent = binding.read(current);
        part.apply(parent, object);
        const decoded = decodeObject(binding.bodyType, parent);
        // A projection without resourceVersion replaces any version, even where the kind requires one.
        if (subresource.type === 'replace') delete decoded.object.metadata?.resourceVersion;
        requirePreconditions(decoded.object, object.metadata ?? {});
        return decoded;
      },
    });
    return part.answer(written);
  }

  #unsupported(subresource: SubresourceDefinition, verb: string): StatusError {
    const { group, resource } = this.#binding.resource;
    return statusErrors.methodNotAllowed({ group, resource: `${resource}/${subresource.name}` }, verb);
  }
}
