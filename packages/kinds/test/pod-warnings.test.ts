import test from 'ava';
import {
  CronJob,
  DaemonSet,
  Deployment,
  Job,
  Pod,
  PodTemplate,
  ReplicaSet,
  ReplicationController,
  StatefulSet,
} from '../src/index.ts';
import { container, podManifest, workloadManifest } from './helpers/manifests.ts';
import { create, update } from './helpers/writes.ts';

function warningsOf(spec: Record<string, unknown>, metadata: Record<string, unknown> = {}): string[] {
  const { object, messages } = create(Pod, podManifest(spec, metadata));
  if (messages.length > 0) throw new Error(messages.join('\n'));
  return Pod.strategy.warnings?.(object) ?? [];
}

const with1 = (fields: Record<string, unknown>) => ({ containers: [{ ...container, ...fields }] });

test('a repeated variable is reported unless its value contains the previous one', (t) => {
  const env = [
    { name: 'A', value: '1' },
    { name: 'A', value: '$(A)2' },
    { name: 'A', value: '$(A)' },
    { name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
  ];
  t.deepEqual(
    warningsOf(with1({ env })),
    [2, 3].map(
      (i) => `spec.containers[0].env[${i}]: hides previous definition of "A", which may be dropped when using apply`,
    ),
  );
});

test('repeated ports and port names, and host addresses without a host port are reported', (t) => {
  const ports = [
    { containerPort: 80, name: 'http' },
    { containerPort: 80 },
    { containerPort: 80, hostPort: 8080 },
    { containerPort: 90, hostPort: 90 },
    { containerPort: 90, hostPort: 90, hostIP: '10.0.0.1' },
    { containerPort: 91, hostIP: '10.0.0.1' },
  ];
  const other = { ...container, name: 'b', ports: [{ containerPort: 81, name: 'http' }] };
  const at = (i: number) => `spec.containers[0].ports[${i}]`;
  t.deepEqual(warningsOf({ containers: [{ ...container, ports }, other] }), [
    `${at(1)}: duplicate port definition with ${at(0)}`,
    `${at(2)}: overlapping port definition with ${at(0)}`,
    `${at(2)}: overlapping port definition with ${at(1)}`,
    `${at(4)}: dangerously ambiguous port definition with ${at(3)}`,
    `${at(5)}: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:91 Protocol:TCP HostIP:10.0.0.1}`,
    `spec.containers[1].ports[0]: duplicate port name "http" with ${at(0)}, services and probes that select ports by ` +
      `name will use ${at(0)}`,
  ]);
});

test('fractions of bytes, deprecated labels, missing selectors and deprecated volumes are reported', (t) => {
  t.deepEqual(warningsOf(with1({ resources: { limits: { memory: '1500m' } } })), [
    ...['limits', 'requests'].map(
      (field) =>
        `spec.containers[0].resources.${field}[memory]: fractional byte value "1500m" is invalid, must be an integer`,
    ),
  ]);
  const beta = 'failure-domain.beta.kubernetes.io/zone';
  const deprecated = 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead';
  const none = 'a null labelSelector results in matching no pod';
  const preference = { matchExpressions: [{ key: beta, operator: 'In', values: ['-a'] }] };
  const warnings = warningsOf({
    nodeSelector: { [beta]: 'a' },
    affinity: {
      nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, preference }] },
      podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'a' }] },
    },
    topologySpreadConstraints: [{ maxSkew: 1, topologyKey: beta, whenUnsatisfiable: 'DoNotSchedule' }],
    volumes: [{ name: 'g', gitRepo: { repository: 'r' } }],
  });
  const term = 'spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference';
  t.is(warnings.length, 7);
  t.is(warnings[0], `spec.nodeSelector[${beta}]: ${deprecated}`);
  t.is(warnings[1], `${term}.matchExpressions[0].key: ${beta} is ${deprecated}`);
  t.true(warnings[2]?.startsWith(`${term}.matchExpressions[0].values[0]: -a is invalid, a valid label must be`));
  t.deepEqual(warnings.slice(3), [
    `spec.topologySpreadConstraints[0].topologyKey: ${beta} is ${deprecated}`,
    `spec.topologySpreadConstraints[0].labelSelector: ${none}`,
    'spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+',
    `spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector: ${none}`,
  ]);
});

test('files of a volume that hide each other are reported', (t) => {
  const item = (path: string) => ({ key: 'k', path });
  const volumes = [
    { name: 'a', configMap: { name: 'm', items: ['p', 'p/q', 'p', 'pq'].map(item) } },
    {
      name: 'b',
      projected: {
        sources: [{}, { secret: { name: 's', items: [item('t')] } }, { serviceAccountToken: { path: 't/u' } }],
      },
    },
  ];
  t.deepEqual(warningsOf({ serviceAccountName: 'x', volumes }), [
    'volume "a" (ConfigMap "m"): overlapping paths: "p/q" with "p"',
    'volume "a" (ConfigMap "m"): overlapping paths: "p" with "p"',
    'volume "a" (ConfigMap "m"): overlapping paths: "p" with "p/q"',
    'volume "b" (Projected) has no sources provided',
    'volume "b" (Projected): overlapping paths: "t/u" (ServiceAccountToken) with "t" (Secret "s")',
  ]);
});

