/** RFC 3339 instant as text, whole seconds: `2026-01-02T15:04:05Z`. */
export type Time = string;
/** RFC 3339 instant as text with six fractional digits. */
export type MicroTime = string;

/** Scope of a kind: one set of objects for the whole cluster, or one per namespace. */
export type Scope = 'Cluster' | 'Namespaced';

/** `group/version`, or just `version` for the core group. */
export interface GroupVersion {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
}

/** Identifies a kind in one version. */
export interface GroupVersionKind extends GroupVersion {
  readonly kind: string;
}

/** Identifies a resource in one version. */
export interface GroupVersionResource extends GroupVersion {
  /** Lower-case plural, e.g. `deployments`. */
  readonly resource: string;
}

/** Kind and version of a document. */
export interface TypeMeta {
  apiVersion?: string;
  kind?: string;
}

/** The object on which another depends; it is deleted when all its owners are. */
export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** The fields that one manager has set. */
export interface ManagedFieldsEntry {
  manager?: string;
  operation?: string;
  apiVersion?: string;
  time?: Time;
  fieldsType?: string;
  fieldsV1?: Record<string, unknown>;
  subresource?: string;
}

/** Metadata that every stored object has. */
export interface ObjectMeta {
  name?: string;
  generateName?: string;
  namespace?: string;
  selfLink?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: Time | null;
  deletionTimestamp?: Time;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
  managedFields?: ManagedFieldsEntry[];
}

/** Fields of the metadata that the server has set on every object that it returns. */
export interface StoredMeta extends ObjectMeta {
  name: string;
  uid: string;
  resourceVersion: string;
  creationTimestamp: Time;
}

/** Metadata of a list. */
export interface ListMeta {
  selfLink?: string;
  resourceVersion?: string;
  continue?: string;
  remainingItemCount?: number;
}

/** Any object of any kind. */
export interface KubeObject extends TypeMeta {
  metadata?: ObjectMeta;
}

/**
 * An object as a server returns it: with metadata. Objects of virtual kinds, and those of a client with `metadataOnly:
 * 'ownership'`, have only what their kind or client states.
 */
export type Stored<T extends KubeObject = KubeObject> = T & { metadata: StoredMeta };

/** A page of a list. */
export interface KubeList<T extends KubeObject = KubeObject> extends TypeMeta {
  metadata: ListMeta;
  items: T[];
}

/** An object of a kind whose own fields are read and written by name. */
export type AnyObject = KubeObject & Record<string, unknown>;

/** `{group}/{version}`; the core group is written as its version alone. */
export function apiVersionOf(gv: GroupVersion): string {
  return gv.group === '' ? gv.version : `${gv.group}/${gv.version}`;
}

/** Splits an apiVersion; more than one slash gives `undefined`. */
export function parseApiVersion(apiVersion: string): GroupVersion | undefined {
  const parts = apiVersion.split('/');
  if (parts.length === 1 && parts[0]) return { group: '', version: parts[0] };
  if (parts.length === 2 && parts[0] && parts[1]) return { group: parts[0], version: parts[1] };
  return undefined;
}
