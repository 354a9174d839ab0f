import type { PersistentVolume } from '@keelson/kinds';
import test from 'ava';
import { type LocalPod, localCluster, place, pod } from './support/local-cluster.ts';
import type { NodeParts } from './support/test-cluster.ts';

interface Case {
  readonly title: string;
  readonly nodes: Record<string, NodeParts>;
  readonly others?: Record<string, LocalPod>;
  readonly pod: LocalPod;
  /** The chosen node, or the message. */
  readonly expected: string;
}

const zone = (name: string): NodeParts => ({ labels: { zone: name } });
const taint = (key: string, effect: string, value?: string): NodeParts => ({
  spec: { taints: [{ key, effect, ...(value !== undefined && { value }) }] },
});
const tolerate = (...tolerations: object[]): LocalPod => ({ spec: { tolerations: tolerations as never } });
const onNode = (matchExpressions: object[], matchFields: object[] = []): LocalPod => ({
  spec: {
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions, matchFields } as never],
        },
      },
    },
  },
});
const port = (hostPort: number, protocol = 'TCP', hostIP?: string): LocalPod => ({
  ports: [{ containerPort: 80, hostPort, protocol, ...(hostIP !== undefined && { hostIP }) }],
});
const term = (app: string, topologyKey: string, more: object = {}) => ({
  labelSelector: { matchLabels: { app } },
  topologyKey,
  ...more,
});
const required = (kind: 'podAffinity' | 'podAntiAffinity', ...terms: object[]) => ({
  affinity: { [kind]: { requiredDuringSchedulingIgnoredDuringExecution: terms as never } },
});
const spread = (topologyKey: string, more: object = {}) => ({
  topologySpreadConstraints: [
    {
      maxSkew: 1,
      topologyKey,
      whenUnsatisfiable: 'DoNotSchedule',
      labelSelector: { matchLabels: { app: 'web' } },
      ...more,
    },
  ],
});
const web = { labels: { app: 'web' } };

