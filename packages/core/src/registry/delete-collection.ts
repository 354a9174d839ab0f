import { isStatusError } from '../errors/status-error.ts';
import type { RequestContext } from '../meta/request-context.ts';
import { StatusReason } from '../meta/status.ts';
import { kindPrefix } from '../scope/storage-key.ts';
import { ObjectList } from '../storage/object-list.ts';
import type { Key } from '../storage/store.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import type { DeleteOperation } from './delete-operation.ts';
import { checkDeleteParameters } from './delete-parameters.ts';
import type { ListOperation } from './list-operation.ts';
import type { ObjectTarget } from './object-target.ts';
import type { ResourceBinding } from './resource-binding.ts';
import type { DeleteParameters, ListAnswer, SelectParameters, Target } from './resource-service.ts';

/** Objects listed at a time when the client sets no limit. */
const pageSize = 500;
/** Deletes under way at a time. */
const concurrency = 16;

/** DELETE of a collection: see docs/reference/api-rules.md#delete-of-a-collection. */
export class DeleteCollectionOperation {
  readonly #binding: ResourceBinding;
  readonly #list: ListOperation;
  readonly #delete: DeleteOperation;

  constructor(binding: ResourceBinding, list: ListOperation, remove: DeleteOperation) {
    this.#binding = binding;
    this.#list = list;
    this.#delete = remove;
  }

  async run(
    context: RequestContext,
    target: Target,
    parameters: DeleteParameters,
    select: SelectParameters,
  ): Promise<ListAnswer> {
    this.#binding.requireVerb('deletecollection');
    checkDeleteParameters(parameters, true);
    if (select.limit !== undefined && select.limit > 0) {
      const page = await this.#list.run(context, target, select);
      await this.#removeAll(context, page, parameters);
      return page;
    }
    // A state named by its revision is read in one piece, because a limit would change which state is meant.
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

  /** A page; when its snapshot is gone meanwhile, the page at the same place of the latest state. */
  async #page(context: RequestContext, target: Target, select: SelectParameters): Promise<ListAnswer> {
    try {
      return await this.#list.run(context, target, select);
    } catch (error) {
      const token = isStatusError(error, StatusReason.Expired) ? error.status.metadata.continue : undefined;
      if (token === undefined) throw error;
      return this.#list.run(context, target, { ...select, continue: token });
    }
  }

  /** Ends with the first failure; deletes under way are finished, nothing new is begun. */
  async #removeAll(context: RequestContext, page: ListAnswer, parameters: DeleteParameters): Promise<void> {
    const objects = page.list.objects()[Symbol.iterator]();
    let failed = false;
    const work = async () => {
      for (let item = objects.next(); !item.done && !failed; item = objects.next()) {
        try {
          await this.#delete.remove(context, this.#targetOf(item.value.key), parameters);
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
    const path = key.slice(kindPrefix(this.#binding.kind).length);
    if (this.#binding.kind.scope === 'Cluster') return { namespace: undefined, name: path, key };
    const slash = path.indexOf('/');
    return { namespace: path.slice(0, slash), name: path.slice(slash + 1), key };
  }
}