test('the comparison of very many equal ports and paths is bounded', (t) => {
  const many = Array.from({ length: 50_000 }, () => ({ containerPort: 80 }));
  const items = Array.from({ length: 50_000 }, () => ({ key: 'k', path: 'a/'.repeat(20) }));
  const volumes = [{ name: 'v', configMap: { name: 'm', items } }];
  t.true(warningsOf({ ...with1({ ports: many }), volumes }).length <= 100);
});

test('pull secrets, addresses, annotations and names of pods are reported', (t) => {
  const spec = {
    imagePullSecrets: [{}, { name: 'a' }, { name: 'a' }],
    hostAliases: [{ ip: '010.0.0.1' }, { ip: 'FE80::1' }, { ip: '::ffff:1.2.3.4' }],
  };
  const annotations = {
    'scheduler.alpha.kubernetes.io/critical-pod': '',
    'seccomp.security.alpha.kubernetes.io/pod': 'unconfined',
  };
  const future = 'will be considered invalid in a future Kubernetes release';
  t.deepEqual(warningsOf(spec, { name: 'a.b', annotations }), [
    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is " +
      'recommended: [must not contain dots]',
    'metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; use the ' +
      '"priorityClassName" field instead',
    'spec.imagePullSecrets[2].name: duplicate name "a"',
    'spec.imagePullSecrets[0].name: invalid empty name ""',
    'metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the ' +
      '"seccompProfile" field instead',
    `spec.hostAliases[0].ip: non-standard IP address "010.0.0.1" ${future}: use "10.0.0.1"`,
    'spec.hostAliases[1].ip: IPv6 address "FE80::1" should be in RFC 5952 canonical format ("fe80::1")',
    `spec.hostAliases[2].ip: non-standard IP address "::ffff:1.2.3.4" ${future}: use "1.2.3.4"`,
  ]);
});

const template = {
  metadata: { labels: { app: 'web' } },
  spec: { containers: [container], terminationGracePeriodSeconds: -1 },
};
const jobTemplate = { ...template, spec: { ...template.spec, restartPolicy: 'Never' } };

for (const [kind, spec, path] of [
  [Deployment, { template }, 'spec.template'],
  [ReplicaSet, { template }, 'spec.template'],
  [DaemonSet, { template }, 'spec.template'],
  [StatefulSet, { template, serviceName: 's' }, 'spec.template'],
  [ReplicationController, { template }, 'spec.template'],
  [Job, { template: jobTemplate }, 'spec.template'],
  [
    CronJob,
    { schedule: '* * * * *', jobTemplate: { spec: { template: jobTemplate } } },
    'spec.jobTemplate.spec.template',
  ],
] as const) {
  test(`${kind.kind}: a new or changed template causes warnings`, (t) => {
    const version = kind.group === '' ? 'v1' : `${kind.group}/v1`;
    const manifest = workloadManifest(version, kind.kind, spec);
    if (kind.group === 'batch') delete (manifest.spec as Record<string, unknown>)['selector'];
    const { object, messages } = create(kind as never, manifest) as { object: Pod; messages: readonly string[] };
    t.deepEqual(messages, []);
    const warning = `${path}.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1`;
    const warnings = (old?: Pod) =>
      (kind.strategy.warnings as unknown as (now: Pod, old?: Pod) => string[])(object, old);
    t.deepEqual(warnings(), [warning]);
    const old = { ...object, metadata: { ...object.metadata, generation: 1 } };
    object.metadata = { ...object.metadata, generation: 1 };
    t.deepEqual(warnings(old), [], 'nothing has changed');
    object.metadata = { ...object.metadata, name: 'a.b' };
    const named = ['DaemonSet', 'StatefulSet'].includes(kind.kind) ? 0 : 1;
    t.is(warnings().length, 1 + named, 'a name that is no label');
  });
}

test('PodTemplate: a new template causes warnings; updates of pods cause none', (t) => {
  const manifest = { apiVersion: 'v1', kind: 'PodTemplate', metadata: { name: 'a' }, template };
  t.is(PodTemplate.strategy.warnings?.(create(PodTemplate, manifest).object)?.length, 1);
  const pod = create(Pod, podManifest({ imagePullSecrets: [{}] })).object;
  t.is(Pod.strategy.warnings?.(pod)?.length, 1);
  t.deepEqual(Pod.strategy.warnings?.(update(Pod, pod, () => {}).object, pod), []);
});
