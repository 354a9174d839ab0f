import type { UserInfo } from './request-context.ts';

/** The attributes of a request that authorization depends on. */
export interface AccessAttributes {
  /** For a resource request, its verb; for any other request, the HTTP method in lower case. */
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
  /** Path of a request that is not a resource request. */
  readonly path: string;
  /** Field selector of a list or watch, as sent; absent or '' when the request has none. */
  readonly fieldSelector?: string;
}

/** The answer of an authorizer to one request. */
export interface AccessDecision {
  readonly allowed: boolean;
  /** Forbidden, even when another authorizer would allow it. */
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
  /** True when the rules are incomplete and the user may have more permissions. */
  readonly incomplete: boolean;
  readonly evaluationError?: string;
}

/**
 * Authorizes requests. The request filter and the access reviews use the same authorizer, so that a review always
 * reports the decision of the filter.
 */
export interface Authorizer {
  authorize(attributes: AccessAttributes, user: UserInfo): AccessDecision | Promise<AccessDecision>;
  rulesFor(user: UserInfo, namespace: string): AccessRules | Promise<AccessRules>;
}

/** The result of authenticating a bearer token. */
export interface AuthenticatedToken {
  readonly user: UserInfo;
  /** Those of the requested audiences for which the token is valid. */
  readonly audiences?: readonly string[];
  /** End of the token's validity in epoch milliseconds. Absent: unknown. */
  readonly notAfterMs?: number;
}

/**
 * Authenticates a bearer token; undefined when it is invalid. `audiences` are the required audiences of the token; the
 * server itself when empty.
 */
export type AuthenticateToken = (
  token: string,
  audiences: readonly string[],
) => AuthenticatedToken | undefined | Promise<AuthenticatedToken | undefined>;

/** Members of this group may do everything; no rule can restrict them. */
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
