import type { KindDefinition } from '../kind/kind-definition.ts';
import type { PropagationPolicy } from '../kind/strategy.ts';
import type { Status } from '../meta/status.ts';
import type { GroupVersionResource, KubeList, KubeObject, Stored } from '../meta/types.ts';

/**
 * The contract by which controllers, the agent and users see the API, in process and over HTTP alike. A rejection by
 * the server is the same `StatusError` in both cases; a client over a network fails with an error of its own when there
 * was no answer. The caller owns the objects that are returned.
 */
export interface ApiClient {
  /** Objects of a declared kind, typed. */
  resource<T extends KubeObject>(kind: KindDefinition<T>): ResourceClient<T>;
  /**
   * Objects of a resource known only by its name, e.g. from an owner reference. With `metadataOnly`, reads and watches
   * return only apiVersion, kind and metadata, so that the rest of the object is not sent; with `ownership`, metadata
   * may be without fields other than name, namespace, uid, resourceVersion, ownerReferences, finalizers and
   * deletionTimestamp, so that they need not be parsed in process.
   */
  dynamic(
    resource: GroupVersionResource,
    options?: { readonly metadataOnly?: boolean | 'ownership' },
  ): ResourceClient<KubeObject>;
  /** What the server serves now, one row per resource and version, preferred versions first. */
  discover(): Promise<readonly DiscoveredResource[]>;
}

/** A resource that a server offers, from its discovery documents. */
export interface DiscoveredResource extends GroupVersionResource {
  readonly kind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
  /** Two resources with the same storage group and resource show the same objects (apps and extensions deployments). */
  readonly storage: { readonly group: string; readonly resource: string };
}

/** Options of a read of one object. */
export interface GetOptions {
  /**
   * State to read: the latest when unset, any state for '0', otherwise a state that is not older than this revision.
   */
  readonly resourceVersion?: string;
  readonly signal?: AbortSignal;
}

/** Options of a list: selectors, and the page that is requested. */
export interface ListOptions extends GetOptions {
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly limit?: number;
  readonly continue?: string;
  readonly resourceVersionMatch?: 'Exact' | 'NotOlderThan';
}

/** Options of a watch: selectors, and the revision after which it begins. */
export interface WatchOptions {
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly resourceVersion?: string;
  readonly allowWatchBookmarks?: boolean;
  readonly sendInitialEvents?: boolean;
  readonly resourceVersionMatch?: 'NotOlderThan';
  readonly timeoutSeconds?: number;
  readonly signal?: AbortSignal;
}

/** Options of creates, updates and patches. */
export interface MutateOptions {
  readonly dryRun?: boolean;
  readonly fieldManager?: string;
  readonly fieldValidation?: 'Ignore' | 'Warn' | 'Strict';
  /**
   * For an apply: takes fields from their owners. Without this option, the apply fails with a 409 that names the
   * owners.
   */
  readonly force?: boolean;
  readonly signal?: AbortSignal;
}

/** Options of an apply. `fieldManager` names the owner of the fields that the configuration states. */
export interface ApplyOptions extends MutateOptions {
  readonly fieldManager: string;
}

/** What an apply states: the identity of the object and the fields that the manager wants, all of them optional. */
export type ApplyConfiguration<T> = T extends readonly (infer E)[]
  ? readonly ApplyConfiguration<E>[]
  : T extends object
    ? string extends keyof T
      ? { readonly [K in keyof T]: ApplyConfiguration<T[K]> }
      : { readonly [K in keyof T]?: ApplyConfiguration<T[K]> }
    : T;

/** Options of a delete; the defaults are those of the kind. */
export interface DeleteOptions {
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: PropagationPolicy;
  readonly orphanDependents?: boolean;
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
  readonly dryRun?: boolean;
  /** Remove an object whose stored bytes cannot be read; nothing else may be set beside it. */
  readonly ignoreStoreReadErrorWithClusterBreakingPotential?: boolean;
  readonly signal?: AbortSignal;
}

/** Media types of the patches by short names. */
export const PatchType = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const;
export type PatchType = keyof typeof PatchType;

/** A watch event as clients receive it. */
export type ClientWatchEvent<T extends KubeObject> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: Stored<T> }
  | { readonly type: 'BOOKMARK'; readonly object: KubeObject };

/** Operations on one resource; `namespace()` narrows to one namespace (cluster-scoped kinds never call it). */
export interface ResourceClient<T extends KubeObject> {
  /** The resource of this client. */
  readonly resourceName: GroupVersionResource;
  namespace(namespace: string): ResourceClient<T>;
  create(object: T, options?: MutateOptions): Promise<Stored<T>>;
  get(name: string, options?: GetOptions): Promise<Stored<T>>;
  list(options?: ListOptions): Promise<KubeList<Stored<T>>>;
  update(object: T, options?: MutateOptions): Promise<Stored<T>>;
  patch(name: string, type: PatchType, patch: unknown, options?: MutateOptions): Promise<Stored<T>>;
  /**
   * Creates or changes the object that `metadata.name` names, so that it has the fields of the configuration. Fields
   * that the manager applied before and now leaves out are removed, unless others own them. For subresources:
   * `patchSubresource` with the type `apply`.
   */
  apply(configuration: ApplyConfiguration<T>, options: ApplyOptions): Promise<Stored<T>>;
  delete(name: string, options?: DeleteOptions): Promise<Stored<T> | Status>;
  deleteCollection(options?: DeleteOptions & ListOptions): Promise<Status | KubeList<Stored<T>>>;
  /**
   * Changes in revision order. Ends normally at `timeoutSeconds` or when `signal` aborts; throws the StatusError of an
   * ERROR event (410 `Expired` when history is gone). Leaving the loop releases the watch.
   */
  watch(options?: WatchOptions): AsyncIterable<ClientWatchEvent<T>>;
  /** GET of a subresource. */
  getSubresource(name: string, subresource: string): Promise<KubeObject>;
  /** PUT of a subresource. */
  updateSubresource(name: string, subresource: string, body: KubeObject, options?: MutateOptions): Promise<KubeObject>;
  /** PATCH of a subresource. */
  patchSubresource(
    name: string,
    subresource: string,
    type: PatchType,
    patch: unknown,
    options?: MutateOptions,
  ): Promise<KubeObject>;
  /** POST to a subresource (binding, eviction, rollback). */
  createSubresource(
    name: string,
    subresource: string,
    body: KubeObject,
    options?: MutateOptions,
  ): Promise<KubeObject | Status>;
}