const cases: Case[] = [
  {
    title: 'a cordoned node is rejected',
    nodes: { n1: { spec: { unschedulable: true } } },
    pod: {},
    expected: '0/1 nodes are available: 1 node(s) were unschedulable.',
  },
  {
    title: 'a cordoned node accepts pods that tolerate its taint',
    nodes: { n1: { spec: { unschedulable: true } } },
    pod: tolerate({ key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' }),
    expected: 'n1',
  },
  {
    title: 'each untolerated taint is reported, with the number of nodes',
    nodes: {
      n1: taint('a', 'NoSchedule', 'b'),
      n2: taint('a', 'NoSchedule', 'b'),
      n3: taint('node.kubernetes.io/not-ready', 'NoExecute'),
    },
    pod: {},
    expected:
      '0/3 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }, ' +
      '2 node(s) had untolerated taint {a: b}.',
  },
  {
    title: 'a toleration must have key, value and effect of the taint',
    nodes: { n1: taint('a', 'NoSchedule', 'b') },
    pod: tolerate(
      { key: 'a', value: 'c' },
      { key: 'a', value: 'b', effect: 'NoExecute' },
      { key: 'x', operator: 'Exists' },
    ),
    expected: '0/1 nodes are available: 1 node(s) had untolerated taint {a: b}.',
  },
  {
    title: 'a toleration without key tolerates every taint',
    nodes: { n1: taint('a', 'NoSchedule', 'b') },
    pod: tolerate({ operator: 'Exists' }),
    expected: 'n1',
  },
  {
    title: 'a taint of effect PreferNoSchedule rejects nothing',
    nodes: { n1: taint('a', 'PreferNoSchedule') },
    pod: {},
    expected: 'n1',
  },
  {
    title: 'the node selector must match',
    nodes: { n1: zone('a'), n2: zone('b') },
    pod: { spec: { nodeSelector: { zone: 'b' } } },
    expected: 'n2',
  },
  {
    title: 'a node selector that matches no node is reported',
    nodes: { n1: zone('a'), n2: {} },
    pod: { spec: { nodeSelector: { zone: 'c' } } },
    expected: "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.",
  },
  ...(
    [
      ['In', ['a', 'x'], 'n1'],
      ['NotIn', ['a'], 'n2'],
      ['DoesNotExist', [], 'n3'],
      ['Gt', ['6'], 'n2'],
      ['Lt', ['6'], undefined],
    ] as const
  ).map(
    ([operator, values, expected]): Case => ({
      title: `required node affinity with ${operator} selects nodes`,
      nodes: {
        n1: zone('a'),
        n2: operator === 'NotIn' || operator === 'Gt' ? zone('7') : zone('a'),
        n3: operator === 'DoesNotExist' ? {} : zone('a'),
      },
      pod: onNode([{ key: 'zone', operator, values }]),
      expected: expected ?? "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.",
    }),
  ),
  {
    title: 'node affinity to a name, as daemon sets use it, selects that node',
    nodes: { n1: {}, n2: {} },
    pod: onNode([], [{ key: 'metadata.name', operator: 'In', values: ['n2'] }]),
    expected: 'n2',
  },
  {
    title: 'nodes other than the named one are not examined',
    nodes: { n1: {}, n2: { allocatable: { cpu: '1' } }, n3: {} },
    pod: { ...onNode([], [{ key: 'metadata.name', operator: 'In', values: ['n2'] }]), requests: { cpu: '2' } },
    expected: "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity].",
  },
  {
    title: 'a term without conditions matches no node',
    nodes: { n1: {} },
    pod: onNode([]),
    expected: "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
  },
  {
    title: 'contradictory node names are reported',
    nodes: { n1: {}, n2: {} },
    pod: onNode(
      [],
      [
        { key: 'metadata.name', operator: 'In', values: ['n1'] },
        { key: 'metadata.name', operator: 'In', values: ['n2'] },
      ],
    ),
    expected: '0/2 nodes are available: pod affinity terms conflict.',
  },
  {
    title: 'a used host port is rejected',
    nodes: { n1: {} },
    others: { a: { node: 'n1', ...port(80) } },
    pod: port(80),
    expected: "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.",
  },
  {
    title: 'a host port of another protocol is free',
    nodes: { n1: {} },
    others: { a: { node: 'n1', ...port(80) } },
    pod: port(80, 'UDP'),
    expected: 'n1',
  },
  {
    title: 'a host port at another address is free',
    nodes: { n1: {} },
    others: { a: { node: 'n1', ...port(80, 'TCP', '10.0.0.1') } },
    pod: port(80, 'TCP', '10.0.0.2'),
    expected: 'n1',
  },
  ...(
    [
      ['0.0.0.0', '10.0.0.1'],
      ['10.0.0.1', undefined],
      ['10.0.0.1', '10.0.0.1'],
    ] as const
  ).map(
    ([used, wanted]): Case => ({
      title: `host port 80 at ${used} conflicts with ${wanted ?? 'all addresses'}`,
      nodes: { n1: {} },
      others: { a: { node: 'n1', ...port(80, 'TCP', used) } },
      pod: port(80, 'TCP', wanted),
      expected: "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.",
    }),
  ),
  {
    title: 'all insufficient resources of a node are reported',
    nodes: { n1: { allocatable: { cpu: '1', memory: '1Gi', pods: '1', 'example.com/gpu': '1' } } },
    others: { a: { node: 'n1', requests: { cpu: '600m' } } },
    pod: { requests: { cpu: '500m', memory: '2Gi', 'ephemeral-storage': '1Gi', 'example.com/gpu': '2' } },
    expected:
      '0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient ephemeral-storage, ' +
      '1 Insufficient example.com/gpu, 1 Insufficient memory, 1 Too many pods.',
  },
  {
    title: 'a pod without requests fits a node whose resources are all requested',
    nodes: { n1: { allocatable: { cpu: '1' } } },
    others: { a: { node: 'n1', requests: { cpu: '1' } } },
    pod: {},
    expected: 'n1',
  },
  {
    title: 'the largest init container counts when it requests more than all containers',
    nodes: { n1: { allocatable: { cpu: '2' } } },
    pod: {
      requests: { cpu: '1' },
      spec: { initContainers: [{ name: 'i', resources: { requests: { cpu: '2500m' } } }] as never },
    },
    expected: '0/1 nodes are available: 1 Insufficient cpu.',
  },
  {
    title: 'sidecars count in addition to containers and to later init containers',
    nodes: { n1: { allocatable: { cpu: '2' } } },
    pod: {
      requests: { cpu: '1' },
      spec: {
        initContainers: [
          { name: 's', restartPolicy: 'Always', resources: { requests: { cpu: '800m' } } },
          { name: 'i', resources: { requests: { cpu: '1300m' } } },
        ] as never,
      },
    },
    expected: '0/1 nodes are available: 1 Insufficient cpu.',
  },
  {
    title: 'the overhead of the pod counts',
    nodes: { n1: { allocatable: { cpu: '1' } } },
    pod: { requests: { cpu: '900m' }, spec: { overhead: { cpu: '200m' } } },
    expected: '0/1 nodes are available: 1 Insufficient cpu.',
  },
  {
    title: 'requests of the whole pod replace those of its containers',
    nodes: { n1: { allocatable: { cpu: '1' } } },
    pod: { requests: { cpu: '100m' }, spec: { resources: { requests: { cpu: '2' } } } },
    expected: '0/1 nodes are available: 1 Insufficient cpu.',
  },
  {
    title: 'a topology domain that exceeds maxSkew is rejected',
    nodes: { n1: zone('a'), n2: zone('a'), n3: { ...zone('b'), spec: { unschedulable: true } } },
    others: { a: { ...web, node: 'n1' } },
    pod: { ...web, spec: spread('zone') },
    expected:
      "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match pod topology spread constraints.",
  },
  {
    title: 'the topology domain with fewer pods is chosen',
    nodes: { n1: zone('a'), n2: zone('b') },
    others: { a: { ...web, node: 'n1' }, b: { ...web, node: 'n1' }, c: { ...web, node: 'n2' } },
    pod: { ...web, spec: spread('zone') },
    expected: 'n2',
  },
  {
    title: 'pods of other namespaces and terminating pods do not count for topology spread',
    nodes: { n1: zone('a'), n2: { ...zone('b'), spec: { unschedulable: true } } },
    others: { a: { ...web, node: 'n1', namespace: 'other' }, b: { ...web, node: 'n1', deleting: true } },
    pod: { ...web, spec: spread('zone') },
    expected: 'n1',
  },
  {
    title: 'a node without the topology label is reported as such',
    nodes: { n1: {}, n2: {} },
    pod: { ...web, spec: spread('zone') },
    expected:
      "0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints (missing required label).",
  },
  {
    title: 'with fewer domains than minDomains the lowest count is 0',
    nodes: { n1: zone('a'), n2: zone('b') },
    others: { a: { ...web, node: 'n1' }, b: { ...web, node: 'n2' } },
    pod: { ...web, spec: spread('zone', { minDomains: 3 }) },
    expected: "0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints.",
  },
  {
    title: 'values of matchLabelKeys restrict which pods are counted',
    nodes: { n1: zone('a'), n2: { ...zone('b'), spec: { unschedulable: true } } },
    others: { a: { labels: { app: 'web', revision: '1' }, node: 'n1' } },
    pod: { labels: { app: 'web', revision: '2' }, spec: spread('zone', { matchLabelKeys: ['revision'] }) },
    expected: 'n1',
  },
  {
    title: 'nodes that node affinity excludes do not count by default',
    nodes: { n1: zone('a'), n2: zone('b') },
    others: { a: { ...web, node: 'n1' } },
    pod: { ...web, spec: { ...spread('zone'), nodeSelector: { zone: 'a' } } },
    expected: 'n1',
  },
  {
    title: 'nodes that node affinity excludes count when the policy ignores it',
    nodes: { n1: zone('a'), n2: zone('b') },
    others: { a: { ...web, node: 'n1' } },
    pod: { ...web, spec: { ...spread('zone', { nodeAffinityPolicy: 'Ignore' }), nodeSelector: { zone: 'a' } } },
    expected:
      "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, " +
      "1 node(s) didn't match pod topology spread constraints.",
  },
  {
    title: 'tainted nodes do not count when the policy honors taints',
    nodes: { n1: zone('a'), n2: { ...zone('b'), ...taint('x', 'NoSchedule') } },
    others: { a: { ...web, node: 'n1' } },
    pod: { ...web, spec: spread('zone', { nodeTaintsPolicy: 'Honor' }) },
    expected: 'n1',
  },
  {
    title: 'required affinity selects topology domains with such pods',
    nodes: { n1: zone('a'), n2: zone('b'), n3: { ...zone('b'), spec: { unschedulable: true } } },
    others: { a: { ...web, node: 'n3' } },
    pod: { spec: required('podAffinity', term('web', 'zone')) },
    expected: 'n2',
  },
  {
    title: 'required affinity without such pods is reported',
    nodes: { n1: zone('a') },
    pod: { spec: required('podAffinity', term('web', 'zone')) },
    expected: "0/1 nodes are available: 1 node(s) didn't match pod affinity rules.",
  },
  {
    title: 'the first of several pods with affinity to each other fits',
    nodes: { n1: zone('a') },
    pod: { ...web, spec: required('podAffinity', term('web', 'zone')) },
    expected: 'n1',
  },
  {
    title: 'the first of several pods with affinity still requires nodes with the topology label',
    nodes: { n1: {} },
    pod: { ...web, spec: required('podAffinity', term('web', 'zone')) },
    expected: "0/1 nodes are available: 1 node(s) didn't match pod affinity rules.",
  },
  {
    title: 'pods of other namespaces do not count for affinity',
    nodes: { n1: zone('a') },
    others: { a: { ...web, namespace: 'other', node: 'n1' } },
    pod: { spec: required('podAffinity', term('web', 'zone')) },
    expected: "0/1 nodes are available: 1 node(s) didn't match pod affinity rules.",
  },
  {
    title: 'affinity to listed namespaces',
    nodes: { n1: zone('a') },
    others: { a: { ...web, namespace: 'other', node: 'n1' } },
    pod: { spec: required('podAffinity', term('web', 'zone', { namespaces: ['other'] })) },
    expected: 'n1',
  },
  {
    title: 'affinity to namespaces by their labels',
    nodes: { n1: zone('a'), n2: zone('b') },
    others: { a: { ...web, namespace: 'other', node: 'n1' }, b: { ...web, node: 'n2' } },
    pod: {
      spec: required(
        'podAffinity',
        term('web', 'zone', { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'default' } } }),
      ),
    },
    expected: 'n2',
  },
  {
    title: 'required anti-affinity rejects topology domains with such pods',
    nodes: { n1: zone('a'), n2: zone('a') },
    others: { a: { ...web, node: 'n1' } },
    pod: { spec: required('podAntiAffinity', term('web', 'zone')) },
    expected: "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules.",
  },
  {
    title: 'required anti-affinity of assigned pods applies to new pods',
    nodes: { n1: zone('a'), n2: zone('a') },
    others: { a: { node: 'n1', spec: required('podAntiAffinity', term('web', 'zone')) } },
    pod: web,
    expected: "0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules.",
  },
  {
    title: 'keys that the API server has merged into the selector are not applied again to labels that have changed',
    nodes: { n1: zone('a') },
    others: { a: { labels: { app: 'web', revision: '1' }, node: 'n1' } },
    pod: {
      labels: { app: 'web', revision: '2' },
      spec: required(
        'podAntiAffinity',
        term('web', 'zone', {
          matchLabelKeys: ['revision'],
          labelSelector: { matchExpressions: [{ key: 'revision', operator: 'In', values: ['1'] }] },
        }),
      ),
    },
    expected: "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules.",
  },
  {
    title: 'mismatchLabelKeys separate tenants',
    nodes: { n1: zone('a'), n2: zone('b') },
    others: {
      a: { labels: { app: 'web', tenant: 'x' }, node: 'n1' },
      b: { labels: { app: 'web', tenant: 'y' }, node: 'n2' },
    },
    pod: {
      labels: { app: 'web', tenant: 'y' },
      spec: required('podAntiAffinity', term('web', 'zone', { mismatchLabelKeys: ['tenant'] })),
    },
    expected: 'n2',
  },
];

