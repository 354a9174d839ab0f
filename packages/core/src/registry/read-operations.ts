import { type StatusError, statusErrors } from '../errors/status-error.ts';
import { isStorageError, StorageErrorCode } from '../errors/storage-error.ts';
import type { KindDefinition } from '../kind/kind-definition.ts';
import type { StrategyContext } from '../kind/strategy.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { AnyObject } from '../meta/types.ts';
import type {
  ListPosition,
  ReadPoint,
  ResourceWatch,
  StorageListOptions,
  StorageWatchOptions,
  StoredList,
} from '../storage/resource-storage.ts';
import type { Revision } from '../storage/store.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import { clearStatus, keepsGeneration } from './common-fields.ts';
import { type Selection, selectionOf } from './predicate.ts';
import {
  isStorable,
  type ObjectTarget,
  objectTarget,
  type ResourceBinding,
  signalOption,
  targetPrefix,
} from './resource-binding.ts';
import type { Answer, ExportParameters, ListAnswer, SelectParameters, Target } from './resource-service.ts';

const listOptions = { group: 'meta.k8s.io', kind: 'ListOptions' } as const;
const largestUint64 = 18446744073709551615n;

/** The parameters of a list that decide which state it shows. */
export type ListPointParameters = Pick<
  SelectParameters,
  'resourceVersion' | 'resourceVersionMatch' | 'limit' | 'continue' | 'sendInitialEvents'
>;

/** The parameters of a watch that decide where it begins. */
export type WatchPointParameters = Pick<
  SelectParameters,
  'resourceVersion' | 'resourceVersionMatch' | 'continue' | 'sendInitialEvents' | 'allowWatchBookmarks'
>;

/**
 * Reads a resourceVersion. Numbers beyond what a revision can be are kept as the greatest revision: they lie in the
 * future either way.
 *
 * @throws StatusError 400 when the text is not an unsigned 64-bit decimal number.
 */
export function parseResourceVersion(text: string): Revision {
  if (!/^[0-9]{1,20}$/.test(text) || (text.length === 20 && BigInt(text) > largestUint64)) {
    throw statusErrors.badRequest(
      `invalid resource version: ${JSON.stringify(text.slice(0, 64))}: not a decimal number of 64 bits`,
    );
  }
  return Math.min(Number(text), Number.MAX_SAFE_INTEGER);
}

/** Which state a get returns: see docs/reference/api-rules.md#state-of-a-get. */
export function getPoint(resourceVersion: string): ReadPoint {
  if (resourceVersion === '') return { at: 'latest' };
  const revision = parseResourceVersion(resourceVersion);
  return revision === 0 ? { at: 'any' } : { at: 'notOlderThan', revision };
}

function refused(errors: readonly FieldError[]): StatusError {
  return statusErrors.invalid(listOptions, '', errors);
}

function listProblems(parameters: ListPointParameters): FieldError[] {
  const { resourceVersion, resourceVersionMatch: match = '', continue: token = '' } = parameters;
  const problems: FieldError[] = [];
  if (match !== '') {
    if (resourceVersion === '') problems.push(fieldError.forbidden('resourceVersionMatch', 'needs a resourceVersion'));
    if (token !== '') problems.push(fieldError.forbidden('resourceVersionMatch', 'cannot be combined with continue'));
    if (match !== 'Exact' && match !== 'NotOlderThan') {
      problems.push(fieldError.notSupported('resourceVersionMatch', match, ['Exact', 'NotOlderThan']));
    }
    if (match === 'Exact' && resourceVersion === '0') {
      problems.push(fieldError.forbidden('resourceVersionMatch', 'Exact has no meaning for resourceVersion "0"'));
    }
  }
  if (parameters.sendInitialEvents !== undefined) {
    problems.push(fieldError.forbidden('sendInitialEvents', 'belongs to watches, not to lists'));
  }
  return problems;
}

/**
 * Which state a list returns: see docs/reference/api-rules.md#state-of-a-list. `'token'` is the state of its continue
 * token.
 *
 * @throws StatusError 422 for a combination that is not allowed, 400 for a malformed number or a resourceVersion
 *   beside continue.
 */
