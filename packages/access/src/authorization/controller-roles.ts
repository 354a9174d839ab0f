import type { PolicyRule } from '@keelson/kinds';

/** Group of roles and bindings. */
export const rbacGroup = 'rbac.authorization.k8s.io';

export const read: readonly string[] = ['get', 'list', 'watch'];
const listWatch = ['list', 'watch'];
const workloads = ['apps', 'extensions'];
const storage = 'storage.k8s.io';
const networking = 'networking.k8s.io';

/** A rule with sorted lists, as Kubernetes writes them. */
export const rule = (
  verbs: readonly string[],
  apiGroup: string | readonly string[],
  ...resources: string[]
): PolicyRule => ({
  verbs: [...verbs].sort(),
  apiGroups: typeof apiGroup === 'string' ? [apiGroup] : [...apiGroup],
  resources: resources.sort(),
});

export const named = (names: readonly string[], restricted: PolicyRule): PolicyRule => ({
  ...restricted,
  resourceNames: [...names].sort(),
});

/** Permits to write events in both groups. */
export const events: PolicyRule = rule(['create', 'update', 'patch'], ['', 'events.k8s.io'], 'events');

/** The signers of Kubernetes. */
export const signers = {
  client: 'kubernetes.io/kube-apiserver-client',
  node: 'kubernetes.io/kube-apiserver-client-kubelet',
  serving: 'kubernetes.io/kubelet-serving',
  legacy: 'kubernetes.io/legacy-unknown',
};

/**
 * Rules of the roles `system:controller:NAME`, for programs that run controllers with credentials of their own, as
 * kube-controller-manager does with `--use-service-account-credentials`. Each role is bound to the service account
 * `NAME`. Controllers of kinds that the server does not have are left out.
 */
