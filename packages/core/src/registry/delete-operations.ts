import { isStatusError, statusErrors } from '../errors/status-error.ts';
import { isStorageError, StorageErrorCode } from '../errors/storage-error.ts';
import type { RequestContext } from '../meta/request-context.ts';
import { type Status, StatusReason } from '../meta/status.ts';
import type { AnyObject } from '../meta/types.ts';
import { ObjectList } from '../storage/object-list.ts';
import type { UpdateDecision } from '../storage/resource-storage.ts';
import type { Key } from '../storage/store.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import { checkDeleteParameters, type DeletionPlan, planDeletion } from './deletion-plan.ts';
import { checkDeletePreconditions } from './object-writer.ts';
import type { ReadOperations } from './read-operations.ts';
import { isStorable, type ObjectTarget, objectTarget, type ResourceBinding, signalOption } from './resource-binding.ts';
import type { Answer, DeleteParameters, ListAnswer, SelectParameters, Target } from './resource-service.ts';

/** Number of objects per page of the list when the client sets no limit. */
const pageSize = 500;
/** Number of concurrent deletes. */
const concurrency = 16;

/** The result of one delete. */
interface DeletedObject {
  readonly plan: DeletionPlan;
  /** The object after the deletion plan was applied to it. */
  readonly object: AnyObject;
  /** The last stored state of the object; absent in a dry run. */
  readonly stored?: StoredObject;
}

/** DELETE of one object and of a collection. */
export class DeleteOperations {
  readonly #binding: ResourceBinding;
  readonly #reads: ReadOperations;

  constructor(binding: ResourceBinding, reads: ReadOperations) {
    this.#binding = binding;
    this.#reads = reads;
  }

  /** DELETE of one object: see docs/reference/api-rules.md#order-of-a-delete. */
  async delete(context: RequestContext, target: Target, parameters: DeleteParameters): Promise<Answer> {
    this.#binding.requireVerb('delete');
    checkDeleteParameters(parameters);
    this.#warn(context, parameters);
    return this.#answer(parameters, await this.remove(context, objectTarget(this.#binding, target), parameters));
  }

  #warn(context: RequestContext, { propagationPolicy, orphanDependents }: DeleteParameters): void {
    const text = this.#binding.kind.strategy.propagationWarning;
    if (text !== undefined && propagationPolicy === undefined && orphanDependents === undefined) context.warn(text);
  }

  /** Deletes an object with parameters that have been checked. Each attempt starts from the stored object. */
  async remove(
    context: RequestContext,
    target: ObjectTarget,
    parameters: DeleteParameters,
    byAction = false,
  ): Promise<DeletedObject> {
    const { kind, resource, storage } = this.#binding;
    const why = kind.strategy.undeletable?.(target.name);
    if (why !== undefined) throw statusErrors.forbidden(resource, target.name, why);
    if (!isStorable(target)) throw statusErrors.notFound(resource, target.name);
    const signal = signalOption(context);
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
      await this.#admit(context, target, object, parameters, byAction);
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
    const { object: stored, outcome } = await storage.update(target.key, decide, signal);
    if (outcome === 'deleted') await this.#binding.allocator?.release(object);
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

  async #admit(
    context: RequestContext,
    target: ObjectTarget,
    oldObject: AnyObject,
    parameters: DeleteParameters,
    byAction: boolean,
  ): Promise<void> {
    const { kind, services } = this.#binding;
    await services.admission.admit({
      operation: 'delete',
      kind,
      namespace: target.namespace,
      name: target.name,
      subresource: undefined,
      object: undefined,
      oldObject,
      dryRun: parameters.dryRun,
      options: { kind: 'DeleteOptions', parameters },
      byAction,
      context,
    });
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

  /** DELETE of a collection: see docs/reference/api-rules.md#delete-of-a-collection. */
  async deleteCollection(
    context: RequestContext,
    target: Target,
    parameters: DeleteParameters,
    select: SelectParameters,
  ): Promise<ListAnswer> {
    this.#binding.requireVerb('deletecollection');
    checkDeleteParameters(parameters, true);
    this.#warn(context, parameters);
    if (select.limit !== undefined && select.limit > 0) {
      const page = await this.#reads.list(context, target, select);
      await this.#removeAll(context, page, parameters);
      return page;
    }
    // A state with a given resourceVersion is read in one page, because a limit would select another state.
    const deleted: StoredObject[] = [];
    let first: ListAnswer | undefined;
    let next: SelectParameters | undefined = select.resourceVersion === '' ? { ...select, limit: pageSize } : select;
    while (next !== undefined) {
      const page: ListAnswer = await this.#page(context, target, next);
      await this.#removeAll(context, page, parameters);
      first ??= page;
      for (const object of page.list.objects()) deleted.push(object);
      next = page.continue === '' ? undefined : { ...next, continue: page.continue };
    }
    const revision = first?.list.revision ?? 0;
    return { kind: this.#binding.kind, list: new ObjectList(deleted, revision), continue: '' };
  }

  /** One page of the list. When its snapshot has expired, the page continues at the latest state. */
  async #page(context: RequestContext, target: Target, select: SelectParameters): Promise<ListAnswer> {
    try {
      return await this.#reads.list(context, target, select);
    } catch (error) {
      const token = isStatusError(error, StatusReason.Expired) ? error.status.metadata.continue : undefined;
      if (token === undefined) throw error;
      return this.#reads.list(context, target, { ...select, continue: token });
    }
  }

  /** The first error stops the deletion: running deletes are completed, no further ones are started. */
  async #removeAll(context: RequestContext, page: ListAnswer, parameters: DeleteParameters): Promise<void> {
    const objects = page.list.objects()[Symbol.iterator]();
    let failed = false;
    const work = async () => {
      for (let item = objects.next(); !item.done && !failed; item = objects.next()) {
        try {
          await this.remove(context, this.#targetOf(item.value.key), parameters);
        } catch (error) {
          if (isStatusError(error, StatusReason.NotFound)) continue;
          failed = true;
          throw error;
        }
      }
    };
    const results = await Promise.allSettled(Array.from({ length: concurrency }, work));
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }

  #targetOf(key: Key): ObjectTarget {
    const path = key.slice(this.#binding.prefix.length);
    if (this.#binding.kind.scope === 'Cluster') return { namespace: undefined, name: path, key };
    const slash = path.indexOf('/');
    return { namespace: path.slice(0, slash), name: path.slice(slash + 1), key };
  }
}
