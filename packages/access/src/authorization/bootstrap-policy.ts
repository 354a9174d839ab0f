// One file: the roles and bindings that every server creates, which refer to each other by name.
import type { ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, Subject } from '@keelson/kinds';

// The roles and bindings that Kubernetes 1.34 creates (plugin/pkg/auth/authorizer/rbac/bootstrappolicy), without those
// of components that do not exist here. Additions: paths may also be requested by HEAD, which load balancers use;
// discovery includes the documents of old clients; bootstrap credentials may request the certificate of a node; nodes
// may read the endpoints of services.

const group = 'rbac.authorization.k8s.io';
const apiVersion = 'rbac.authorization.k8s.io/v1';

/** Annotation that disables the reconciliation of a role or binding when its value is `false`. */
export const autoupdateAnnotation = 'rbac.authorization.kubernetes.io/autoupdate';

const write = ['create', 'update', 'patch', 'delete', 'deletecollection'];
const read = ['get', 'list', 'watch'];
const readWrite = [...read, ...write];

const rule = (verbs: readonly string[], apiGroup: string | readonly string[], ...resources: string[]): PolicyRule => ({
  verbs: [...verbs],
  apiGroups: typeof apiGroup === 'string' ? [apiGroup] : [...apiGroup],
  resources,
});
const named = (names: readonly string[], restricted: PolicyRule): PolicyRule => ({
  ...restricted,
  resourceNames: [...names],
});
const paths = (...nonResourceURLs: string[]): PolicyRule => ({ verbs: ['get', 'head'], nonResourceURLs });

const events = rule(['create', 'update', 'patch'], ['', 'events.k8s.io'], 'events');
const reviews = [
  rule(['create'], 'authentication.k8s.io', 'tokenreviews'),
  rule(['create'], 'authorization.k8s.io', 'subjectaccessreviews'),
];
const health = ['/livez', '/readyz', '/healthz'];
const signers = {
  legacy: 'kubernetes.io/legacy-unknown',
  client: 'kubernetes.io/kube-apiserver-client',
  node: 'kubernetes.io/kube-apiserver-client-kubelet',
  serving: 'kubernetes.io/kubelet-serving',
};

const viewRules: readonly PolicyRule[] = [
  rule(
    read,
    '',
    ...['pods', 'replicationcontrollers', 'replicationcontrollers/scale', 'serviceaccounts', 'services'],
    ...['services/status', 'endpoints', 'persistentvolumeclaims', 'persistentvolumeclaims/status', 'configmaps'],
  ),
  rule(
    read,
    '',
    ...['limitranges', 'resourcequotas', 'bindings', 'events', 'pods/status', 'resourcequotas/status'],
    ...['namespaces/status', 'replicationcontrollers/status', 'pods/log'],
  ),
  rule(read, '', 'namespaces'),
  rule(read, 'discovery.k8s.io', 'endpointslices'),
  rule(
    read,
    'apps',
    ...['controllerrevisions', 'statefulsets', 'statefulsets/status', 'statefulsets/scale', 'daemonsets'],
    ...['daemonsets/status', 'deployments', 'deployments/status', 'deployments/scale', 'replicasets'],
    ...['replicasets/status', 'replicasets/scale'],
  ),
  rule(read, 'autoscaling', 'horizontalpodautoscalers', 'horizontalpodautoscalers/status'),
  rule(read, 'batch', 'jobs', 'cronjobs', 'cronjobs/status', 'jobs/status'),
  rule(
    read,
    'extensions',
    ...['daemonsets', 'daemonsets/status', 'deployments', 'deployments/scale', 'deployments/status', 'ingresses'],
    ...['ingresses/status', 'replicasets', 'replicasets/scale', 'replicasets/status'],
    ...['replicationcontrollers/scale', 'networkpolicies'],
  ),
  rule(read, 'policy', 'poddisruptionbudgets', 'poddisruptionbudgets/status'),
  rule(read, 'networking.k8s.io', 'networkpolicies', 'ingresses', 'ingresses/status'),
];

