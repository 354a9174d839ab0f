import type { AccessRules, Authorizer, ResourceAccessRule, UserInfo } from '@keelson/core';
import { joinRules, rulesAllow } from '../authorization/rules.ts';

const nodesGroup = 'system:nodes';
const nodePrefix = 'system:node:';
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
  // NodeRestriction allows only tokens that are bound to a pod of the node.
  { verbs: ['create'], apiGroups: [''], resources: ['serviceaccounts/token'] },
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
 * Allows what agents of nodes require. A node is identified by its group and its user name. It may write the Node and
 * the Lease of its own name only. There is no opinion on other users.
 */
export const nodeAuthorizer: Authorizer = {
  authorize: (attributes, user) => ({ allowed: rulesAllow(nodeAccess(user, attributes.namespace), attributes) }),
  rulesFor: nodeAccess,
};

function nodeAccess(user: UserInfo, namespace: string): AccessRules {
  const nodeName = nodeNameOf(user);
  return nodeName === undefined ? joinRules([]) : nodeRules(nodeName, namespace);
}

/** Whether a user is a node by its group and the form of its name. */
export function isNodeUser({ name, groups }: UserInfo): boolean {
  return groups.includes(nodesGroup) && name.startsWith(nodePrefix);
}

/** The node name of a user; undefined when the user is not a node, or when the user name does not contain one. */
export function nodeNameOf(user: UserInfo): string | undefined {
  return isNodeUser(user) && user.name.length > nodePrefix.length ? user.name.slice(nodePrefix.length) : undefined;
}
