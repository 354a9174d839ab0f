import {
  type AccessDecision,
  type AccessRules,
  type Authorizer,
  mastersAuthorizer,
  mastersGroup,
  type UserInfo,
} from '@keelson/core';
import { joinRules, rulesAllow } from './access-rules.ts';
import { nodeAccess } from './node-access.ts';

/** A path with everything below it. */
const tree = (path: string): string[] => [path, `${path}/*`];
const read = ['get', 'head'];

/** What load balancers and clients ask before they have an identity. */
const everybody: AccessRules = {
  resourceRules: [],
  nonResourceRules: [{ verbs: read, nonResourceURLs: ['/healthz', '/livez', '/readyz', '/version'].flatMap(tree) }],
  incomplete: false,
};

/** What tells nothing about anybody's objects, and questions about oneself. */
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
 * Deny by default: members of `system:masters` may do everything, nodes what their agents need and those who join what
 * joining takes, authenticated users may read discovery documents and ask what they may do, everybody may ask for
 * health and version.
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
