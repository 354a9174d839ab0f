import test from 'ava';
import { Pod, PodDisruptionBudget, PodTemplate } from '../src/index.ts';
import { container, podManifest } from './helpers/manifests.ts';
import { create, now, update, updateStatus } from './helpers/writes.ts';

/** The errors of new pods, as clients read them. */
const messagesOf = (spec: Record<string, unknown>, metadata: Record<string, unknown> = {}) =>
  create(Pod, podManifest(spec, metadata)).messages;

test('values that older releases of Kubernetes accepted are still accepted', (t) => {
  const spread = { maxSkew: 1, topologyKey: 'no label key', whenUnsatisfiable: 'DoNotSchedule', labelSelector: {} };
  const accepted = {
    imagePullSecrets: [{}, { name: '' }, { name: 'a' }],
    dnsConfig: { nameservers: ['010.001.0.1', '::ffff:1.2.3.04'], searches: ['_a.b', '.', 'a_b.c.'] },
    hostAliases: [{ ip: '001.2.3.4', hostnames: ['a'] }],
    volumes: [{ name: 'v', projected: { sources: [{}] } }],
    topologySpreadConstraints: [spread],
  };
  t.deepEqual(messagesOf(accepted), []);
  t.deepEqual(messagesOf({ dnsConfig: { nameservers: ['1.2.3', 'fe80::1%eth0', '1.2.3.0256'] } }), [
    ...['"1.2.3"', '"fe80::1%eth0"', '"1.2.3.0256"'].map(
      (value, i) =>
        `spec.dnsConfig.nameservers[${i}]: Invalid value: ${value}: must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`,
    ),
  ]);
  t.deepEqual(messagesOf({ dnsConfig: { searches: ['a..b', '-a'] } }).length, 2);
  t.deepEqual(messagesOf({ topologySpreadConstraints: [{ ...spread, topologyKey: '' }] }), [
    'spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty',
  ]);
  const budget = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'A_' }, spec: {} };
  t.deepEqual(create(PodDisruptionBudget, budget).messages, []);
  t.is(PodDisruptionBudget.strategy.nameRule, 'pathSegment');
});

test('a negative grace period is 1 in a pod, and remains in a template', (t) => {
  const spec = { containers: [container], terminationGracePeriodSeconds: -5 };
  const { object, messages } = create(Pod, podManifest(spec));
  t.deepEqual(messages, []);
  t.is(object.spec.terminationGracePeriodSeconds, 1);
  const old = { ...object, spec: { ...object.spec, terminationGracePeriodSeconds: -5 } };
  t.deepEqual(update(Pod, old, () => {}).messages, []);
  const template = create(PodTemplate, {
    apiVersion: 'v1',
    kind: 'PodTemplate',
    metadata: { name: 't' },
    template: { spec },
  });
  t.deepEqual(template.messages, []);
  t.is(template.object.template?.spec?.terminationGracePeriodSeconds, -5);
});

test('sources of projected volumes have messages of Kubernetes', (t) => {
  const projected = (...sources: object[]) => messagesOf({ volumes: [{ name: 'v', projected: { sources } }] });
  const items = [{ key: 'k', path: 'p' }];
  t.deepEqual(projected({ secret: { name: 's', items }, configMap: { name: 'c', items } }), [
    'spec.volumes[0].projected: Invalid value: "c": conflicting duplicate paths',
    'spec.volumes[0].projected.sources[0]: Forbidden: may not specify more than 1 volume type per source',
  ]);
  t.deepEqual(projected({ serviceAccountToken: { path: '../t' } }), [
    'spec.volumes[0].projected.path: Invalid value: "../t": must not contain \'..\'',
  ]);
});

test('host ports of templates with the network of the node are not defaulted; those of pods are', (t) => {
  const spec = { hostNetwork: true, containers: [{ ...container, ports: [{ containerPort: 80 }] }] };
  const template = create(PodTemplate, {
    apiVersion: 'v1',
    kind: 'PodTemplate',
    metadata: { name: 't' },
    template: { spec },
  });
  t.deepEqual(template.messages, []);
  t.is(template.object.template?.spec?.containers[0]?.ports?.[0]?.hostPort, undefined);
  t.is(create(Pod, podManifest(spec)).object.spec.containers[0]?.ports?.[0]?.hostPort, 80);
});

test('a pod with scheduling gates may change node affinity, and no other affinity', (t) => {
  const term = { topologyKey: 'zone', labelSelector: {} };
  const gates = { schedulingGates: [{ name: 'x.io/g' }] };
  const preference = { weight: 1, preference: { matchExpressions: [{ key: 'a', operator: 'Exists' }] } };
  const nodeAffinity = { preferredDuringSchedulingIgnoredDuringExecution: [preference] };
  const podAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [term] };
  for (const before of [undefined, { podAffinity }, { nodeAffinity }]) {
    const old = create(Pod, podManifest({ ...gates, ...(before ? { affinity: before } : {}) })).object;
    const node = update(Pod, old, ({ spec }) => {
      spec.affinity = { ...before, nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } };
    });
    t.deepEqual(node.messages, []);
    const pods = update(Pod, old, ({ spec }) => {
      spec.affinity = { ...before, podAntiAffinity: podAffinity } as NonNullable<Pod['spec']['affinity']>;
    });
    t.regex(pods.messages[0] ?? '', /^spec: Forbidden: pod updates may not change fields other than/);
  }
});

