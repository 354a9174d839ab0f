// One file: the roles and bindings that every server creates, which refer to each other by name.
import type { ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, Subject } from '@keelson/kinds';
import { controllerRules, events, named, rbacGroup, read, rule, signers } from './controller-roles.ts';

// The roles and bindings that Kubernetes 1.34 creates (plugin/pkg/auth/authorizer/rbac/bootstrappolicy), without those
// of Heapster and of controllers whose kinds are not served. Additions: paths may also be requested by HEAD, which load
// balancers use; discovery includes the documents of old clients; bootstrap credentials may request the certificate of
// a node; nodes may read the endpoints of services.

const apiVersion = `${rbacGroup}/v1`;

/** Annotation that disables the reconciliation of a role or binding when its value is `false`. */
export const autoupdateAnnotation = 'rbac.authorization.kubernetes.io/autoupdate';

const write = ['create', 'update', 'patch', 'delete', 'deletecollection'];
const readWrite = [...read, ...write];
const readUpdate = [...read, 'update'];
const readChange = [...readUpdate, 'patch'];

const paths = (...nonResourceURLs: string[]): PolicyRule => ({
  verbs: ['get', 'head'],
  nonResourceURLs: nonResourceURLs.sort(),
});

const reviews = [
  rule(['create'], 'authentication.k8s.io', 'tokenreviews'),
  rule(['create'], 'authorization.k8s.io', 'subjectaccessreviews'),
];
const health = ['/livez', '/readyz', '/healthz'];

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
  rule(read, 'resource.k8s.io', 'resourceclaims', 'resourceclaims/status', 'resourceclaimtemplates'),
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
  rule(write, 'resource.k8s.io', 'resourceclaims', 'resourceclaimtemplates'),
];

