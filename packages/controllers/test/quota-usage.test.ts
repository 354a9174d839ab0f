import {
  ConfigMap,
  Deployment,
  Event,
  Node,
  PersistentVolumeClaim,
  Pod,
  type ResourceQuota,
  Secret,
} from '@keelson/kinds';
import test from 'ava';
import { addAmounts, amountOf, increases, negated, podAmounts } from '../src/index.ts';
import { maxAmounts } from '../src/quota/amounts.ts';
import { scopesOf, type UsageOfKind, usageOfKind } from '../src/quota/usage.ts';

const now = new Date('2026-01-02T00:00:00Z');

/** A container that requests the CPU and the memory. */
function container(name: string, cpu?: string, memory?: string, more: object = {}) {
  const requests = { ...(cpu === undefined ? {} : { cpu }), ...(memory === undefined ? {} : { memory }) };
  return { name, image: 'i', resources: { requests }, ...more };
}

function pod(spec: Partial<Pod['spec']>, more: Partial<Pod> = {}): Pod {
  return { metadata: { name: 'p' }, spec: { containers: [container('c')], ...spec }, ...more };
}

const usageOf = (kind: Parameters<typeof usageOfKind>[0]): UsageOfKind => {
  const usage = usageOfKind(kind);
  if (usage === undefined) throw new Error(`${kind.kind} is not counted`);
  return usage;
};
const ofPods = usageOf(Pod);

test('amounts are added and compared by resource; names of the prototype are not amounts', (t) => {
  t.is(amountOf({ cpu: '1' }, 'toString'), undefined);
  t.is(amountOf(undefined, 'cpu'), undefined);
  t.deepEqual(addAmounts({ cpu: '500m', pods: '1' }, { cpu: '1', memory: '1Gi' }), {
    ...{ cpu: '1500m', pods: '1', memory: '1Gi' },
  });
  t.deepEqual(addAmounts({ cpu: '1' }, undefined), { cpu: '1' });
  t.deepEqual(maxAmounts({ cpu: '1', pods: '3' }, { cpu: '500m', pods: '4', memory: '1' }), {
    ...{ cpu: '1', pods: '4', memory: '1' },
  });
  t.deepEqual([negated('5'), negated('-5')], ['-5', '5']);
  const more = increases({ cpu: '2', pods: '1', memory: '1', secrets: '1' }, { cpu: '500m', pods: '1', memory: '2' });
  t.deepEqual(more, { cpu: '1500m', secrets: '1' });
});

test('a pod requests the sum of its containers, or the peak of its init containers if that is greater', (t) => {
  const containers = [container('a', '1', '1Gi'), container('b', '500m')];
  t.deepEqual(podAmounts(pod({ containers }), 'requests'), { cpu: '1500m', memory: '1Gi' });
  const once = [container('x', '3'), container('y', '2', '512Mi')];
  t.deepEqual(podAmounts(pod({ containers, initContainers: once }), 'requests'), { cpu: '3', memory: '1Gi' });
  t.deepEqual(podAmounts(pod({ containers, initContainers: once }), 'limits'), {});
});

test('a restartable init container is added to the containers and to the init containers after it', (t) => {
  const containers = [container('a', '1')];
  const sidecar = container('s', '1', undefined, { restartPolicy: 'Always' });
  const amounts = (...initContainers: ReturnType<typeof container>[]) =>
    podAmounts(pod({ containers, initContainers }), 'requests');
  t.deepEqual(amounts(sidecar), { cpu: '2' });
  t.deepEqual(amounts(sidecar, container('x', '2')), { cpu: '3' });
  t.deepEqual(amounts(container('x', '2'), sidecar), { cpu: '2' });
  t.deepEqual(amounts(sidecar, { ...sidecar, name: 's2' }, container('x', '2')), { cpu: '4' });
});

test('amounts of the pod replace those of its containers, but only for CPU and memory', (t) => {
  const spec = {
    containers: [container('a', '1', '1Gi')],
    resources: { requests: { cpu: '3', 'example.com/gpu': '2' } },
  };
  t.deepEqual(podAmounts(pod(spec), 'requests'), { cpu: '3', memory: '1Gi' });
});

test('overhead is added to all requests, and to the limits that the pod has', (t) => {
  const resources = { requests: { cpu: '1' }, limits: { cpu: '2' } };
  const spec = { containers: [{ name: 'a', image: 'i', resources }], overhead: { cpu: '250m', memory: '1Mi' } };
  t.deepEqual(podAmounts(pod(spec), 'requests', true), { cpu: '1250m', memory: '1Mi' });
  t.deepEqual(podAmounts(pod(spec), 'limits', true), { cpu: '2250m' });
  t.deepEqual(podAmounts(pod(spec), 'requests'), { cpu: '1' });
});