const editRules: readonly PolicyRule[] = [
  rule(read, '', 'pods/attach', 'pods/proxy', 'pods/exec', 'pods/portforward', 'secrets', 'services/proxy'),
  rule(['impersonate'], '', 'serviceaccounts'),
  rule(write, '', 'pods', 'pods/attach', 'pods/proxy', 'pods/exec', 'pods/portforward'),
  rule(['create'], '', 'pods/eviction'),
  rule(
    write,
    '',
    ...['replicationcontrollers', 'replicationcontrollers/scale', 'serviceaccounts', 'services', 'services/proxy'],
    ...['persistentvolumeclaims', 'configmaps', 'secrets', 'events'],
  ),
  rule(['create'], '', 'serviceaccounts/token'),
  rule(
    write,
    'apps',
    ...['statefulsets', 'statefulsets/scale', 'daemonsets', 'deployments', 'deployments/scale'],
    ...['deployments/rollback', 'replicasets', 'replicasets/scale'],
  ),
  rule(write, 'autoscaling', 'horizontalpodautoscalers'),
  rule(write, 'batch', 'jobs', 'cronjobs'),
  rule(
    write,
    'extensions',
    ...['daemonsets', 'deployments', 'deployments/scale', 'deployments/rollback', 'ingresses', 'replicasets'],
    ...['replicasets/scale', 'replicationcontrollers/scale', 'networkpolicies'],
  ),
  rule(write, 'policy', 'poddisruptionbudgets'),
  rule(write, 'networking.k8s.io', 'networkpolicies', 'ingresses'),
  rule(readWrite, 'coordination.k8s.io', 'leases'),
];

const adminRules: readonly PolicyRule[] = [
  rule(['create'], 'authorization.k8s.io', 'localsubjectaccessreviews'),
  rule(readWrite, group, 'roles', 'rolebindings'),
];

/**
 * Permissions of node agents, as far as rules can express them; `NodeAuthorizer` restricts them to objects of the node.
 */
export const nodeRules: readonly PolicyRule[] = [
  rule(['create'], 'authentication.k8s.io', 'tokenreviews'),
  rule(['create'], 'authorization.k8s.io', 'subjectaccessreviews', 'localsubjectaccessreviews'),
  rule(read, '', 'services'),
  rule(['create', ...read], '', 'nodes'),
  rule(['update', 'patch'], '', 'nodes/status'),
  rule(['update', 'patch'], '', 'nodes'),
  rule(['create', 'update', 'patch'], '', 'events'),
  rule(read, '', 'pods'),
  rule(['create', 'delete'], '', 'pods'),
  rule(['update', 'patch'], '', 'pods/status'),
  rule(['create'], '', 'pods/eviction'),
  rule(read, '', 'secrets', 'configmaps'),
  rule(['get'], '', 'persistentvolumeclaims', 'persistentvolumes'),
  rule(['get'], '', 'endpoints', 'serviceaccounts'),
  rule(['get'], 'storage.k8s.io', 'volumeattachments'),
  rule(read, 'storage.k8s.io', 'csidrivers'),
  rule(['get', 'create', 'update', 'patch', 'delete'], 'storage.k8s.io', 'csinodes'),
  rule(read, 'node.k8s.io', 'runtimeclasses'),
  // Not in the role of Kubernetes: node agents here also route connections to the addresses of Services.
  rule(['list', 'watch'], 'discovery.k8s.io', 'endpointslices'),
  rule(['create', ...read], 'certificates.k8s.io', 'certificatesigningrequests'),
  rule(['get', 'create', 'update', 'patch', 'delete'], 'coordination.k8s.io', 'leases'),
  rule(['create'], '', 'serviceaccounts/token'),
  rule(['get', 'update', 'patch'], '', 'persistentvolumeclaims/status'),
];

const metadata = (name: string, labels: Readonly<Record<string, string>> = {}, namespace?: string) => ({
  name,
  ...(namespace === undefined ? {} : { namespace }),
  labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults', ...labels },
  annotations: { [autoupdateAnnotation]: 'true' },
});

const clusterRole = (
  name: string,
  rules: readonly PolicyRule[],
  labels: Readonly<Record<string, string>> = {},
): ClusterRole => ({ apiVersion, kind: 'ClusterRole', metadata: metadata(name, labels), rules: [...rules] });

const aggregate = (name: string) => ({ [`${group}/aggregate-to-${name}`]: 'true' });

/**
 * An aggregated ClusterRole. Its rules are those that the controller of aggregated ClusterRoles computes, so that the
 * role is complete from its creation.
 */
const collecting = (name: string, rules: readonly PolicyRule[], into?: string): ClusterRole => ({
  ...clusterRole(name, rules, into === undefined ? {} : aggregate(into)),
  aggregationRule: { clusterRoleSelectors: [{ matchLabels: aggregate(name) }] },
});

const approver = (name: string, signer: string): ClusterRole =>
  clusterRole(`system:certificates.k8s.io:${name}-approver`, [
    named([signer], rule(['approve'], 'certificates.k8s.io', 'signers')),
  ]);

