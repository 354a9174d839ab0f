import { statusErrors } from '../errors/status-error.ts';
import { isStorageError, StorageErrorCode } from '../errors/storage-error.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { Status } from '../meta/status.ts';
import type { UpdateDecision } from '../storage/resource-storage.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import { checkDeleteParameters } from './delete-parameters.ts';
import { type DeletionPlan, planDeletion } from './deletion-plan.ts';
import type { AnyObject } from './json-values.ts';
import { isStorable, type ObjectTarget, objectTarget } from './object-target.ts';
import { checkDeletePreconditions } from './preconditions.ts';
import type { ResourceBinding } from './resource-binding.ts';
import type { Answer, DeleteParameters, Target } from './resource-service.ts';

/** How one delete ended. */
interface DeletedObject {
  readonly plan: DeletionPlan;
  /** The object as the plan left it. */
  readonly object: AnyObject;
  /** Absent in a dry run. */
  readonly stored?: StoredObject;
}

/** DELETE of one object: see docs/reference/api-rules.md#order-of-a-delete. */
export class DeleteOperation {
  readonly #binding: ResourceBinding;

  constructor(binding: ResourceBinding) {
    this.#binding = binding;
  }

  async run(context: RequestContext, target: Target, parameters: DeleteParameters): Promise<Answer> {
    this.#binding.requireVerb('delete');
    checkDeleteParameters(parameters);
    return this.#answer(parameters, await this.remove(context, objectTarget(this.#binding, target), parameters));
  }

  /** The delete itself, with parameters that have been checked; one attempt is one look at the stored object. */
  async remove(context: RequestContext, target: ObjectTarget, parameters: DeleteParameters): Promise<DeletedObject> {
    const { kind, resource, storage } = this.#binding;
    const why = kind.strategy.undeletable?.(target.name);
    if (why !== undefined) throw statusErrors.forbidden(resource, target.name, why);
    if (!isStorable(target)) throw statusErrors.notFound(resource, target.name);
    const signal = context.signal ? { signal: context.signal } : {};
    if (parameters.ignoreStoreReadErrorWithClusterBreakingPotential) await this.#mayIgnoreReadErrors(context, target);
    let plan: DeletionPlan = 'keep';
    let object: AnyObject = {};
    const decide = async (current: StoredObject | undefined): Promise<UpdateDecision> => {
      context.signal?.throwIfAborted();
      if (current === undefined) throw statusErrors.notFound(resource, target.name);
      if (parameters.ignoreStoreReadErrorWithClusterBreakingPotential && this.#isUnreadable(current)) {
        object = { metadata: { name: target.name } };
        plan = 'remove';
        return { do: 'delete' };
      }
      object = this.#binding.read(current);
      checkDeletePreconditions(this.#binding, target.name, parameters, object.metadata);
      await this.#admit(context, target, object, parameters.dryRun);
      plan = planDeletion(object, parameters, kind.strategy, this.#binding.strategyContext(context));
      if (plan === 'keep') return { do: 'keep' };
      if (plan === 'remove') return { do: 'delete' };
      const ttlMs = kind.strategy.ttlMs?.(object);
      return { do: 'write', json: this.#binding.encode(object), ...(ttlMs === undefined ? {} : { ttlMs }) };
    };
    if (parameters.dryRun) {
      await decide(await storage.get(target.key, { at: 'latest' }, signal));
      return { plan, object };
    }
    const { object: stored } = await storage.update(target.key, decide, signal);
    return { plan, object, stored };
  }

  /**
   * Requires the verb that Kubernetes requires besides `delete`: see
   * docs/reference/api-rules.md#options-of-a-delete.
   */
  async #mayIgnoreReadErrors(context: RequestContext, target: ObjectTarget): Promise<void> {
    const { kind, resource, services } = this.#binding;
    const verb = 'unsafe-delete-ignore-read-errors';
    const attributes = {
      verb,
      isResourceRequest: true,
      apiGroup: kind.group,
      apiVersion: kind.version,
      namespace: target.namespace ?? '',
      resource: resource.resource,
      subresource: '',
      name: target.name,
      path: '',
    };
    const { allowed, reason } = await services.authorizer.authorize(attributes, context.user);
    if (allowed) return;
    const text = `not permitted to do ${JSON.stringify(verb)}, reason: ${reason ?? ''}`;
    throw statusErrors.forbidden(resource, target.name, text);
  }

  #isUnreadable(current: StoredObject): boolean {
    try {
      this.#binding.read(current);
      return false;
    } catch (error) {
      if (isStorageError(error, StorageErrorCode.Corrupt)) return true;
      throw error;
    }
  }

  async #admit(context: RequestContext, target: ObjectTarget, oldObject: AnyObject, dryRun: boolean): Promise<void> {
    const { kind, services } = this.#binding;
    const request = {
      operation: 'delete',
      kind,
      namespace: target.namespace,
      name: target.name,
      subresource: undefined,
      object: undefined,
      oldObject,
      dryRun,
      context,
    } as const;
    const mutating = services.admission.mutate(request);
    if (mutating) await mutating;
    const validating = services.admission.validate(request);
    if (validating) await validating;
  }

  #answer(parameters: DeleteParameters, deleted: DeletedObject): Answer {
    const { kind, resource } = this.#binding;
    const { plan, object, stored } = deleted;
    const removed = plan === 'remove';
    if (!removed || kind.strategy.deleteReturnsObject) {
      const code = !removed && parameters.orphanDependents === false ? 202 : 200;
      return stored ? { stored, kind, code } : { object, code };
    }
    const status: Status = {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Success',
      details: {
        name: object.metadata?.name ?? '',
        ...(resource.group === '' ? {} : { group: resource.group }),
        kind: resource.resource,
        ...(object.metadata?.uid === undefined ? {} : { uid: object.metadata.uid }),
      },
    };
    return { object: status, code: 200 };
  }
}