const adminRules: readonly PolicyRule[] = [
  rule(['create'], 'authorization.k8s.io', 'localsubjectaccessreviews'),
  rule(readWrite, rbacGroup, 'roles', 'rolebindings'),
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

const aggregate = (name: string) => ({ [`${rbacGroup}/aggregate-to-${name}`]: 'true' });

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
    rule(['list', 'watch'], 'networking.k8s.io', 'servicecidrs'),
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
  clusterRole('system:kube-aggregator', [rule(read, '', 'endpoints', 'services')]),
  clusterRole('system:kube-controller-manager', [
    events,
    rule(['create'], 'coordination.k8s.io', 'leases'),
    named(['kube-controller-manager'], rule(['get', 'update'], 'coordination.k8s.io', 'leases')),
    rule(['create'], '', 'secrets', 'serviceaccounts'),
    rule(['delete'], '', 'secrets'),
    rule(['get'], '', 'configmaps', 'namespaces', 'secrets', 'serviceaccounts'),
    rule(['update'], '', 'secrets', 'serviceaccounts'),
    ...reviews,
    rule(['list', 'watch'], '*', '*'),
    rule(['create'], '', 'serviceaccounts/token'),
  ]),
  clusterRole('system:kube-dns', [rule(['list', 'watch'], '', 'endpoints', 'services')]),
  clusterRole('system:kube-scheduler', [
    events,
    rule(['create'], 'coordination.k8s.io', 'leases'),
    named(['kube-scheduler'], rule(readUpdate, 'coordination.k8s.io', 'leases')),
    rule(readWrite, 'coordination.k8s.io', 'leasecandidates'),
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
    ...['csinodes', 'volumeattachments'].map((resource) => rule(read, 'storage.k8s.io', resource)),
    rule(read, '', 'namespaces'),
    ...['csidrivers', 'csistoragecapacities'].map((resource) => rule(read, 'storage.k8s.io', resource)),
    rule(read, 'resource.k8s.io', 'deviceclasses'),
    ...['resourceclaims', 'resourceclaims/status'].map((resource) => rule(readChange, 'resource.k8s.io', resource)),
    rule(['update'], '', 'pods/finalizers'),
    rule(read, 'resource.k8s.io', 'resourceslices'),
  ]),
  clusterRole('system:persistent-volume-provisioner', [
    rule([...read, 'create', 'delete'], '', 'persistentvolumes'),
    rule(readUpdate, '', 'persistentvolumeclaims'),
    rule(read, 'storage.k8s.io', 'storageclasses'),
    rule(['watch'], '', 'events'),
    events,
  ]),
  clusterRole('system:volume-scheduler', [
    rule(readChange, '', 'persistentvolumes'),
    rule(read, 'storage.k8s.io', 'storageclasses'),
    rule(readChange, '', 'persistentvolumeclaims'),
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
  ...Object.entries(controllerRules).map(([name, rules]) => clusterRole(`system:controller:${name}`, rules)),
];

const groupSubject = (name: string): Subject => ({ kind: 'Group', apiGroup: rbacGroup, name });
const userSubject = (name: string): Subject => ({ kind: 'User', apiGroup: rbacGroup, name });
const account = (name: string): Subject => ({ kind: 'ServiceAccount', name, namespace: 'kube-system' });

const clusterRoleBinding = (role: string, subjects: readonly Subject[]): ClusterRoleBinding => ({
  apiVersion,
  kind: 'ClusterRoleBinding',
  metadata: metadata(role),
  subjects: [...subjects],
  roleRef: { apiGroup: rbacGroup, kind: 'ClusterRole', name: role },
});

const authenticated = groupSubject('system:authenticated');

const clusterRoleBindings: readonly ClusterRoleBinding[] = [
  clusterRoleBinding('cluster-admin', [groupSubject('system:masters')]),
  clusterRoleBinding('system:monitoring', [groupSubject('system:monitoring')]),
  clusterRoleBinding('system:discovery', [authenticated]),
  clusterRoleBinding('system:basic-user', [authenticated]),
  clusterRoleBinding('system:public-info-viewer', [authenticated, groupSubject('system:unauthenticated')]),
  clusterRoleBinding('system:node-proxier', [userSubject('system:kube-proxy')]),
  clusterRoleBinding('system:kube-controller-manager', [userSubject('system:kube-controller-manager')]),
  clusterRoleBinding('system:kube-dns', [account('kube-dns')]),
  clusterRoleBinding('system:kube-scheduler', [userSubject('system:kube-scheduler')]),
  clusterRoleBinding('system:volume-scheduler', [userSubject('system:kube-scheduler')]),
  // Nodes are authorized by the Node authorizer. The binding is empty; an administrator may add `system:nodes` to it.
  clusterRoleBinding('system:node', []),
  clusterRoleBinding('system:node-bootstrapper', [groupSubject('system:bootstrappers')]),
  // The certificate of a node is approved by these permissions. In Kubernetes, kubeadm makes such bindings.
  clusterRoleBinding('system:certificates.k8s.io:certificatesigningrequests:nodeclient', [
    groupSubject('system:bootstrappers'),
  ]),
  clusterRoleBinding('system:certificates.k8s.io:certificatesigningrequests:selfnodeclient', [
    groupSubject('system:nodes'),
  ]),
  clusterRoleBinding('system:service-account-issuer-discovery', [groupSubject('system:serviceaccounts')]),
  ...Object.keys(controllerRules).map((name) => clusterRoleBinding(`system:controller:${name}`, [account(name)])),
];

const authenticationReader = 'extension-apiserver-authentication-reader';
const bootstrapSigner = 'system:controller:bootstrap-signer';
const tokenCleaner = 'system:controller:token-cleaner';
const cloudProvider = 'system:controller:cloud-provider';
const leaderOf = (component: string) => `system::leader-locking-${component}`;

const role = (namespace: string, name: string, rules: readonly PolicyRule[]): Role => ({
  apiVersion,
  kind: 'Role',
  metadata: metadata(name, {}, namespace),
  rules: [...rules],
});

/** Permits the election of the leader of a component by a lease or a ConfigMap. */
const leaderRole = (component: string): Role =>
  role('kube-system', leaderOf(component), [
    rule(['watch'], '', 'configmaps'),
    named([component], rule(['get', 'update'], '', 'configmaps')),
    ...['leases', 'leasecandidates'].map((kind) => rule([...readUpdate, 'create'], 'coordination.k8s.io', kind)),
  ]);

const roles: readonly Role[] = [
  role('kube-system', authenticationReader, [
    named(['extension-apiserver-authentication'], rule(read, '', 'configmaps')),
  ]),
  leaderRole('kube-controller-manager'),
  leaderRole('kube-scheduler'),
  role('kube-system', bootstrapSigner, [rule(read, '', 'secrets')]),
  role('kube-system', cloudProvider, [rule([...read, 'create'], '', 'configmaps')]),
  role('kube-system', tokenCleaner, [rule([...read, 'delete'], '', 'secrets'), events]),
  role('kube-public', bootstrapSigner, [
    rule(read, '', 'configmaps'),
    named(['cluster-info'], rule(['update'], '', 'configmaps')),
    events,
  ]),
];

const roleBinding = (namespace: string, name: string, subjects: readonly Subject[], to = name): RoleBinding => ({
  apiVersion,
  kind: 'RoleBinding',
  metadata: metadata(name, {}, namespace),
  subjects: [...subjects],
  roleRef: { apiGroup: rbacGroup, kind: 'Role', name: to },
});

const manager = userSubject('system:kube-controller-manager');
const scheduler = userSubject('system:kube-scheduler');

const roleBindings: readonly RoleBinding[] = [
  roleBinding('kube-system', `system::${authenticationReader}`, [manager, scheduler], authenticationReader),
  roleBinding('kube-system', leaderOf('kube-controller-manager'), [
    manager,
    account('kube-controller-manager'),
    account('leader-election-controller'),
  ]),
  roleBinding('kube-system', leaderOf('kube-scheduler'), [scheduler, account('kube-scheduler')]),
  roleBinding('kube-system', bootstrapSigner, [account('bootstrap-signer')]),
  roleBinding('kube-system', cloudProvider, [account('cloud-provider')]),
  roleBinding('kube-system', tokenCleaner, [account('token-cleaner')]),
  roleBinding('kube-public', bootstrapSigner, [account('bootstrap-signer')]),
];

/** Roles and bindings that exist in every control plane. */
export const bootstrapPolicy: {
  readonly clusterRoles: readonly ClusterRole[];
  readonly clusterRoleBindings: readonly ClusterRoleBinding[];
  readonly roles: readonly Role[];
  readonly roleBindings: readonly RoleBinding[];
} = { clusterRoles, clusterRoleBindings, roles, roleBindings };