test('the usage of a pod has its requests under two names, its limits, huge pages and extended resources', (t) => {
  const requests = { cpu: '1', 'hugepages-2Mi': '4Mi', 'example.com/gpu': '2', 'ephemeral-storage': '1Gi' };
  const resources = { requests, limits: { memory: '1Gi', 'example.com/gpu': '2' } };
  t.deepEqual(ofPods.usageOf(pod({ containers: [{ name: 'a', image: 'i', resources }] }), now), {
    'count/pods': '1',
    pods: '1',
    cpu: '1',
    'requests.cpu': '1',
    'ephemeral-storage': '1Gi',
    'requests.ephemeral-storage': '1Gi',
    'limits.memory': '1Gi',
    'hugepages-2Mi': '4Mi',
    'requests.hugepages-2Mi': '4Mi',
    'requests.example.com/gpu': '2',
  });
});

test('pods that have ended, or whose deletion is overdue, only count as objects', (t) => {
  const spec = { containers: [container('a', '1')] };
  const deleted = (deletionTimestamp: string, deletionGracePeriodSeconds?: number) => ({
    metadata: {
      ...{ name: 'p', deletionTimestamp },
      ...(deletionGracePeriodSeconds === undefined ? {} : { deletionGracePeriodSeconds }),
    },
  });
  const counts = (more: Partial<Pod>) => ofPods.usageOf(pod(spec, more), now)['pods'] === '1';
  t.deepEqual(ofPods.usageOf(pod(spec, { status: { phase: 'Failed' } }), now), { 'count/pods': '1' });
  t.false(counts({ status: { phase: 'Succeeded' } }));
  t.true(counts({ status: { phase: 'Running' } }));
  t.false(counts(deleted('2026-01-01T23:59:49Z', 10)));
  t.true(counts(deleted('2026-01-01T23:59:50Z', 10)), 'until the grace period has passed');
  t.true(counts(deleted('2026-01-01T00:00:00Z')));
});

test('quotas count kinds by name and group; resources with an alias also without the prefix', (t) => {
  const counted = (usage: UsageOfKind) => usage.usageOf({ metadata: { name: 'a' } }, now);
  t.deepEqual(counted(usageOf(Secret)), { 'count/secrets': '1', secrets: '1' });
  t.deepEqual(counted(usageOf(Deployment)), {
    'count/deployments.apps': '1',
    'count/deployments.extensions': '1',
  });
  t.true(usageOf(Secret).counts('count/secrets'));
  t.false(usageOf(Secret).counts('count/configmaps'));
  t.deepEqual([usageOfKind(Node), usageOfKind(Event)], [undefined, undefined]);
  const plain = usageOf(ConfigMap);
  const map = { metadata: { name: 'a' } };
  t.false(plain.charges(map, map));
  t.false(plain.inScope(map, { scopeName: 'NotTerminating', operator: 'Exists' }));
  t.is(plain.missing(map, ['cpu']), undefined);
});

for (const [resource, expected] of [
  ['pods', true],
  ['count/pods', true],
  ['cpu', true],
  ['requests.memory', true],
  ['limits.ephemeral-storage', true],
  ['hugepages-2Mi', true],
  ['requests.hugepages-1Gi', true],
  ['requests.example.com/gpu', true],
  ['limits.example.com/gpu', false],
  ['requests.storage', false],
  ['services', false],
  ['limits.hugepages-2Mi', false],
] as const) {
  test(`${resource} is ${expected ? '' : 'not '}a resource of pods`, (t) => t.is(ofPods.counts(resource), expected));
}

test('claims use storage, in total and of their storage class', (t) => {
  const usage = usageOf(PersistentVolumeClaim);
  const claim = (spec: object, annotations?: Record<string, string>) =>
    usage.usageOf({ metadata: { name: 'c', ...(annotations ? { annotations } : {}) }, spec } as never, now);
  const size = { resources: { requests: { storage: '1Gi' } } };
  const counts = { 'count/persistentvolumeclaims': '1', persistentvolumeclaims: '1' };
  const ofClass = (name: string) => `${name}.storageclass.storage.k8s.io/`;
  t.deepEqual(claim(size), { ...counts, 'requests.storage': '1Gi' });
  t.deepEqual(claim({ storageClassName: 'fast' }), { ...counts, [`${ofClass('fast')}persistentvolumeclaims`]: '1' });
  const old = { 'volume.beta.kubernetes.io/storage-class': 'slow' };
  t.deepEqual(claim({ ...size, storageClassName: 'fast' }, old), {
    ...counts,
    'requests.storage': '1Gi',
    [`${ofClass('slow')}persistentvolumeclaims`]: '1',
    [`${ofClass('slow')}requests.storage`]: '1Gi',
  });
  const resources = ['requests.storage', `${ofClass('fast')}requests.storage`, 'count/persistentvolumeclaims', 'pods'];
  t.deepEqual(resources.map(usage.counts), [true, true, true, false]);
  t.true(usage.charges({}, {}), 'an update may request more');
});

