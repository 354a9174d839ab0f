import type { UserInfo } from './request-context.ts';

/** What somebody wants to do, as far as permission depends on it. The attributes of a request are such a record. */
export interface AccessAttributes {
  readonly verb: string;
  /** False for discovery, health and every other path outside the grammar of resources. */
  readonly isResourceRequest: boolean;
  readonly apiGroup: string;
  readonly apiVersion: string;
  /** '' for cluster-scoped resources and for all namespaces. */
  readonly namespace: string;
  readonly resource: string;
  readonly subresource: string;
  readonly name: string;
  /** Of requests that are not about a resource. */
  readonly path: string;
}

export interface AccessDecision {
  readonly allowed: boolean;
  /** Forbidden for certain, whatever else might have allowed it. */
  readonly denied?: boolean;
  readonly reason?: string;
}

/** Verbs on resources; `*` stands for all. */
export interface ResourceAccessRule {
  readonly verbs: readonly string[];
  readonly apiGroups: readonly string[];
  /** `pods`, `pods/log`, `*` (subresources included). */
  readonly resources: readonly string[];
  /** Absent or empty: all names. */
  readonly resourceNames?: readonly string[];
}

/** Verbs on paths; `*` at the end of a path stands for anything that follows. */
export interface PathAccessRule {
  readonly verbs: readonly string[];
  readonly nonResourceURLs: readonly string[];
}

/** What a user may do in a namespace, as a list for people to read. */
export interface AccessRules {
  readonly resourceRules: readonly ResourceAccessRule[];
  readonly nonResourceRules: readonly PathAccessRule[];
  /** True when the user may do more than the rules can tell. */
  readonly incomplete: boolean;
  readonly evaluationError?: string;
}

/**
 * Decides who may do what. One authorizer serves the filter in front of every request and the access reviews, so that a
 * review never says anything else than what would happen.
 */
export interface Authorizer {
  authorize(attributes: AccessAttributes, user: UserInfo): AccessDecision | Promise<AccessDecision>;
  rulesFor(user: UserInfo, namespace: string): AccessRules | Promise<AccessRules>;
}

/**
 * Finds the user behind a bearer token; undefined when nobody is. `audiences`: those the token must be meant for, empty
 * for the server itself.
 */
export type AuthenticateToken = (
  token: string,
  audiences: readonly string[],
) => Promise<{ readonly user: UserInfo; readonly audiences?: readonly string[] } | undefined>;

/** Members of this group may do everything; nothing takes that from them. */
export const mastersGroup = 'system:masters';

const everything: AccessRules = {
  resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }],
  nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
  incomplete: false,
};
const nothing: AccessRules = { resourceRules: [], nonResourceRules: [], incomplete: false };
const yes: AccessDecision = { allowed: true };
const no: AccessDecision = { allowed: false };

/** The authorizer of a registry that was given none: {@link mastersGroup} may do all, others nothing. */
export const mastersAuthorizer: Authorizer = {
  authorize: (_attributes, user) => (user.groups.includes(mastersGroup) ? yes : no),
  rulesFor: (user) => (user.groups.includes(mastersGroup) ? everything : nothing),
};