for (const { title, nodes, others, pod: subject, expected } of cases)
  test(title, (t) => {
    const cluster = localCluster(nodes, others);
    t.is(place(pod('subject', subject), cluster), expected);
    for (const name of Object.keys(others ?? {})) cluster.remove(name);
    for (const { requested } of cluster.nodes)
      t.true(
        Object.values(requested).every((amount) => amount === 0),
        'removed pods leave nothing behind',
      );
  });

const claimPod: LocalPod = {
  spec: { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }] },
};
const claim = { phase: 'Bound', volumeName: 'pv', deleting: false, exclusive: false, podUid: undefined };

for (const [title, state, expected] of [
  ['a missing claim', undefined, '0/1 nodes are available: persistentvolumeclaim "data" not found.'],
  ['a bound claim', claim, 'n1'],
  [
    'an unbound claim',
    { ...claim, phase: 'Pending', volumeName: '' },
    '0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.',
  ],
  [
    'a claim in deletion',
    { ...claim, deleting: true },
    '0/1 nodes are available: persistentvolumeclaim "data" is being deleted.',
  ],
  [
    'a claim of a lost volume',
    { ...claim, phase: 'Lost' },
    '0/1 nodes are available: persistentvolumeclaim "data" bound to non-existent persistentvolume "pv".',
  ],
] as const)
  test(`a pod with ${title}`, (t) => {
    const cluster = localCluster({ n1: {} });
    if (state !== undefined) cluster.claims.set('default/data', state);
    cluster.volumes.set('pv', volumeOf('pv'));
    t.is(place(pod('subject', claimPod), cluster), expected);
  });