test('containers must state the CPU and the memory that a quota limits', (t) => {
  const missing = (object: Pod, ...resources: string[]) => ofPods.missing(object, resources);
  const spec = { containers: [container('b', '1'), container('a')], initContainers: [container('i')] };
  t.is(
    missing(pod(spec), 'requests.memory', 'cpu', 'pods', 'requests.ephemeral-storage'),
    'must specify cpu for: a,i; requests.memory for: a,b,i',
  );
  t.is(missing(pod({ containers: [container('a', '1')] }), 'cpu', 'requests.cpu'), undefined);
  t.is(missing(pod({ ...spec, resources: { requests: { cpu: '1' } } }), 'memory'), undefined);
  t.is(missing(pod({ ...spec, resources: { limits: { cpu: '1' } } }), 'memory'), undefined);
});

const gpu = container('a', '1');
const affinity = (kind: 'podAffinity' | 'podAntiAffinity', term: object, preferred = false) => ({
  affinity: {
    [kind]: preferred
      ? { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: term as never }] }
      : { requiredDuringSchedulingIgnoredDuringExecution: [term as never] },
  },
});

for (const [title, spec, scopeName, expected, operator = 'Exists', values = undefined] of [
  ['with a deadline', { activeDeadlineSeconds: 0 }, 'Terminating', true],
  ['without a deadline', {}, 'Terminating', false],
  ['with a deadline', { activeDeadlineSeconds: 5 }, 'NotTerminating', false],
  ['without a deadline', {}, 'NotTerminating', true],
  ['without requests', {}, 'BestEffort', true],
  ['with a request', { containers: [gpu] }, 'BestEffort', false],
  ['without requests', {}, 'NotBestEffort', false],
  ['with a request', { containers: [gpu] }, 'NotBestEffort', true],
  ['with a priority class', { priorityClassName: 'high' }, 'PriorityClass', true],
  ['without a priority class', {}, 'PriorityClass', false],
  ['with the class', { priorityClassName: 'high' }, 'PriorityClass', true, 'In', ['high']],
  ['with another class', { priorityClassName: 'low' }, 'PriorityClass', false, 'In', ['high']],
  ['without a class', {}, 'PriorityClass', false, 'In', ['high']],
  ['with the class', { priorityClassName: 'high' }, 'PriorityClass', false, 'NotIn', ['high']],
  ['with another class', { priorityClassName: 'low' }, 'PriorityClass', true, 'NotIn', ['high']],
  ['without a class', {}, 'PriorityClass', true, 'NotIn', ['high']],
  ['with a class', { priorityClassName: 'low' }, 'PriorityClass', false, 'DoesNotExist'],
  ['without a class', {}, 'PriorityClass', true, 'DoesNotExist'],
  ['without affinity', {}, 'CrossNamespacePodAffinity', false],
  [
    'with affinity to a namespace',
    affinity('podAffinity', { namespaces: ['a'] }),
    ...(['CrossNamespacePodAffinity', true] as const),
  ],
  [
    'with affinity to its own namespace',
    affinity('podAffinity', { namespaces: [] }),
    ...(['CrossNamespacePodAffinity', false] as const),
  ],
  [
    'with preferred anti-affinity to namespaces with labels',
    affinity('podAntiAffinity', { namespaceSelector: {} }, true),
    ...(['CrossNamespacePodAffinity', true] as const),
  ],
  ['of any kind', {}, 'Unknown', false],
] as [string, Partial<Pod['spec']>, string, boolean, string?, string[]?][]) {
  const scope = { scopeName, operator, ...(values === undefined ? {} : { values }) };
  test(`a pod ${title} is ${expected ? '' : 'not '}in the scope ${JSON.stringify(scope)}`, (t) => {
    t.is(ofPods.inScope(pod(spec), scope), expected);
  });
}

test('an update of a pod is charged when its deadline moves it to another scope', (t) => {
  const [bounded, unbounded] = [pod({ activeDeadlineSeconds: 1 }), pod({})];
  t.true(ofPods.charges(bounded, unbounded));
  t.false(ofPods.charges(bounded, pod({ activeDeadlineSeconds: 2 })));
  t.false(ofPods.charges(unbounded, unbounded));
});

test('the scopes of a quota are its names and its expressions', (t) => {
  const expression = { scopeName: 'PriorityClass', operator: 'In', values: ['a'] };
  const quota: ResourceQuota = {
    metadata: { name: 'q' },
    spec: { scopes: ['BestEffort'], scopeSelector: { matchExpressions: [expression] } },
  };
  t.deepEqual(scopesOf(quota), [{ scopeName: 'BestEffort', operator: 'Exists' }, expression]);
  t.deepEqual(scopesOf({ metadata: { name: 'q' }, spec: {} }), []);
});