/**
 * Roles of the controllers, for programs that run a controller remotely. Each has a service account of the same name.
 */
const controllers: Readonly<Record<string, readonly PolicyRule[]>> = {
  'certificate-controller': [
    rule([...read, 'delete'], 'certificates.k8s.io', 'certificatesigningrequests'),
    rule(['update'], 'certificates.k8s.io', 'certificatesigningrequests/status', 'certificatesigningrequests/approval'),
    named([signers.node], rule(['approve'], 'certificates.k8s.io', 'signers')),
    named(Object.values(signers), rule(['sign'], 'certificates.k8s.io', 'signers')),
    rule(['create'], 'authorization.k8s.io', 'subjectaccessreviews'),
    events,
  ],
  'clusterrole-aggregation-controller': [rule(['escalate', ...read, 'update', 'patch'], group, 'clusterroles')],
  'generic-garbage-collector': [rule([...read, 'patch', 'update', 'delete'], '*', '*'), events],
  'namespace-controller': [
    rule([...read, 'delete'], '', 'namespaces'),
    rule(['update'], '', 'namespaces/finalize', 'namespaces/status'),
    rule([...read, 'delete', 'deletecollection'], '*', '*'),
  ],
  'pod-garbage-collector': [
    rule(['list', 'watch', 'delete'], '', 'pods'),
    rule(read, '', 'nodes'),
    rule(['patch'], '', 'pods/status'),
  ],
  'root-ca-cert-publisher': [rule(['create', 'update'], '', 'configmaps'), events],
  'service-account-controller': [rule(['create'], '', 'serviceaccounts'), events],
};

const clusterRoles: readonly ClusterRole[] = [
  clusterRole('cluster-admin', [rule(['*'], '*', '*'), { verbs: ['*'], nonResourceURLs: ['*'] }]),
  clusterRole('system:discovery', [
    paths(
      ...[...health, '/version', '/version/', '/openapi', '/openapi/*', '/api', '/api/*', '/apis', '/apis/*'],
      ...['/', '/index.html', '/swagger.json', '/swagger-2.0.0.pb-v1'],
    ),
  ]),
  clusterRole('system:monitoring', [
    paths('/metrics', '/metrics/slis', ...health, ...health.map((path) => `${path}/*`)),
    rule(['get'], '', 'nodes/metrics'),
  ]),
  clusterRole('system:basic-user', [
    rule(['create'], 'authorization.k8s.io', 'selfsubjectaccessreviews', 'selfsubjectrulesreviews'),
    rule(['create'], 'authentication.k8s.io', 'selfsubjectreviews'),
  ]),
  clusterRole('system:public-info-viewer', [paths(...health, '/version', '/version/')]),
  collecting('admin', [...editRules, ...viewRules, ...adminRules]),
  collecting('edit', [...editRules, ...viewRules], 'admin'),
  collecting('view', viewRules, 'edit'),
  clusterRole('system:aggregate-to-admin', adminRules, aggregate('admin')),
  clusterRole('system:aggregate-to-edit', editRules, aggregate('edit')),
  clusterRole('system:aggregate-to-view', viewRules, aggregate('view')),
  clusterRole('system:aggregated-metrics-reader', [rule(read, 'metrics.k8s.io', 'pods', 'nodes')], aggregate('view')),
  clusterRole('system:node', nodeRules),
  clusterRole('system:node-proxier', [
    rule(['list', 'watch'], '', 'services', 'endpoints'),
    rule(read, '', 'nodes'),
    events,
    rule(['list', 'watch'], 'discovery.k8s.io', 'endpointslices'),
  ]),
  clusterRole('system:node-problem-detector', [
    rule(['get'], '', 'nodes'),
    rule(['patch'], '', 'nodes/status'),
    events,
  ]),
  clusterRole('system:node-bootstrapper', [
    rule(['create', ...read], 'certificates.k8s.io', 'certificatesigningrequests'),
  ]),
  clusterRole('system:auth-delegator', reviews),
  clusterRole('system:kubelet-api-admin', [
    rule(read, '', 'nodes'),
    rule(['proxy'], '', 'nodes'),
    rule(['*'], '', 'nodes/proxy', 'nodes/metrics', 'nodes/stats', 'nodes/log'),
    rule(['*'], '', 'nodes/pods', 'nodes/healthz', 'nodes/configz'),
  ]),
  clusterRole('system:kube-scheduler', [
    events,
    rule(['create'], 'coordination.k8s.io', 'leases'),
    named(['kube-scheduler'], rule(['get', 'update', 'list', 'watch'], 'coordination.k8s.io', 'leases')),
    rule(read, '', 'nodes'),
    rule([...read, 'delete'], '', 'pods'),
    rule(['create'], '', 'pods/binding', 'bindings'),
    rule(['patch', 'update'], '', 'pods/status'),
    rule(read, '', 'services', 'replicationcontrollers'),
    rule(read, ['apps', 'extensions'], 'replicasets'),
    rule(read, 'apps', 'statefulsets'),
    rule(read, 'policy', 'poddisruptionbudgets'),
    rule(read, '', 'persistentvolumeclaims', 'persistentvolumes'),
    ...reviews,
    rule(read, '', 'namespaces'),
  ]),
  clusterRole('system:certificates.k8s.io:certificatesigningrequests:nodeclient', [
    rule(['create'], 'certificates.k8s.io', 'certificatesigningrequests/nodeclient'),
  ]),
  clusterRole('system:certificates.k8s.io:certificatesigningrequests:selfnodeclient', [
    rule(['create'], 'certificates.k8s.io', 'certificatesigningrequests/selfnodeclient'),
  ]),
  approver('legacy-unknown', signers.legacy),
  approver('kubelet-serving', signers.serving),
  approver('kube-apiserver-client', signers.client),
  approver('kube-apiserver-client-kubelet', signers.node),
  clusterRole('system:service-account-issuer-discovery', [
    paths(
      ...['/.well-known/openid-configuration', '/.well-known/openid-configuration/'],
      ...['/openid/v1/jwks', '/openid/v1/jwks/'],
    ),
  ]),
  ...Object.entries(controllers).map(([name, rules]) => clusterRole(`system:controller:${name}`, rules)),
];

