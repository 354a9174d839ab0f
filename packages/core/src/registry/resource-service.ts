import type { ConnectLocation, ConnectSubresource } from '../kind/connect.ts';
import type { KindDefinition } from '../kind/kind-definition.ts';
import type { PropagationPolicy } from '../kind/strategy.ts';
import type { SubresourceDefinition } from '../kind/subresource.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { Status } from '../meta/status.ts';
import type { GroupVersionResource, KubeObject } from '../meta/types.ts';
import type { QueryParameters } from '../scope/request-attributes.ts';
import type { ResourceStorage, ResourceWatch, StoredList } from '../storage/resource-storage.ts';
import type { StoredObject } from '../storage/stored-object.ts';

/**
 * The object or collection that an operation addresses. `namespace` is undefined for cluster-scoped kinds and for "all
 * namespaces".
 */
export interface Target {
  readonly namespace?: string;
  readonly name?: string;
}

/** A request body as received. The service decodes it, because decoding depends on the kind. */
export interface Body {
  readonly bytes: Buffer;
  /** `json` covers every JSON media type; in-process callers use it too. */
  readonly format: 'json' | 'yaml' | 'protobuf';
}

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict';

export interface WriteParameters {
  readonly dryRun: boolean;
  readonly fieldManager?: string;
  /** As the client states it; default `Warn`. */
  readonly fieldValidation?: FieldValidation;
  /** An apply takes fields from their owners instead of failing with a conflict. */
  readonly force?: boolean;
}

/** List and watch parameters, parsed but not yet checked against each other. */
export interface SelectParameters {
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** The query parameter `resourceVersion` as sent; '' when it is not set. */
  readonly resourceVersion: string;
  readonly resourceVersionMatch?: string;
  readonly limit?: number;
  readonly continue?: string;
  readonly sendInitialEvents?: boolean;
  readonly allowWatchBookmarks?: boolean;
}

export interface DeleteParameters {
  readonly gracePeriodSeconds?: number;
  readonly orphanDependents?: boolean;
  readonly propagationPolicy?: PropagationPolicy;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly dryRun: boolean;
  /** Removes an object whose stored bytes cannot be decoded, without admission, finalizers and preconditions. */
  readonly ignoreStoreReadErrorWithClusterBreakingPotential?: boolean;
}

export interface ExportParameters {
  readonly export: boolean;
  readonly exact: boolean;
}

/** The request to a connect subresource. */
export interface ConnectParameters {
  readonly query: QueryParameters;
  /** The rest of the path after the subresource, as sent, with its leading slash. */
  readonly path: string;
}

/**
 * The result of an operation on one object. `stored` holds the bytes in the storage version and is present when the
 * object is in the store. Otherwise `object` is a decoded object of the served version: for dry runs, exports, bodies
 * of subresources, an object that was removed by its own last update, and a Status. `kind` is the served kind; the
 * stored bytes have another version when it has a `storage` conversion.
 */
export type Answer =
  | { readonly stored: StoredObject; readonly kind: KindDefinition; readonly code: 200 | 201 | 202 }
  | { readonly object: KubeObject | Status; readonly code: 200 | 201 | 202 };

export interface ListAnswer {
  readonly kind: KindDefinition;
  readonly list: StoredList;
  /** Value of metadata.continue; '' on the last page. */
  readonly continue: string;
}

/** The body of a PATCH. */
export interface PatchBody {
  readonly type: 'json' | 'merge' | 'strategic' | 'apply';
  readonly bytes: Buffer;
}

/**
 * All operations on one kind in one version. Throws `StatusError` only. The implementation follows
 * `docs/reference/api-rules.md`; transports only translate requests into these calls, and results into bytes.
 */
