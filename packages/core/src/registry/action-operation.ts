import { statusErrors } from '../errors/status-error.ts';
import type { ParentAccess, SubresourceDefinition } from '../kind/subresource.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { AnyObject } from '../meta/types.ts';
import { apiVersionOf } from '../meta/types.ts';
import { decodeBody, decodeObject, settleNamespace } from './decode-body.ts';
import type { DeleteOperations } from './delete-operations.ts';
import type { ObjectWriter, WriteMode } from './object-writer.ts';
import { requirePreconditions } from './object-writer.ts';
import type { ReadOperations } from './read-operations.ts';
import { bodyTypeOf, type ObjectTarget, type ResourceBinding } from './resource-binding.ts';
import type { Answer, Body, WriteParameters } from './resource-service.ts';
import type { UpdateOperations } from './update-operations.ts';

type Action = Extract<SubresourceDefinition, { type: 'action' }>;

/** The operations on the parent that subresources use. */
export interface ParentOperations {
  readonly reads: ReadOperations;
  readonly writer: ObjectWriter;
  readonly updates: UpdateOperations;
  readonly deletes: DeleteOperations;
}

/**
 * POST to a subresource that acts on its parent, such as binding, eviction and rollback: see
 * docs/reference/api-rules.md#subresources.
 */
export class ActionOperation {
  readonly #binding: ResourceBinding;
  readonly #parent: ParentOperations;

  constructor(binding: ResourceBinding, parent: ParentOperations) {
    this.#binding = binding;
    this.#parent = parent;
  }

  async run(
    context: RequestContext,
    target: ObjectTarget,
    action: Action,
    body: Body,
    parameters: WriteParameters,
  ): Promise<Answer> {
    const { kind, services } = this.#binding;
    const { dryRun } = parameters;
    const { group } = action.bodyKind;
    const decode = await decodeBody(bodyTypeOf(this.#binding, action), {
      context,
      body,
      parameters,
      settle: (decoded) => settleNamespace(target.namespace, decoded),
      otherApiVersions: (action.otherVersions ?? []).map((version) => apiVersionOf({ group, version })),
    });
    const { object, errors } = decode();
    if (errors.length > 0) throw statusErrors.invalid(action.bodyKind, target.name, errors);
    await services.admission.admit({
      operation: 'create',
      kind,
      namespace: target.namespace,
      name: target.name,
      subresource: action.name,
      object,
      oldObject: undefined,
      dryRun,
      options: { kind: 'CreateOptions', parameters },
      context,
    });
    const { code, object: answer } = await action.run({
      context,
      parent: new StoredParent(this.#binding, this.#parent, context, target, action.name),
      body: object,
      dryRun,
      now: new Date(services.clock.now()),
    });
    return { object: answer, code };
  }
}

/**
 * The stored parent of an action. A change of it is written like an ordinary update, with the name of the subresource.
 */
class StoredParent implements ParentAccess<AnyObject> {
  readonly namespace: string | undefined;
  readonly name: string;
  readonly #binding: ResourceBinding;
  readonly #operations: ParentOperations;
  readonly #context: RequestContext;
  readonly #target: ObjectTarget;
  readonly #subresource: string;

  constructor(
    binding: ResourceBinding,
    operations: ParentOperations,
    context: RequestContext,
    target: ObjectTarget,
    subresource: string,
  ) {
    this.namespace = target.namespace;
    this.name = target.name;
    this.#binding = binding;
    this.#operations = operations;
    this.#context = context;
    this.#target = target;
    this.#subresource = subresource;
  }

  async get(): Promise<AnyObject> {
    return this.#binding.read(await this.#operations.reads.stored(this.#context, this.#target));
  }

  async update(
    change: (parent: AnyObject) => void,
    options: {
      readonly as?: WriteMode;
      readonly resourceVersion?: string;
      readonly uid?: string;
      readonly dryRun?: boolean;
    } = {},
  ): Promise<AnyObject> {
    const written = await this.#operations.writer.write({
      context: this.#context,
      target: this.#target,
      subresource: this.#subresource,
      mode: options.as ?? 'spec',
      dryRun: options.dryRun ?? false,
      byAction: true,
      propose: (_old, current) => {
        const parent = this.#binding.read(current);
        change(parent);
        const decoded = decodeObject(this.#binding.bodyType, parent);
        requirePreconditions(decoded.object, options);
        return decoded;
      },
    });
    return written.stored ? this.#binding.read(written.stored) : written.object;
  }

  async delete(options: {
    readonly gracePeriodSeconds?: number;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly dryRun?: boolean;
  }): Promise<void> {
    const parameters = { ...options, dryRun: options.dryRun ?? false };
    await this.#operations.deletes.remove(this.#context, this.#target, parameters, true);
  }
}