const groupSubject = (name: string): Subject => ({ kind: 'Group', apiGroup: group, name });
const userSubject = (name: string): Subject => ({ kind: 'User', apiGroup: group, name });
const account = (name: string): Subject => ({ kind: 'ServiceAccount', name, namespace: 'kube-system' });

const clusterRoleBinding = (role: string, subjects: readonly Subject[]): ClusterRoleBinding => ({
  apiVersion,
  kind: 'ClusterRoleBinding',
  metadata: metadata(role),
  subjects: [...subjects],
  roleRef: { apiGroup: group, kind: 'ClusterRole', name: role },
});

const authenticated = groupSubject('system:authenticated');

const clusterRoleBindings: readonly ClusterRoleBinding[] = [
  clusterRoleBinding('cluster-admin', [groupSubject('system:masters')]),
  clusterRoleBinding('system:monitoring', [groupSubject('system:monitoring')]),
  clusterRoleBinding('system:discovery', [authenticated]),
  clusterRoleBinding('system:basic-user', [authenticated]),
  clusterRoleBinding('system:public-info-viewer', [authenticated, groupSubject('system:unauthenticated')]),
  clusterRoleBinding('system:node-proxier', [userSubject('system:kube-proxy')]),
  clusterRoleBinding('system:kube-scheduler', [userSubject('system:kube-scheduler')]),
  // Nodes are authorized by the Node authorizer. The binding is empty; an administrator may add `system:nodes` to it.
  clusterRoleBinding('system:node', []),
  clusterRoleBinding('system:node-bootstrapper', [groupSubject('system:bootstrappers')]),
  clusterRoleBinding('system:service-account-issuer-discovery', [groupSubject('system:serviceaccounts')]),
  ...Object.keys(controllers).map((name) => clusterRoleBinding(`system:controller:${name}`, [account(name)])),
];

const roles: readonly Role[] = [
  {
    apiVersion,
    kind: 'Role',
    metadata: metadata('extension-apiserver-authentication-reader', {}, 'kube-system'),
    rules: [named(['extension-apiserver-authentication'], rule(read, '', 'configmaps'))],
  },
];

const roleBindings: readonly RoleBinding[] = [
  {
    apiVersion,
    kind: 'RoleBinding',
    metadata: metadata('system::extension-apiserver-authentication-reader', {}, 'kube-system'),
    subjects: [userSubject('system:kube-controller-manager'), userSubject('system:kube-scheduler')],
    roleRef: { apiGroup: group, kind: 'Role', name: 'extension-apiserver-authentication-reader' },
  },
];

/** Roles and bindings that exist in every control plane. */
export const bootstrapPolicy: {
  readonly clusterRoles: readonly ClusterRole[];
  readonly clusterRoleBindings: readonly ClusterRoleBinding[];
  readonly roles: readonly Role[];
  readonly roleBindings: readonly RoleBinding[];
} = { clusterRoles, clusterRoleBindings, roles, roleBindings };