export interface ResourceService {
  readonly kind: KindDefinition;
  create(context: RequestContext, target: Target, body: Body, parameters: WriteParameters): Promise<Answer>;
  get(
    context: RequestContext,
    target: Target,
    parameters: ExportParameters & { readonly resourceVersion: string },
  ): Promise<Answer>;
  list(context: RequestContext, target: Target, parameters: SelectParameters): Promise<ListAnswer>;
  /** `target.name` set = watch one object. */
  watch(context: RequestContext, target: Target, parameters: SelectParameters): Promise<ResourceWatch>;
  update(context: RequestContext, target: Target, body: Body, parameters: WriteParameters): Promise<Answer>;
  patch(context: RequestContext, target: Target, patch: PatchBody, parameters: WriteParameters): Promise<Answer>;
  delete(context: RequestContext, target: Target, parameters: DeleteParameters): Promise<Answer>;
  deleteCollection(
    context: RequestContext,
    target: Target,
    parameters: DeleteParameters,
    select: SelectParameters,
  ): Promise<ListAnswer>;

  getSubresource(context: RequestContext, target: Target, subresource: SubresourceDefinition): Promise<Answer>;
  updateSubresource(
    context: RequestContext,
    target: Target,
    subresource: SubresourceDefinition,
    body: Body,
    parameters: WriteParameters,
  ): Promise<Answer>;
  patchSubresource(
    context: RequestContext,
    target: Target,
    subresource: SubresourceDefinition,
    patch: PatchBody,
    parameters: WriteParameters,
  ): Promise<Answer>;
  createSubresource(
    context: RequestContext,
    target: Target,
    subresource: SubresourceDefinition,
    body: Body,
    parameters: WriteParameters,
  ): Promise<Answer>;
  /** Resolves the target of a call to a connect subresource; the transport forwards the call. */
  connect(
    context: RequestContext,
    target: Target,
    subresource: ConnectSubresource,
    parameters: ConnectParameters,
  ): Promise<ConnectLocation>;
}

/** The registered kinds and the service of each. Kinds may be added and removed while the server runs. */
export interface ResourceRegistry {
  /** In registration order; the first version of a group and kind is the preferred one. */
  kinds(): readonly KindDefinition[];
  /** Increases whenever `kinds()` changes; caches of derived documents (discovery, OpenAPI) compare it. */
  readonly generation: number;
  /** Finds the service of a resource in constant time. */
  find(resource: GroupVersionResource): ResourceService | undefined;
  add(kind: KindDefinition): void;
  remove(kind: KindDefinition): void;
  /**
   * Removes kinds and adds others in one step, at the place of the first removed one. A kind that is in both lists
   * keeps its service.
   *
   * @throws Error when an added resource exists already. Nothing has changed then.
   */
  replace(removed: readonly KindDefinition[], added: readonly ServedKind[]): void;
}

/** A kind with the storage of its objects; default: that of the registry. */
export interface ServedKind {
  readonly kind: KindDefinition;
  readonly storage?: ResourceStorage;
}

/** A private copy of a stored object in the version of `kind`, which may differ from the version in the store. */
export function servedValue(kind: KindDefinition, stored: StoredObject): KubeObject {
  const value = stored.value();
  return kind.storage ? kind.storage.fromStorage(value) : value;
}

/** {@link servedValue} with kind, apiVersion and metadata alone. */
export function servedHead(kind: KindDefinition, stored: StoredObject): KubeObject {
  if (kind.storage === undefined) return stored.head();
  const { metadata } = kind.storage.fromStorage(stored.value());
  return { kind: kind.kind, apiVersion: kind.apiVersion, ...(metadata === undefined ? {} : { metadata }) };
}

/** {@link servedValue} reduced to what garbage collection reads; see {@link StoredObject.ownership}. */
export function servedOwnership(kind: KindDefinition, stored: StoredObject): KubeObject {
  if (kind.storage !== undefined) return servedHead(kind, stored);
  const { metadata = {} } = stored.ownership();
  return { kind: kind.kind, apiVersion: kind.apiVersion, metadata };
}

/** The object (or Status) of an answer, as a copy that the caller owns. */
export function answerValue(answer: Answer): KubeObject | Status {
  return 'stored' in answer ? servedValue(answer.kind, answer.stored) : answer.object;
}