export function listPoint(parameters: ListPointParameters): ReadPoint | 'token' {
  const problems = listProblems(parameters);
  if (problems.length > 0) throw refused(problems);
  const { resourceVersion, resourceVersionMatch: match = '', limit = 0, continue: token = '' } = parameters;
  const revision = resourceVersion === '' ? undefined : parseResourceVersion(resourceVersion);
  if (token !== '') {
    if (revision) throw statusErrors.badRequest('specifying resource version is not allowed when using continue');
    return 'token';
  }
  if (revision === undefined) return { at: 'latest' };
  if (revision === 0) return { at: 'any' };
  const exact = match === 'Exact' || (match === '' && limit > 0);
  return exact ? { at: 'exact', revision } : { at: 'notOlderThan', revision };
}

function watchProblems(parameters: WatchPointParameters): FieldError[] {
  const { resourceVersionMatch: match = '', sendInitialEvents, continue: token = '' } = parameters;
  const problems: FieldError[] = [];
  if (sendInitialEvents !== undefined && match !== 'NotOlderThan') {
    problems.push(fieldError.forbidden('resourceVersionMatch', 'must be NotOlderThan when sendInitialEvents is given'));
  }
  if (match !== '') {
    if (sendInitialEvents === undefined) {
      problems.push(fieldError.forbidden('resourceVersionMatch', 'is for watches with sendInitialEvents only'));
    }
    if (match !== 'NotOlderThan') {
      problems.push(fieldError.notSupported('resourceVersionMatch', match, ['NotOlderThan']));
    }
    if (token !== '') problems.push(fieldError.forbidden('resourceVersionMatch', 'cannot be combined with continue'));
  }
  return problems;
}

/** Where a watch begins; `'now'` = after the current revision, without any initial event. */
export type WatchPoint = StorageWatchOptions['from'] | 'now';

/**
 * Where a watch begins: see docs/reference/api-rules.md#start-of-a-watch.
 *
 * @throws StatusError 422 for a combination that is not allowed, 400 for a malformed number.
 */
export function watchPoint(parameters: WatchPointParameters): WatchPoint {
  const problems = watchProblems(parameters);
  if (problems.length > 0) throw refused(problems);
  const { resourceVersion, sendInitialEvents, allowWatchBookmarks = false } = parameters;
  const revision = resourceVersion === '' ? undefined : parseResourceVersion(resourceVersion);
  if (sendInitialEvents === false) return revision ? { start: 'changesAfter', revision } : 'now';
  if (sendInitialEvents === undefined && revision) return { start: 'changesAfter', revision };
  return {
    start: 'state',
    fresh: revision === undefined,
    ...(revision ? { notOlderThan: revision } : {}),
    ...(sendInitialEvents && allowWatchBookmarks ? { endBookmark: true } : {}),
  };
}

const tokenTooOld = 'The provided continue parameter is too old to display a consistent list result.';

/** GET of an object, GET of a collection, and watches. */
export class ReadOperations {
  readonly #binding: ResourceBinding;

  constructor(binding: ResourceBinding) {
    this.#binding = binding;
  }

