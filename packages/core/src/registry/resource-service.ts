import type { ConnectLocation, ConnectSubresource } from '../kind/connect.ts';
import type { KindDefinition } from '../kind/kind-definition.ts';
import type { PropagationPolicy } from '../kind/strategy.ts';
import type { SubresourceDefinition } from '../kind/subresource.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { Status } from '../meta/status.ts';
import type { GroupVersionResource, KubeObject } from '../meta/types.ts';
import type { QueryParameters } from '../scope/query-parameters.ts';
import type { ResourceWatch, StoredList } from '../storage/resource-storage.ts';
import type { StoredObject } from '../storage/stored-object.ts';

/**
 * Which object or collection an operation is about. `namespace` is undefined for cluster-scoped kinds and for "all
 * namespaces".
 */
export interface Target {
  readonly namespace?: string;
  readonly name?: string;
}

/** A request body as it arrived. The service decodes it, because only it knows the kind. */
export interface Body {
  readonly bytes: Buffer;
  /** `json`: every JSON type; in-process callers use it too. */
  readonly format: 'json' | 'yaml' | 'protobuf';
}

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict';

export interface WriteParameters {
  readonly dryRun: boolean;
  readonly fieldManager?: string;
  readonly fieldValidation: FieldValidation;
}

/** List and watch parameters, parsed but not yet checked against each other. */
export interface SelectParameters {
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Verbatim text; '' = unset. */
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
  /** Remove an object whose stored bytes cannot be read, past admission, finalizers and preconditions. */
  readonly ignoreStoreReadErrorWithClusterBreakingPotential?: boolean;
}

export interface ExportParameters {
  readonly export: boolean;
  readonly exact: boolean;
}

/** What a call of a connect subresource says. */
export interface ConnectParameters {
  readonly query: QueryParameters;
  /** What stands behind the subresource in the path, as sent, with its slash. */
  readonly path: string;
}

/**
 * An object as an answer: the stored bytes (in the storage version) when it is stored, a decoded object of the served
 * version when it is not (dry runs, exports, subresource bodies, an object that its own last update removed, Status).
 * `kind` is the kind served: where it has a `storage` conversion, the stored bytes are of that other version.
 */
export type Answer =
  | { readonly stored: StoredObject; readonly kind: KindDefinition; readonly code: 200 | 201 | 202 }
  | { readonly object: KubeObject | Status; readonly code: 200 | 201 | 202 };

export interface ListAnswer {
  readonly kind: KindDefinition;
  readonly list: StoredList;
  /** Text for metadata.continue, '' at the end. */
  readonly continue: string;
}

/** What is sent as a patch. */
export interface PatchBody {
  readonly type: 'json' | 'merge' | 'strategic';
  readonly bytes: Buffer;
}

/**
 * All operations on one kind in one version. Throws `StatusError` only. The implementation obeys
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
  /** Where a call of a connect subresource leads; passing it on is the transport's business. */
  connect(
    context: RequestContext,
    target: Target,
    subresource: ConnectSubresource,
    parameters: ConnectParameters,
  ): Promise<ConnectLocation>;
}

/** Which kinds exist, and the service of each. Kinds may be added and removed while running. */
export interface ResourceRegistry {
  /** In registration order; the first version of a group and kind is the preferred one. */
  kinds(): readonly KindDefinition[];
  /** Rises whenever `kinds()` changes; caches of derived documents (discovery, OpenAPI) compare it. */
  readonly generation: number;
  /** Constant time. */
  find(resource: GroupVersionResource): ResourceService | undefined;
  add(kind: KindDefinition): void;
  remove(kind: KindDefinition): void;
}
