import type { GroupVersionKind } from '../meta/types.ts';

/**
 * The address at which clients of one network (CIDR) reach the server. The Python client rejects a discovery document
 * without a list of these.
 */
export interface ServerAddressByClientCIDR {
  readonly clientCIDR: string;
  /** `host:port`. */
  readonly serverAddress: string;
}

/** Body of `/api`: the versions of the core group. */
export interface APIVersions {
  readonly kind: 'APIVersions';
  readonly versions: readonly string[];
  readonly serverAddressByClientCIDRs: readonly ServerAddressByClientCIDR[];
}

export interface GroupVersionForDiscovery {
  readonly groupVersion: string;
  readonly version: string;
}

/** One API group; as a body of its own (`/apis/{group}`) it also carries kind and apiVersion. */
export interface APIGroup {
  readonly kind?: 'APIGroup';
  readonly apiVersion?: 'v1';
  readonly name: string;
  readonly versions: readonly GroupVersionForDiscovery[];
  readonly preferredVersion: GroupVersionForDiscovery;
  readonly serverAddressByClientCIDRs: readonly ServerAddressByClientCIDR[];
}

/** Body of `/apis`. */
export interface APIGroupList {
  readonly kind: 'APIGroupList';
  readonly apiVersion: 'v1';
  readonly groups: readonly APIGroup[];
}

/** One resource or, with a slash in its name, one subresource. */
export interface APIResource {
  readonly name: string;
  /** Empty for subresources, never absent. */
  readonly singularName: string;
  readonly namespaced: boolean;
  /** Present when the kind belongs to another group or version than the list. */
  readonly group?: string;
  readonly version?: string;
  readonly kind: string;
  /** Sorted. */
  readonly verbs: readonly string[];
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  /** Equal for two resources exactly when their objects are stored in the same form. */
  readonly storageVersionHash?: string;
}

/** Body of `/api/{version}` and `/apis/{group}/{version}`. */
export interface APIResourceList {
  readonly kind: 'APIResourceList';
  readonly apiVersion: 'v1';
  readonly groupVersion: string;
  readonly resources: readonly APIResource[];
}

export interface APISubresourceDiscovery {
  readonly subresource: string;
  readonly responseKind: GroupVersionKind;
  readonly verbs: readonly string[];
}

export interface APIResourceDiscovery {
  readonly resource: string;
  readonly responseKind: GroupVersionKind;
  readonly scope: 'Cluster' | 'Namespaced';
  readonly singularResource: string;
  readonly verbs: readonly string[];
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly subresources?: readonly APISubresourceDiscovery[];
}

export interface APIVersionDiscovery {
  readonly version: string;
  readonly resources: readonly APIResourceDiscovery[];
  /** `Stale`: the server of the version did not answer of late. */
  readonly freshness: 'Current' | 'Stale';
}

export interface APIGroupDiscovery {
  /** The core group has the name ''. */
  readonly metadata: { readonly name: string };
  readonly versions: readonly APIVersionDiscovery[];
}

/** Versions of the aggregated form, newest first. */
export type AggregatedDiscoveryVersion = 'v2' | 'v2beta1';

/** The aggregated discovery document: see docs/reference/api-rules.md#discovery. */
export interface APIGroupDiscoveryList {
  readonly kind: 'APIGroupDiscoveryList';
  readonly apiVersion: `apidiscovery.k8s.io/${AggregatedDiscoveryVersion}`;
  readonly metadata: Record<string, never>;
  readonly items: readonly APIGroupDiscovery[];
}
