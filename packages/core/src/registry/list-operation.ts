import { type StatusError, statusErrors } from '../errors/status-error.ts';
import { isStorageError, StorageErrorCode } from '../errors/storage-error.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { ListPosition, StorageListOptions, StoredList } from '../storage/resource-storage.ts';
import { targetPrefix } from './object-target.ts';
import { type Selection, selectionOf } from './predicate.ts';
import { listPoint } from './read-point.ts';
import type { ResourceBinding } from './resource-binding.ts';
import type { ListAnswer, SelectParameters, Target } from './resource-service.ts';

const tokenTooOld = 'The provided continue parameter is too old to display a consistent list result.';

/**
 * GET of a collection: see docs/reference/api-rules.md#state-of-a-list and
 * docs/reference/api-rules.md#continuing-a-list.
 */
export class ListOperation {
  readonly #binding: ResourceBinding;

  constructor(binding: ResourceBinding) {
    this.#binding = binding;
  }

  async run(context: RequestContext, target: Target, parameters: SelectParameters): Promise<ListAnswer> {
    const { kind, services } = this.#binding;
    this.#binding.requireVerb('list');
    const point = listPoint(parameters);
    const selection = selectionOf(kind, { ...(target.namespace ? { namespace: target.namespace } : {}) }, parameters);
    const binding = this.#tokenBinding(target, selection);
    const options = {
      predicate: selection.predicate,
      ...(parameters.limit && parameters.limit > 0 ? { limit: parameters.limit } : {}),
      ...(context.signal ? { signal: context.signal } : {}),
    };
    const list =
      point === 'token'
        ? await this.#resume(target, parameters.continue ?? '', binding, options)
        : await this.#binding.storage.list(targetPrefix(this.#binding, target), { ...options, at: point });
    return { kind, list, continue: list.next ? services.tokens.encode(list.next, binding) : '' };
  }

  /** What all pages of one list have in common. */
  #tokenBinding(target: Target, selection: Selection): string {
    const { kind } = this.#binding;
    return `${kind.apiVersion}\n${kind.names.plural}\n${target.namespace ?? ''}\n${selection.text}`;
  }

  async #resume(
    target: Target,
    token: string,
    binding: string,
    options: Omit<StorageListOptions, 'at' | 'resume'>,
  ): Promise<StoredList> {
    const position = this.#position(token, binding);
    try {
      return await this.#binding.storage.list(targetPrefix(this.#binding, target), {
        ...options,
        at: { at: 'latest' },
        resume: position,
      });
    } catch (error) {
      if (isStorageError(error, StorageErrorCode.Compacted)) throw this.#tooOld(position.after, binding);
      throw error;
    }
  }

  #position(token: string, binding: string): ListPosition {
    try {
      return this.#binding.services.tokens.decode(token, binding);
    } catch (error) {
      if (isStorageError(error, StorageErrorCode.InvalidToken) && error.mismatch) {
        throw statusErrors.badRequest('continue key is not valid: it belongs to a list with other parameters');
      }
      if (isStorageError(error, StorageErrorCode.ExpiredToken) && error.key !== undefined) {
        throw this.#tooOld(error.key, binding);
      }
      throw error;
    }
  }

  /** 410 with a token by which a client may go on at the latest state, if it can live with a list of two states. */
  #tooOld(after: string, binding: string): StatusError {
    return statusErrors.expired(
      tokenTooOld,
      this.#binding.services.tokens.encode({ revision: 'latest', after }, binding),
    );
  }
}