/** A free volume, on one node where it is given. */
function volumeOf(name: string, node?: string): PersistentVolume {
  const matchExpressions = [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node ?? ''] }];
  const nodeAffinity = { required: { nodeSelectorTerms: [{ matchExpressions }] } };
  return {
    metadata: { name },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'local',
      ...(node === undefined ? {} : { nodeAffinity }),
    },
    status: { phase: 'Available' },
  };
}

test('a bound claim restricts its pod to the nodes that can access the volume', (t) => {
  const cluster = localCluster({ n1: {}, n2: {} });
  cluster.claims.set('default/data', claim);
  const expected = (what: string) => `0/2 nodes are available: 2 ${what}.`;
  t.is(
    place(pod('subject', claimPod), cluster),
    expected('node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)'),
  );
  cluster.volumes.set('pv', volumeOf('pv', 'n2'));
  t.is(place(pod('subject', claimPod), cluster), 'n2');
  cluster.volumes.set('pv', volumeOf('pv', 'n3'));
  t.is(place(pod('subject', claimPod), cluster), expected("node(s) didn't match PersistentVolume's node affinity"));
});

test('a claim with WaitForFirstConsumer allows nodes with a free volume, or those where volumes are provisioned', (t) => {
  const cluster = localCluster({ n1: zone('a'), n2: zone('b') });
  const resources = { requests: { storage: '1Gi' } };
  const spec = { storageClassName: 'local', accessModes: ['ReadWriteOnce'], resources };
  const unbound = { metadata: { name: 'data', namespace: 'default' }, spec };
  cluster.claims.set('default/data', { ...claim, phase: 'Pending', volumeName: '', unbound });
  const subject = pod('subject', claimPod);
  const immediate = '0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims.';
  t.is(place(subject, cluster), immediate);
  const storageClass = { metadata: { name: 'local' }, provisioner: 'kubernetes.io/no-provisioner' };
  cluster.storageClasses.set('local', { ...storageClass, volumeBindingMode: 'Immediate' });
  t.is(place(subject, cluster), immediate);
  const delayed = { ...storageClass, volumeBindingMode: 'WaitForFirstConsumer' };
  cluster.storageClasses.set('local', delayed);
  t.is(place(subject, cluster), "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind.");
  cluster.volumes.set('small', { ...volumeOf('small', 'n1'), spec: { capacity: { storage: '1Mi' } } });
  cluster.volumes.set('pv', volumeOf('pv', 'n2'));
  t.is(place(subject, cluster), 'n2');
  cluster.volumes.clear();
  const matchLabelExpressions = [{ key: 'zone', values: ['a'] }];
  const allowedTopologies = [{ matchLabelExpressions }];
  cluster.storageClasses.set('local', { ...delayed, provisioner: 'example.com/disks', allowedTopologies });
  t.is(place(subject, cluster), 'n1');
});