  /** GET of one object. The answer contains the stored bytes unless the object is exported. */
  async get(
    context: RequestContext,
    target: Target,
    parameters: ExportParameters & { readonly resourceVersion: string },
  ): Promise<Answer> {
    this.#binding.requireVerb('get');
    const stored = await this.stored(context, objectTarget(this.#binding, target), parameters.resourceVersion);
    const { kind } = this.#binding;
    if (!parameters.export) return { stored, kind, code: 200 };
    const object = this.#binding.read(stored);
    exportObject(kind, object, parameters.exact, this.#binding.strategyContext(context));
    return { object, code: 200 };
  }

  /** @throws StatusError 404 when the object does not exist. */
  async stored(context: RequestContext, target: ObjectTarget, resourceVersion = ''): Promise<StoredObject> {
    const point = getPoint(resourceVersion);
    const stored = isStorable(target)
      ? await this.#binding.storage.get(target.key, point, signalOption(context))
      : undefined;
    if (stored === undefined) throw statusErrors.notFound(this.#binding.resource, target.name);
    return stored;
  }

  /**
   * GET of a collection: see docs/reference/api-rules.md#state-of-a-list and
   * docs/reference/api-rules.md#continuing-a-list.
   */
  async list(context: RequestContext, target: Target, parameters: SelectParameters): Promise<ListAnswer> {
    const { kind, services, storage } = this.#binding;
    this.#binding.requireVerb('list');
    const point = listPoint(parameters);
    const selection = selectionOf(kind, { ...(target.namespace ? { namespace: target.namespace } : {}) }, parameters);
    const tokenScope = this.#tokenScope(target, selection);
    const options = {
      predicate: selection.predicate,
      ...(parameters.limit && parameters.limit > 0 ? { limit: parameters.limit } : {}),
      ...signalOption(context),
    };
    const list =
      point === 'token'
        ? await this.#resume(target, parameters.continue ?? '', tokenScope, options)
        : await storage.list(targetPrefix(this.#binding, target), { ...options, at: point });
    return { kind, list, continue: list.next ? services.tokens.encode(list.next, tokenScope) : '' };
  }

  /** Text that is equal for all pages of one list. A continue token is valid for lists with the same text only. */
  #tokenScope(target: Target, selection: Selection): string {
    const { kind } = this.#binding;
    return `${kind.apiVersion}\n${kind.names.plural}\n${target.namespace ?? ''}\n${selection.text}`;
  }

  async #resume(
    target: Target,
    token: string,
    tokenScope: string,
    options: Omit<StorageListOptions, 'at' | 'resume'>,
  ): Promise<StoredList> {
    const resume = this.#position(token, tokenScope);
    try {
      const prefix = targetPrefix(this.#binding, target);
      return await this.#binding.storage.list(prefix, { ...options, at: { at: 'latest' }, resume });
    } catch (error) {
      if (isStorageError(error, StorageErrorCode.Compacted)) throw this.#tooOld(resume.after, tokenScope);
      throw error;
    }
  }

  #position(token: string, tokenScope: string): ListPosition {
    try {
      return this.#binding.services.tokens.decode(token, tokenScope);
    } catch (error) {
      if (isStorageError(error, StorageErrorCode.InvalidToken) && error.mismatch) {
        throw statusErrors.badRequest('continue key is not valid: it belongs to a list with other parameters');
      }
      if (isStorageError(error, StorageErrorCode.ExpiredToken) && error.key !== undefined) {
        throw this.#tooOld(error.key, tokenScope);
      }
      throw error;
    }
  }

  /** 410 with a token that continues at the latest state, for clients that accept a list of two states. */
  #tooOld(after: string, tokenScope: string): StatusError {
    const token = this.#binding.services.tokens.encode({ revision: 'latest', after }, tokenScope);
    return statusErrors.expired(tokenTooOld, token);
  }

  /** Watch of a collection or of one object: see docs/reference/api-rules.md#start-of-a-watch. */
  async watch(context: RequestContext, target: Target, parameters: SelectParameters): Promise<ResourceWatch> {
    const { kind, storage } = this.#binding;
    this.#binding.requireVerb('watch');
    const point = watchPoint(parameters);
    const { predicate } = selectionOf(kind, target, parameters);
    const from =
      point === 'now' ? ({ start: 'changesAfter', revision: await storage.currentRevision() } as const) : point;
    return storage.watch(targetPrefix(this.#binding, target), {
      predicate,
      from,
      ...(parameters.allowWatchBookmarks ? { bookmarks: true } : {}),
      ...signalOption(context),
    });
  }
}

/** Removes the fields that would prevent a create elsewhere: see docs/reference/api-rules.md#export. */
function exportObject(kind: KindDefinition, object: AnyObject, exact: boolean, context: StrategyContext): void {
  const meta = object.metadata ?? {};
  object.metadata = meta;
  delete meta.uid;
  delete meta.creationTimestamp;
  delete meta.deletionTimestamp;
  delete meta.deletionGracePeriodSeconds;
  delete meta.resourceVersion;
  delete meta.selfLink;
  if (!exact) {
    delete meta.namespace;
    if (meta.generateName) delete meta.name;
  }
  if (kind.strategy.export) {
    kind.strategy.export(object, exact);
    return;
  }
  if (kind.strategy.statusSubresource) clearStatus(kind, object);
  if (keepsGeneration(kind)) meta.generation = 1;
  kind.strategy.prepareForCreate?.(object, context);
}
