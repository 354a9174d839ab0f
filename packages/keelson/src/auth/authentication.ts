import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import {
  type AccessAttributes,
  type AccessDecision,
  type AccessRules,
  type AuthenticateToken,
  type Authorizer,
  type Clock,
  mastersAuthorizer,
  mastersGroup,
  type PathAccessRule,
  type ResourceAccessRule,
  statusErrors,
  type UserInfo,
} from '@keelson/core';
import type { KnownToken } from './token-file.ts';

function has(words: readonly string[], word: string): boolean {
  return words.includes('*') || words.includes(word);
}

function coversResource(rule: ResourceAccessRule, attributes: AccessAttributes): boolean {
  const { verb, apiGroup, resource, subresource, name } = attributes;
  if (!has(rule.verbs, verb) || !has(rule.apiGroups, apiGroup)) return false;
  const full = subresource === '' ? resource : `${resource}/${subresource}`;
  if (!has(rule.resources, full) && !(subresource !== '' && rule.resources.includes(`*/${subresource}`))) return false;
  const names = rule.resourceNames ?? [];
  return names.length === 0 || names.includes(name);
}

function coversPath(pattern: string, path: string): boolean {
  return pattern.endsWith('*') ? path.startsWith(pattern.slice(0, -1)) : path === pattern;
}

function allowsPath(rule: PathAccessRule, { verb, path }: AccessAttributes): boolean {
  return has(rule.verbs, verb) && rule.nonResourceURLs.some((pattern) => coversPath(pattern, path));
}

/** Whether a rule allows a request. A rule without names allows every name. */
export function rulesAllow(rules: AccessRules, attributes: AccessAttributes): boolean {
  return attributes.isResourceRequest
    ? rules.resourceRules.some((rule) => coversResource(rule, attributes))
    : rules.nonResourceRules.some((rule) => allowsPath(rule, attributes));
}

/** The union of several sets of rules. */
export function joinRules(sets: readonly AccessRules[]): AccessRules {
  return {
    resourceRules: sets.flatMap(({ resourceRules }) => resourceRules),
    nonResourceRules: sets.flatMap(({ nonResourceRules }) => nonResourceRules),
    incomplete: sets.some(({ incomplete }) => incomplete),
  };
}

const nodesGroup = 'system:nodes';
const nodePrefix = 'system:node:';
const bootstrappersGroup = 'system:bootstrappers';
/** Namespace of the Leases of nodes. */
export const leaseNamespace = 'kube-node-lease';

const certificateRequests: ResourceAccessRule = {
  verbs: ['create', 'get', 'list', 'watch'],
  apiGroups: ['certificates.k8s.io'],
  resources: ['certificatesigningrequests'],
};

const onResources = (resourceRules: readonly ResourceAccessRule[]): AccessRules => ({
  resourceRules,
  nonResourceRules: [],
  incomplete: false,
});

/** Permissions for joining: create a certificate signing request and watch it. Such a request contains no secret. */
const bootstrappers = onResources([certificateRequests]);

/**
 * Permissions of the agents of all nodes. Rules contain names of resources only; the admission plugin NodeRestriction
 * restricts an agent to the pods of its node.
 */