test('a new pod has the values of its label keys in its selectors, and the keys are validated', (t) => {
  const term = {
    topologyKey: 'zone',
    labelSelector: { matchLabels: { app: 'a' } },
    matchLabelKeys: ['hash', 'none'],
    mismatchLabelKeys: ['tenant'],
  };
  const { mismatchLabelKeys: _, ...rest } = term;
  const spread = { ...rest, maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule' };
  const labels = { app: 'a', hash: 'h', tenant: 't' };
  const preferred = [{ weight: 1, podAffinityTerm: term }];
  const spec = {
    topologySpreadConstraints: [spread],
    affinity: {
      podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] },
      podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred },
    },
  };
  const { object, messages } = create(Pod, podManifest(spec, { labels }));
  t.deepEqual(messages, []);
  const hash = { key: 'hash', operator: 'In', values: ['h'] };
  const merged = [hash, { key: 'tenant', operator: 'NotIn', values: ['t'] }];
  const { affinity, topologySpreadConstraints } = object.spec;
  t.deepEqual(topologySpreadConstraints?.[0]?.labelSelector?.matchExpressions, [hash]);
  const [required] = affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  t.deepEqual(required?.labelSelector?.matchExpressions, merged);
  const [soft] = affinity?.podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  t.deepEqual(soft?.podAffinityTerm.labelSelector?.matchExpressions, merged);
  t.deepEqual(update(Pod, object, () => {}).messages, []);
  const rejected = (more: object) => messagesOf({ topologySpreadConstraints: [{ ...spread, ...more }] }, { labels });
  const at = 'spec.topologySpreadConstraints[0]';
  t.deepEqual(rejected({ labelSelector: { matchLabels: { hash: 'h' } } }), [
    `${at}[0]: Invalid value: "hash": exists in both matchLabelKeys and labelSelector`,
  ]);
  t.deepEqual(rejected({ labelSelector: undefined }), [
    `${at}.matchLabelKeys: Forbidden: must not be specified when labelSelector is not set`,
  ]);
  t.regex(
    rejected({ matchLabelKeys: ['-'] })[0] ?? '',
    /matchLabelKeys\[0\]: Invalid value: "-": name part must consist/,
  );
});

test('the resources of a pod as a whole have defaults, fit its containers and determine its class', (t) => {
  const with1 = (resources: object, own: object = {}) =>
    create(Pod, podManifest({ resources, containers: [{ ...container, resources: own }] }));
  const { object, messages } = with1({ limits: { cpu: '2', memory: '1Gi' } }, { requests: { cpu: '1' } });
  t.deepEqual(messages, []);
  t.deepEqual(object.spec.resources?.requests, { cpu: '1', memory: '1Gi' });
  t.is(object.status?.qosClass, 'Burstable');
  t.is(with1({ limits: { cpu: '2', memory: '1Gi' } }).object.status?.qosClass, 'Guaranteed');
  t.is(with1({}, { requests: { cpu: '1' } }).object.status?.qosClass, 'BestEffort');
  const huge = { limits: { 'hugepages-2Mi': '4Mi', cpu: '1' } };
  t.is(with1({ requests: { cpu: '1' } }, huge).object.spec.resources?.limits?.['hugepages-2Mi'], '4Mi');
  t.deepEqual(with1({ requests: { cpu: '1' }, limits: { cpu: '1' } }, { limits: { cpu: '2' } }).messages, [
    'spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate container requests of 2',
    'spec.resources.containers[0][cpu].limits: Invalid value: "2": must be less than or equal to pod limits of 1',
  ]);
  t.deepEqual(with1({ requests: { 'ephemeral-storage': '1' }, claims: [{ name: 'c' }] }).messages, [
    'spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level',
    'spec.resources.requests[ephemeral-storage]: Unsupported value: "ephemeral-storage": supported values: "cpu", ' +
      '"hugepages-", "memory"',
    'spec.resources.claims[0]: Not found: "c": must be one of the names in pod.spec.resourceClaims which is empty',
  ]);
});