test('a claim with access mode ReadWriteOncePod is used by one pod at a time', (t) => {
  const cluster = localCluster({ n1: {}, n2: {} }, { user: { ...claimPod, node: 'n1' } });
  cluster.volumes.set('pv', volumeOf('pv'));
  cluster.claims.set('default/data', { ...claim, exclusive: true });
  t.is(
    place(pod('subject', claimPod), cluster),
    '0/2 nodes are available: 2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode ' +
      'already in-use by another pod.',
  );
  cluster.remove('user');
  t.true(['n1', 'n2'].includes(place(pod('subject', claimPod), cluster)));
});

test('an ephemeral claim must have been created for the pod', (t) => {
  const cluster = localCluster({ n1: {} });
  cluster.volumes.set('pv', volumeOf('pv'));
  const subject = pod('subject', { spec: { volumes: [{ name: 'v', ephemeral: {} }] } });
  t.regex(place(subject, cluster), /waiting for ephemeral volume controller to create the .*"subject-v"/);
  cluster.claims.set('default/subject-v', { ...claim, podUid: 'x' });
  t.regex(place(subject, cluster), /PVC default\/subject-v was not created for pod default\/subject/);
  cluster.claims.set('default/subject-v', { ...claim, podUid: 'subject' });
  t.is(place(subject, cluster), 'n1');
});

test('changed labels of a namespace affect assigned pods immediately', (t) => {
  const selector = { namespaceSelector: { matchLabels: { team: 'a' } } };
  const cluster = localCluster({ n1: zone('a') }, { a: { ...web, namespace: 'other', node: 'n1' } });
  const subject = pod('subject', { spec: required('podAntiAffinity', term('web', 'zone', selector)) });
  t.is(place(subject, cluster), 'n1');
  cluster.setNamespace('other', { team: 'a' });
  t.is(place(subject, cluster), "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules.");
  cluster.setNamespace('other', { team: 'b' });
  t.is(place(subject, cluster), 'n1');
});
