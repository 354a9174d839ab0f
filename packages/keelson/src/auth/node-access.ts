import type { AccessRules, ResourceAccessRule, UserInfo } from '@keelson/core';

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

/** What joining takes: a certificate may be asked for and waited for. A request holds nothing secret. */
const bootstrappers = onResources([certificateRequests]);

/**
 * What an agent asks for, whichever node it is. Rules know names and not contents: whose pods it changes is for
 * admission to say.
 */
const everyNode: readonly ResourceAccessRule[] = [
  certificateRequests,
  { verbs: ['create'], apiGroups: [''], resources: ['nodes'] },
  { verbs: ['create', 'delete', 'get', 'list', 'watch'], apiGroups: [''], resources: ['pods'] },
  { verbs: ['patch'], apiGroups: [''], resources: ['pods/status'] },
  { verbs: ['get'], apiGroups: [''], resources: ['configmaps', 'secrets'] },
  { verbs: ['list'], apiGroups: [''], resources: ['services'] },
  { verbs: ['create', 'patch'], apiGroups: ['', 'events.k8s.io'], resources: ['events'] },
  // Who calls the agent, and whether they may, is the server's to say.
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
 * What users may do for being a node, or for joining as one. A node is known by both its group and its name; it writes
 * the node object and the lease in its own name only.
 */
export function nodeAccess(user: UserInfo, namespace: string): AccessRules[] {
  const nodeName = nodeNameOf(user);
  return [
    ...(nodeName === undefined ? [] : [nodeRules(nodeName, namespace)]),
    ...(user.groups.includes(bootstrappersGroup) ? [bootstrappers] : []),
  ];
}

/** Whether a user is a node by group and form of name. */
export function isNodeUser({ name, groups }: UserInfo): boolean {
  return groups.includes(nodesGroup) && name.startsWith(nodePrefix);
}

/** The name of the node that a user is; undefined when it is none, or when the user name does not contain one. */
export function nodeNameOf(user: UserInfo): string | undefined {
  return isNodeUser(user) && user.name.length > nodePrefix.length ? user.name.slice(nodePrefix.length) : undefined;
}