test('huge pages come in whole pages, with cpu or memory; overhead has names of container resources', (t) => {
  const limits = (amounts: object) => messagesOf({ containers: [{ ...container, resources: { limits: amounts } }] });
  const at = 'spec.containers[0].resources';
  t.deepEqual(limits({ cpu: '1', 'hugepages-2Mi': '4Mi' }), []);
  t.deepEqual(
    limits({ cpu: '1', 'hugepages-2Mi': '3Mi' }),
    ['limits', 'requests'].map(
      (field) =>
        `${at}.${field}[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi`,
    ),
  );
  t.deepEqual(limits({ 'hugepages-2Mi': '4Mi' }), [`${at}: Forbidden: HugePages require cpu or memory`]);
  t.deepEqual(messagesOf({ overhead: { disk: '1' } }), [
    'spec.overhead.limits[disk]: Invalid value: "disk": must be a standard resource type or fully qualified',
    'spec.overhead.limits[disk]: Invalid value: "disk": must be a standard resource for containers',
  ]);
});

test('the status of a pod is validated, completed, and its two forms of the address are kept equal', (t) => {
  const { object: pod } = create(Pod, podManifest({ schedulingGates: [{ name: 'x.io/g' }] }));
  t.is(pod.status?.conditions?.[0]?.lastTransitionTime, now.toISOString().replace('.000', ''));
  pod.status = {
    ...pod.status,
    observedGeneration: 3,
    conditions: [{ type: 'Ready', status: 'True', observedGeneration: 2 }],
  };
  const written = (status: Partial<NonNullable<Pod['status']>>) =>
    updateStatus(Pod, pod, (copy) => {
      copy.status = { ...status };
    });
  t.like(written({ conditions: [{ type: 'Ready', status: 'False' }] }).object.status, {
    qosClass: 'BestEffort',
    observedGeneration: 3,
    conditions: [{ type: 'Ready', status: 'False', observedGeneration: 2 }],
  });
  t.deepEqual(written({ podIP: '10.0.0.1' }).object.status?.podIPs, [{ ip: '10.0.0.1' }]);
  t.is(written({ podIPs: [{ ip: '10.0.0.2' }, { ip: 'fd00::1' }] }).object.status?.podIP, '10.0.0.2');
  t.deepEqual(written({ podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.2' }] }).object.status?.podIPs, [{ ip: '10.0.0.1' }]);
  const address = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
  t.deepEqual(written({ podIP: 'x' }).messages, [`status.podIPs[0]: Invalid value: "x": ${address}`]);
  t.deepEqual(written({ podIPs: [{ ip: '10.0.0.1' }, { ip: '10.0.0.2' }] }).messages, [
    'status.podIPs: Invalid value: [{"IP":"10.0.0.1"},{"IP":"10.0.0.2"}]: may specify no more than one IP for each IP family',
  ]);
  t.deepEqual(written({ hostIP: '10.0.0.1', hostIPs: [{ ip: '10.0.0.2' }] }).messages, [
    'status.hostIPs[0].ip: Invalid value: "10.0.0.2": must be equal to `hostIP`',
  ]);
  t.deepEqual(written({ qosClass: 'Guaranteed' }).messages, [
    'status.qosClass: Invalid value: "Guaranteed": field is immutable',
  ]);
  t.deepEqual(written({ observedGeneration: -1, resourceClaimStatuses: [{ name: 'c' }] }).messages, [
    'status.observedGeneration: Invalid value: -1: must be a non-negative integer',
    'status.resourceClaimStatuses[0].name: Invalid value: "c": must match the name of an entry in `spec.resourceClaims`',
  ]);
  t.regex(
    written({ conditions: [{ type: 'a b', status: 'True' }] }).messages[0] ?? '',
    /^status.conditions\[0\].Type: Invalid value: "a b": name part must consist of/,
  );
});

test('resize policies are unique, fit the restart policy, and amounts are rounded up to thousandths', (t) => {
  const policy = (...policies: [string, string][]) => ({
    containers: [
      {
        ...container,
        resizePolicy: policies.map(([resourceName, restartPolicy]) => ({ resourceName, restartPolicy })),
      },
    ],
  });
  const at = 'spec.containers[0].resizePolicy';
  t.deepEqual(messagesOf(policy(['cpu', 'NotRequired'], ['cpu', 'RestartContainer'])), [
    `${at}[1]: Duplicate value: "cpu"`,
  ]);
  t.deepEqual(messagesOf({ restartPolicy: 'Never', ...policy(['cpu', 'RestartContainer']) }), [
    `${at}: Invalid value: "RestartContainer": must be 'NotRequired' when \`restartPolicy\` is 'Never'`,
  ]);
  const resources = { requests: { cpu: '0.0001' }, limits: { cpu: '1500u', memory: '0.1m' } };
  const { object } = create(Pod, podManifest({ containers: [{ ...container, resources }] }));
  t.deepEqual(object.spec.containers[0]?.resources, {
    requests: { cpu: '1m', memory: '1m' },
    limits: { cpu: '2m', memory: '1m' },
  });
  const valueFrom = { configMapKeyRef: { name: '-', key: 'k' } };
  t.regex(
    messagesOf({ containers: [{ ...container, env: [{ name: 'A', valueFrom }] }] })[0] ?? '',
    /valueFrom.configMapKeyRef.name: Invalid value: "-": a lowercase RFC 1123 subdomain/,
  );
});