export const controllerRules: Readonly<Record<string, readonly PolicyRule[]>> = {
  'attachdetach-controller': [
    rule(listWatch, '', 'persistentvolumeclaims', 'persistentvolumes'),
    rule(read, '', 'nodes'),
    rule(['patch', 'update'], '', 'nodes/status'),
    rule(listWatch, '', 'pods'),
    events,
    rule([...read, 'create', 'delete'], storage, 'volumeattachments'),
    rule(read, storage, 'csidrivers'),
    rule(read, storage, 'csinodes'),
  ],
  'certificate-controller': [
    rule([...read, 'delete'], 'certificates.k8s.io', 'certificatesigningrequests'),
    rule(['update'], 'certificates.k8s.io', 'certificatesigningrequests/approval', 'certificatesigningrequests/status'),
    named([signers.node], rule(['approve'], 'certificates.k8s.io', 'signers')),
    named(Object.values(signers), rule(['sign'], 'certificates.k8s.io', 'signers')),
    rule(['create'], 'authorization.k8s.io', 'subjectaccessreviews'),
    events,
  ],
  'clusterrole-aggregation-controller': [rule([...read, 'escalate', 'patch', 'update'], rbacGroup, 'clusterroles')],
  'cronjob-controller': [
    rule([...read, 'update'], 'batch', 'cronjobs'),
    rule([...read, 'create', 'delete', 'patch', 'update'], 'batch', 'jobs'),
    rule(['update'], 'batch', 'cronjobs/status'),
    rule(['update'], 'batch', 'cronjobs/finalizers'),
    rule([...listWatch, 'delete'], '', 'pods'),
    events,
  ],
  'daemon-set-controller': [
    rule(read, workloads, 'daemonsets'),
    rule(['update'], workloads, 'daemonsets/status'),
    rule(['update'], workloads, 'daemonsets/finalizers'),
    rule(listWatch, '', 'nodes'),
    rule([...listWatch, 'create', 'delete', 'patch'], '', 'pods'),
    rule(['create'], '', 'pods/binding'),
    rule([...read, 'create', 'delete', 'patch', 'update'], 'apps', 'controllerrevisions'),
    events,
  ],
  'deployment-controller': [
    rule([...read, 'update'], workloads, 'deployments'),
    rule(['update'], workloads, 'deployments/status'),
    rule(['update'], workloads, 'deployments/finalizers'),
    rule([...read, 'create', 'delete', 'patch', 'update'], workloads, 'replicasets'),
    rule([...read, 'update'], '', 'pods'),
    events,
  ],
  'disruption-controller': [
    rule(read, workloads, 'deployments'),
    rule(read, workloads, 'replicasets'),
    rule(read, '', 'replicationcontrollers'),
    rule(read, 'policy', 'poddisruptionbudgets'),
    rule(read, 'apps', 'statefulsets'),
    rule(['update'], 'policy', 'poddisruptionbudgets/status'),
    rule(['patch', 'update'], '', 'pods/status'),
    rule(['get'], '*', '*/scale'),
    events,
  ],
  'endpoint-controller': [
    rule(read, '', 'pods', 'services'),
    rule([...read, 'create', 'delete', 'update'], '', 'endpoints'),
    rule(['create'], '', 'endpoints/restricted'),
    events,
  ],
  'endpointslice-controller': [
    rule(read, '', 'nodes', 'pods', 'services'),
    rule(['update'], '', 'services/finalizers'),
    rule([...read, 'create', 'delete', 'update'], 'discovery.k8s.io', 'endpointslices'),
    events,
  ],
  'endpointslicemirroring-controller': [
    rule(read, '', 'endpoints', 'services'),
    rule(['update'], '', 'services/finalizers'),
    rule(['update'], '', 'endpoints/finalizers'),
    rule([...read, 'create', 'delete', 'update'], 'discovery.k8s.io', 'endpointslices'),
    events,
  ],
  'ephemeral-volume-controller': [
    rule(read, '', 'pods'),
    rule(['update'], '', 'pods/finalizers'),
    rule([...read, 'create'], '', 'persistentvolumeclaims'),
    events,
  ],
  'expand-controller': [
    rule([...read, 'patch', 'update'], '', 'persistentvolumes'),
    rule(['patch', 'update'], '', 'persistentvolumeclaims/status'),
    rule(read, '', 'persistentvolumeclaims'),
    events,
    rule(['get'], '', 'services'),
  ],
  'generic-garbage-collector': [rule([...read, 'delete', 'patch', 'update'], '*', '*'), events],
  'horizontal-pod-autoscaler': [
    rule(read, 'autoscaling', 'horizontalpodautoscalers'),
    rule(['update'], 'autoscaling', 'horizontalpodautoscalers/status'),
    rule(['get', 'update'], '*', '*/scale'),
    rule(listWatch, '', 'pods'),
    rule(listWatch, 'metrics.k8s.io', 'pods'),
    rule(read, 'custom.metrics.k8s.io', '*'),
    rule(read, 'external.metrics.k8s.io', '*'),
    events,
  ],
  'job-controller': [
    rule([...read, 'patch', 'update'], 'batch', 'jobs'),
    rule(['update'], 'batch', 'jobs/status'),
    rule(['update'], 'batch', 'jobs/finalizers'),
    rule([...listWatch, 'create', 'delete', 'patch'], '', 'pods'),
    events,
  ],
  'legacy-service-account-token-cleaner': [
    named(['kube-apiserver-legacy-service-account-token-tracking'], rule(['get'], '', 'configmaps')),
    rule(['delete', 'patch'], '', 'secrets'),
  ],
  'namespace-controller': [
    rule([...read, 'delete'], '', 'namespaces'),
    rule(['update'], '', 'namespaces/finalize', 'namespaces/status'),
    rule([...read, 'delete', 'deletecollection'], '*', '*'),
  ],
  'node-controller': [
    rule([...read, 'delete', 'patch', 'update'], '', 'nodes'),
    rule(['patch', 'update'], '', 'nodes/status'),
    rule(['patch', 'update'], '', 'pods/status'),
    rule([...read, 'delete'], '', 'pods'),
    events,
  ],
  'persistent-volume-binder': [
    rule([...read, 'create', 'delete', 'update'], '', 'persistentvolumes'),
    rule(['update'], '', 'persistentvolumes/status'),
    rule([...read, 'update'], '', 'persistentvolumeclaims'),
    rule(['update'], '', 'persistentvolumeclaims/status'),
    rule([...read, 'create', 'delete'], '', 'pods'),
    rule(read, storage, 'storageclasses'),
    rule(listWatch, '', 'nodes'),
    events,
    rule(['watch'], '', 'events'),
    rule(['get'], '', 'services'),
  ],
  'pod-garbage-collector': [
    rule([...listWatch, 'delete'], '', 'pods'),
    rule(read, '', 'nodes'),
    rule(['patch'], '', 'pods/status'),
  ],
  'pv-protection-controller': [rule([...read, 'update'], '', 'persistentvolumes'), events],
  'pvc-protection-controller': [
    rule([...read, 'update'], '', 'persistentvolumeclaims'),
    rule(read, '', 'pods'),
    events,
  ],
  'replicaset-controller': [
    rule([...read, 'update'], workloads, 'replicasets'),
    rule(['update'], workloads, 'replicasets/status'),
    rule(['update'], workloads, 'replicasets/finalizers'),
    rule([...listWatch, 'create', 'delete', 'patch'], '', 'pods'),
    events,
  ],
  'replication-controller': [
    rule([...read, 'update'], '', 'replicationcontrollers'),
    rule(['update'], '', 'replicationcontrollers/status'),
    rule(['update'], '', 'replicationcontrollers/finalizers'),
    rule([...listWatch, 'create', 'delete', 'patch'], '', 'pods'),
    events,
  ],
  'resourcequota-controller': [rule(listWatch, '*', '*'), rule(['update'], '', 'resourcequotas/status'), events],
  'root-ca-cert-publisher': [rule(['create', 'update'], '', 'configmaps'), events],
  'route-controller': [rule(listWatch, '', 'nodes'), rule(['patch'], '', 'nodes/status'), events],
  'selinux-warning-controller': [
    events,
    rule(read, '', 'persistentvolumes'),
    rule(read, '', 'persistentvolumeclaims'),
    rule(read, '', 'pods'),
    rule(read, storage, 'csidrivers'),
  ],
  'service-account-controller': [rule(['create'], '', 'serviceaccounts'), events],
  'service-cidrs-controller': [
    rule([...read, 'patch', 'update'], networking, 'servicecidrs'),
    rule(['patch', 'update'], networking, 'servicecidrs/finalizers'),
    rule(['patch', 'update'], networking, 'servicecidrs/status'),
    rule(read, networking, 'ipaddresses'),
    events,
  ],
  'service-controller': [
    rule(read, '', 'services'),
    rule(['patch', 'update'], '', 'services/status'),
    rule(listWatch, '', 'nodes'),
    events,
  ],
  'statefulset-controller': [
    rule(listWatch, '', 'pods'),
    rule(read, 'apps', 'statefulsets'),
    rule(['update'], 'apps', 'statefulsets/status'),
    rule(['update'], 'apps', 'statefulsets/finalizers'),
    rule(['create', 'delete', 'get', 'patch', 'update'], '', 'pods'),
    rule([...read, 'create', 'delete', 'patch', 'update'], 'apps', 'controllerrevisions'),
    rule([...read, 'create'], '', 'persistentvolumeclaims'),
    events,
    rule(['delete', 'update'], '', 'persistentvolumeclaims'),
    rule(['update'], '', 'pods/finalizers'),
  ],
  'ttl-after-finished-controller': [rule([...read, 'delete'], 'batch', 'jobs'), events],
  'ttl-controller': [rule([...listWatch, 'patch', 'update'], '', 'nodes'), events],
  'validatingadmissionpolicy-status-controller': [
    rule(read, 'admissionregistration.k8s.io', 'validatingadmissionpolicies'),
    rule(['get', 'patch', 'update'], 'admissionregistration.k8s.io', 'validatingadmissionpolicies/status'),
    events,
  ],
};
