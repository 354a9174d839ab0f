import {
  type AccessDecision,
  type AccessRules,
  type Authorizer,
  mastersAuthorizer,
  mastersGroup,
  type UserInfo,
} from '@keelson/core';
import { nodeAccess } from '../node/node-access.ts';
import { joinRules, rulesAllow } from './rules.ts';

/** A path and all paths below it. */
const tree = (path: string): string[] => [path, `${path}/*`];
const read = ['get', 'head'];

/** Requests of load balancers and of clients that have no credentials yet. */
const everybody: AccessRules = {
  resourceRules: [],
  nonResourceRules: [{ verbs: read, nonResourceURLs: ['/healthz', '/livez', '/readyz', '/version'].flatMap(tree) }],
  incomplete: false,
};

/** Documents without information about objects, and reviews of the user's own permissions. */
const authenticated: AccessRules = {
  resourceRules: [
    {
      verbs: ['create'],
      apiGroups: ['authorization.k8s.io'],
      resources: ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
    },
    { verbs: ['create'], apiGroups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'] },
  ],
  nonResourceRules: [
    {
      verbs: read,
      nonResourceURLs: [
        ...['/', '/index.html', '/swagger.json', '/swagger-2.0.0.pb-v1'],
        ...['/api', '/apis', '/openapi'].flatMap(tree),
        ...['/.well-known/openid-configuration', '/openid/v1/jwks'],
      ],
    },
  ],
  incomplete: false,
};

const yes: AccessDecision = { allowed: true };
const no: AccessDecision = { allowed: false };

function rulesOf(user: UserInfo, namespace: string): AccessRules[] {
  return user.groups.includes('system:authenticated')
    ? [...nodeAccess(user, namespace), authenticated, everybody]
    : [everybody];
}

/**
 * Denies by default. Members of `system:masters` may do everything; nodes and joining nodes what their agents require;
 * authenticated users may read discovery documents and review their own permissions; all users may request health and
 * version.
 */
export const groupAuthorizer: Authorizer = {
  authorize(attributes, user) {
    if (user.groups.includes(mastersGroup)) return yes;
    return rulesOf(user, attributes.namespace).some((rules) => rulesAllow(rules, attributes)) ? yes : no;
  },
  rulesFor: (user, namespace) =>
    user.groups.includes(mastersGroup)
      ? mastersAuthorizer.rulesFor(user, namespace)
      : joinRules(rulesOf(user, namespace)),
};
