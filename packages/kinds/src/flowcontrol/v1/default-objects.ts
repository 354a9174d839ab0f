import type {
  FlowSchema,
  NonResourcePolicyRule,
  PriorityLevelConfiguration,
  ResourcePolicyRule,
  Subject,
} from './schema.ts';

/** `true`: the server updates the spec of the object to that of its version. */
export const autoupdateSpecAnnotation = 'apf.kubernetes.io/autoupdate-spec';

const apiVersion = 'flowcontrol.apiserver.k8s.io/v1';
const metadataOf = (name: string) => ({ name, annotations: { [autoupdateSpecAnnotation]: 'true' } });

function level(
  name: string,
  nominalConcurrencyShares: number,
  lendablePercent: number,
  queues?: number,
  handSize = 6,
): PriorityLevelConfiguration {
  const limitResponse =
    queues === undefined ? { type: 'Reject' } : { type: 'Queue', queuing: { queues, handSize, queueLengthLimit: 50 } };
  return {
    apiVersion,
    kind: 'PriorityLevelConfiguration',
    metadata: metadataOf(name),
    spec: { type: 'Limited', limited: { nominalConcurrencyShares, lendablePercent, limitResponse } },
  };
}

/** The priority levels that every server creates: those of Kubernetes. */
export const defaultPriorityLevels: readonly PriorityLevelConfiguration[] = [
  {
    apiVersion,
    kind: 'PriorityLevelConfiguration',
    metadata: metadataOf('exempt'),
    spec: { type: 'Exempt', exempt: { nominalConcurrencyShares: 0, lendablePercent: 0 } },
  },
  level('system', 30, 33, 64),
  level('node-high', 40, 25, 64),
  level('leader-election', 10, 0, 16, 4),
  level('workload-high', 40, 50, 128),
  level('workload-low', 100, 90, 128),
  level('global-default', 20, 50, 128),
  level('catch-all', 5, 0),
];

const groups = (...names: string[]): Subject[] => names.map((name) => ({ kind: 'Group', group: { name } }));
const users = (...names: string[]): Subject[] => names.map((name) => ({ kind: 'User', user: { name } }));
const systemAccounts: Subject = {
  kind: 'ServiceAccount',
  serviceAccount: { namespace: 'kube-system', name: '*' },
};
const everyone = groups('system:unauthenticated', 'system:authenticated');

const everyResource: ResourcePolicyRule = {
  verbs: ['*'],
  apiGroups: ['*'],
  resources: ['*'],
  clusterScope: true,
  namespaces: ['*'],
};
const everything = {
  resourceRules: [everyResource],
  nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
};

interface Rules {
  readonly resourceRules?: ResourcePolicyRule[];
  readonly nonResourceRules?: NonResourcePolicyRule[];
}

function flowSchema(
  name: string,
  levelName: string,
  matchingPrecedence: number,
  distinguisher: 'ByUser' | 'ByNamespace' | undefined,
  subjects: Subject[],
  rules: Rules = everything,
): FlowSchema {
  return {
    apiVersion,
    kind: 'FlowSchema',
    metadata: metadataOf(name),
    spec: {
      priorityLevelConfiguration: { name: levelName },
      matchingPrecedence,
      ...(distinguisher ? { distinguisherMethod: { type: distinguisher } } : {}),
      rules: [{ subjects, ...rules }],
    },
  };
}

const leases = (verbs: string[]): ResourcePolicyRule => ({
  verbs,
  apiGroups: ['coordination.k8s.io'],
  resources: ['leases'],
  namespaces: ['*'],
});

/** The flow schemas that every server creates: those of Kubernetes. */
export const defaultFlowSchemas: readonly FlowSchema[] = [
  flowSchema('exempt', 'exempt', 1, undefined, groups('system:masters')),
  flowSchema('probes', 'exempt', 2, undefined, everyone, {
    nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/healthz', '/readyz', '/livez'] }],
  }),
  flowSchema(
    'system-leader-election',
    'leader-election',
    100,
    'ByUser',
    [...users('system:kube-controller-manager', 'system:kube-scheduler'), systemAccounts],
    { resourceRules: [leases(['get', 'create', 'update'])] },
  ),
  flowSchema('system-node-high', 'node-high', 400, 'ByUser', groups('system:nodes'), {
    resourceRules: [{ ...everyResource, apiGroups: [''], resources: ['nodes', 'nodes/status'] }, leases(['*'])],
  }),
  flowSchema('system-nodes', 'system', 500, 'ByUser', groups('system:nodes')),
  flowSchema('kube-controller-manager', 'workload-high', 800, 'ByNamespace', users('system:kube-controller-manager')),
  flowSchema('kube-scheduler', 'workload-high', 800, 'ByNamespace', users('system:kube-scheduler')),
  flowSchema('kube-system-service-accounts', 'workload-high', 900, 'ByNamespace', [systemAccounts]),
  flowSchema('service-accounts', 'workload-low', 9000, 'ByUser', groups('system:serviceaccounts')),
  flowSchema('global-default', 'global-default', 9900, 'ByUser', everyone),
  flowSchema('catch-all', 'catch-all', 10_000, 'ByUser', everyone),
];