const everyNode: readonly ResourceAccessRule[] = [
  certificateRequests,
  { verbs: ['create'], apiGroups: [''], resources: ['nodes'] },
  { verbs: ['create', 'delete', 'get', 'list', 'watch'], apiGroups: [''], resources: ['pods'] },
  { verbs: ['patch'], apiGroups: [''], resources: ['pods/status'] },
  { verbs: ['get'], apiGroups: [''], resources: ['configmaps', 'secrets'] },
  { verbs: ['list'], apiGroups: [''], resources: ['services'] },
  { verbs: ['create', 'patch'], apiGroups: ['', 'events.k8s.io'], resources: ['events'] },
  // The agent delegates authentication and authorization of its callers to the server.
  { verbs: ['create'], apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'] },
  { verbs: ['create'], apiGroups: ['authorization.k8s.io'], resources: ['subjectaccessreviews'] },
];

function nodeRules(name: string, namespace: string): AccessRules {
  const resourceNames = [name];
  const leases = { apiGroups: ['coordination.k8s.io'], resources: ['leases'] };
  return onResources([
    ...everyNode,
    { verbs: ['get', 'patch'], apiGroups: [''], resources: ['nodes'], resourceNames },
    { verbs: ['patch'], apiGroups: [''], resources: ['nodes/status'], resourceNames },
    ...(namespace === leaseNamespace
      ? [
          { verbs: ['create'], ...leases },
          { verbs: ['get', 'update'], ...leases, resourceNames },
        ]
      : []),
  ]);
}

/**
 * Permissions of nodes and of joining nodes. A node is identified by its group and its user name. It may write the Node
 * and the Lease of its own name only.
 */
export function nodeAccess(user: UserInfo, namespace: string): AccessRules[] {
  const nodeName = nodeNameOf(user);
  return [
    ...(nodeName === undefined ? [] : [nodeRules(nodeName, namespace)]),
    ...(user.groups.includes(bootstrappersGroup) ? [bootstrappers] : []),
  ];
}

/** Whether a user is a node by its group and the form of its name. */
export function isNodeUser({ name, groups }: UserInfo): boolean {
  return groups.includes(nodesGroup) && name.startsWith(nodePrefix);
}

/** The node name of a user; undefined when the user is not a node, or when the user name does not contain one. */
export function nodeNameOf(user: UserInfo): string | undefined {
  return isNodeUser(user) && user.name.length > nodePrefix.length ? user.name.slice(nodePrefix.length) : undefined;
}

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

/** The user of a connection and the end of the certificate's validity in epoch milliseconds. */
interface Identity {
  readonly user: UserInfo;
  readonly notAfterMs: number;
}

function words(value: string | string[] | undefined): string[] {
  return value === undefined ? [] : Array.isArray(value) ? value : [value];
}

/**
 * Authenticates users by verified client certificates: see docs/reference/api-rules.md#client-certificates. The result
 * is computed once per connection: undefined without a certificate, `invalid` for one that is expired, from another
 * authority, not issued for clients, or without a common name.
 */
export function clientCertificates(clock: Clock): (request: IncomingMessage) => UserInfo | 'invalid' | undefined {
  const identities = new WeakMap<object, Identity | 'invalid' | 'none'>();
  return (request) => {
    const connection = connectionOf(request);
    let known = identities.get(connection);
    if (known === undefined) {
      known = readIdentity(request.socket as TLSSocket);
      identities.set(connection, known);
    }
    if (known === 'none') return undefined;
    return known === 'invalid' || known.notAfterMs <= clock.now() ? 'invalid' : known.user;
  };
}

/** The object that all requests of a connection share. In HTTP/2 every request has a socket object of its own. */
function connectionOf(request: IncomingMessage): object {
  return (request as IncomingMessage & Partial<Pick<Http2ServerRequest, 'stream'>>).stream?.session ?? request.socket;
}

function readIdentity(socket: TLSSocket): Identity | 'invalid' | 'none' {
  const certificate = socket.getPeerCertificate() as Partial<PeerCertificate> | undefined;
  if (certificate?.raw === undefined) return 'none';
  const subject = certificate.subject as unknown as Record<string, string | string[] | undefined> | undefined;
  const name = words(subject?.['CN'])[0] ?? '';
  if (socket.authorized !== true || name === '' || certificate.valid_to === undefined) return 'invalid';
  const user = { name, groups: [...words(subject?.['O']), 'system:authenticated'] };
  return { user, notAfterMs: Date.parse(certificate.valid_to) };
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Finds the user of a token. The comparison takes constant time for every configured token. */
export function tokenUsers(tokens: readonly KnownToken[]): AuthenticateToken {
  const known = tokens.map(({ token, user }) => ({ hash: digest(token), user }));
  return async (token, audiences) => {
    const hash = digest(token);
    let found: UserInfo | undefined;
    for (const one of known) if (timingSafeEqual(one.hash, hash)) found = one.user;
    // Tokens of a file are valid for this server only, not for other audiences.
    return found === undefined || audiences.length > 0 ? undefined : { user: found };
  };
}

/**
 * The user of the bearer token of a request; undefined without a token.
 *
 * @param authenticateToken undefined when no tokens are configured
 * @throws StatusError 401 for an unknown token, and for `Bearer` without a token
 */
export async function authenticateBearer(
  { headers: { authorization = '' } }: IncomingMessage,
  authenticateToken: AuthenticateToken | undefined,
): Promise<UserInfo | undefined> {
  const shown = /^\s*bearer(?:\s+(\S+)\s*$|\s|$)/i.exec(authorization);
  if (shown === null) return undefined;
  const found = shown[1] === undefined ? undefined : await authenticateToken?.(shown[1], []);
  if (found === undefined) throw statusErrors.unauthorized();
  return found.user;
}

/**
 * Authenticates by certificate, then by token. As in kube-apiserver, a request with invalid credentials is not
 * anonymous, and a valid token is sufficient beside an invalid certificate.
 */
export function authentication(
  authenticateToken: AuthenticateToken | undefined,
  clock: Clock,
): (request: IncomingMessage) => UserInfo | undefined | Promise<UserInfo | undefined> {
  const byCertificate = clientCertificates(clock);
  return (request) => {
    const user = byCertificate(request);
    if (user !== undefined && user !== 'invalid') return user;
    if (user === undefined && request.headers.authorization === undefined) return undefined;
    return authenticateBearer(request, authenticateToken).then((found) => {
      if (found === undefined && user === 'invalid') throw statusErrors.unauthorized();
      return found;
    });
  };
}
