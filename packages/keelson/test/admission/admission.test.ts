import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isStatusError, type KubeObject } from '@keelson/core';
import { FakeClock } from '@keelson/core/runtime';
import {
  ConfigMap,
  Ingress,
  IngressClass,
  LimitRange,
  Namespace,
  NetworkingV1Ingress,
  Node,
  PersistentVolumeClaim,
  Pod,
  PriorityClass,
  ResourceQuota,
  RuntimeClass,
  Service,
  StorageClass,
} from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { type ControlPlane, type ControlPlaneOptions, createControlPlane } from '../../src/index.ts';
import { sharedStore } from '../support/shared-store.ts';

async function start(t: ExecutionContext, options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const made = await createControlPlane({ controllers: false, ...options });
  t.teardown(() => made.close());
  return made;
}

const namespace = 'default';
const container = { name: 'app', image: 'nginx:1.25' };
type Resources = NonNullable<Pod['spec']['containers'][number]['resources']>;

function pod(name: string, spec: object = {}): Pod {
  return { metadata: { name, namespace }, spec: { containers: [container], ...spec } } as Pod;
}

const withResources = (name: string, resources: Resources) => pod(name, { containers: [{ ...container, resources }] });

async function rejected(t: ExecutionContext, call: Promise<unknown>): Promise<string> {
  const error = await t.throwsAsync(call);
  if (!isStatusError(error)) throw error ?? new Error('accepted');
  return `${error.status.code} ${error.message}`;
}

test('a built-in plugin can be left out, and an unknown one is named', async (t) => {
  const plane = await start(t, { disabledAdmissionPlugins: ['NamespaceLifecycle'] });
  const maps = plane.client(ConfigMap).namespace('missing');
  t.is((await maps.create({ metadata: { name: 'a' } })).metadata?.namespace, 'missing');
  await t.throwsAsync(createControlPlane({ disabledAdmissionPlugins: ['Ranger'] }), {
    name: 'UsageError',
    message: /^disabledAdmissionPlugins: admission plugin "Ranger" is unknown; use NamespaceLifecycle, /,
  });
});

test('pods get the priority of their class, and system classes exist and cannot be deleted', async (t) => {
  const plane = await start(t);
  const [pods, classes] = [plane.client(Pod).namespace(namespace), plane.client(PriorityClass)];
  const plain = await pods.create(pod('plain'));
  t.like(plain.spec, { priority: 0, preemptionPolicy: 'PreemptLowerPriority', priorityClassName: undefined });
  const critical = await pods.create(pod('critical', { priorityClassName: 'system-node-critical' }));
  t.is(critical.spec.priority, 2_000_001_000);
  await classes.create({ metadata: { name: 'low' }, value: 10, preemptionPolicy: 'Never', globalDefault: true });
  await until(async () => (await pods.create(pod('default'), { dryRun: true })).spec.priority === 10);
  t.like((await pods.create(pod('low'))).spec, { priorityClassName: 'low', preemptionPolicy: 'Never' });
  const kept = await pods.get('low');
  const { priority: _, ...rest } = kept.spec;
  t.is((await pods.update({ ...kept, spec: rest })).spec.priority, 10, 'an update may leave the priority out');
  t.is(
    await rejected(t, pods.create(pod('x', { priorityClassName: 'none' }))),
    '403 pods "x" is forbidden: no PriorityClass with name none was found',
  );
  t.is(
    await rejected(t, pods.create(pod('x', { priority: 7 }))),
    '403 pods "x" is forbidden: the integer value of priority (7) must not be provided in pod spec; priority ' +
      'admission controller computed 10 from the given PriorityClass name',
  );
  t.is(
    await rejected(t, classes.create({ metadata: { name: 'other' }, value: 11, globalDefault: true })),
    '403 priorityclasses.scheduling.k8s.io "other" is forbidden: PriorityClass low is already marked as default. Only ' +
      'one default can exist',
  );
  t.is(
    await rejected(t, classes.delete('system-cluster-critical')),
    '403 priorityclasses.scheduling.k8s.io "system-cluster-critical" is forbidden: this is a system priority class and ' +
      'cannot be deleted',
  );
});

test('runtime classes give overhead, node labels and tolerations; storage classes have a default', async (t) => {
  const plane = await start(t);
  const pods = plane.client(Pod).namespace(namespace);
  await plane.client(RuntimeClass).create({
    metadata: { name: 'vm' },
    handler: 'vm',
    overhead: { podFixed: { memory: '64Mi' } },
    scheduling: { nodeSelector: { vm: 'yes' }, tolerations: [{ key: 'vm', operator: 'Exists' }] },
  });
  const made = await pods.create(pod('a', { runtimeClassName: 'vm', nodeSelector: { zone: 'z' } }));
  t.deepEqual(made.spec.overhead, { memory: '64Mi' });
  t.deepEqual(made.spec.nodeSelector, { vm: 'yes', zone: 'z' });
  t.true(made.spec.tolerations?.some(({ key }) => key === 'vm'));
  t.is(
    await rejected(t, pods.create(pod('x', { runtimeClassName: 'none' }))),
    '403 pods "x" is forbidden: pod rejected: RuntimeClass "none" not found',
  );
  t.is(
    await rejected(t, pods.create(pod('x', { runtimeClassName: 'vm', nodeSelector: { vm: 'no' } }))),
    '403 pods "x" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; pod.spec.nodeSelector[vm] = no',
  );
  t.is(
    await rejected(t, pods.create(pod('x', { overhead: { cpu: '1' } }))),
    '403 pods "x" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead',
  );

  const claims = plane.client(PersistentVolumeClaim).namespace(namespace);
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
  const claim = (name: string, fields: object = {}) => ({
    metadata: { name, namespace },
    spec: { ...spec, ...fields },
  });
  t.is((await claims.create(claim('without'))).spec.storageClassName, undefined);
  const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' };
  await plane.client(StorageClass).create({ metadata: { name: 'fast', annotations }, provisioner: 'example.com/x' });
  await until(async () => (await claims.create(claim('with'), { dryRun: true })).spec.storageClassName === 'fast');
  t.is((await claims.create(claim('none', { storageClassName: '' }))).spec.storageClassName, '');
});

test('ingresses without a class get the newest default class, of equally old ones the first by name', async (t) => {
  const clock = new FakeClock();
  const plane = await start(t, { clock });
  const [classes, ingresses] = [plane.client(IngressClass), plane.client(NetworkingV1Ingress).namespace(namespace)];
  const defaultBackend = { service: { name: 'web', port: { number: 80 } } };
  const classOf = async (spec: object = {}, annotations: Record<string, string> = {}) => {
    const metadata = { name: 'web', namespace, annotations };
    const made = await ingresses.create({ metadata, spec: { defaultBackend, ...spec } }, { dryRun: true });
    return made.spec?.ingressClassName;
  };
  const add = (name: string, isDefault: string) => {
    const annotations = { 'ingressclass.kubernetes.io/is-default-class': isDefault };
    return classes.create({ metadata: { name, annotations }, spec: { controller: 'example.com/web' } });
  };
  t.is(await classOf(), undefined);
  await add('z', 'false');
  await add('a', 'true');
  clock.jump(1000);
  await add('c', 'true');
  await add('b', 'true');
  await until(async () => (await classOf()) === 'b');
  t.is(await classOf({ ingressClassName: 'other' }), 'other');
  t.is(await classOf({}, { 'kubernetes.io/ingress.class': 'other' }), undefined);
  const old = plane.client(Ingress).namespace(namespace);
  const backend = { serviceName: 'web', servicePort: 80 };
  t.is((await old.create({ metadata: { name: 'old', namespace }, spec: { backend } })).spec?.ingressClassName, 'b');
});

test('a new node gets no pods until it is ready, if the controller that finds this out runs', async (t) => {
  const notReady = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };
  const own = { key: 'own', effect: 'NoExecute' };
  const plane = await start(t, { controllers: ['*'] });
  const nodes = plane.client(Node);
  const made = async (spec: object) =>
    (await nodes.create({ metadata: { name: 'dry' }, spec }, { dryRun: true })).spec?.taints;
  t.deepEqual(await made({}), [notReady]);
  t.deepEqual(await made({ taints: [own] }), [own, notReady]);
  t.deepEqual(await made({ taints: [notReady, own] }), [notReady, own]);
  const allocatable = { cpu: '4', memory: '8Gi', pods: '10' };
  const status = (state: string) => ({ allocatable, conditions: [{ type: 'Ready', status: state }] });
  t.deepEqual((await nodes.create({ metadata: { name: 'n' }, status: status('False') })).spec?.taints, [notReady]);
  const pods = plane.client(Pod).namespace(namespace);
  await pods.create(pod('early'));
  await until(async () =>
    (await pods.get('early')).status?.conditions?.some(({ reason }) => reason === 'Unschedulable'),
  );
  await nodes.patchSubresource('n', 'status', 'strategic', { status: status('True') });
  await until(async () => (await nodes.get('n')).spec?.taints === undefined);
  await until(async () => (await pods.get('early')).spec.nodeName === 'n');
  for (const controllers of [false, ['api'], ['*', '-node-lifecycle-controller']]) {
    const other = await start(t, { controllers });
    const { spec } = await other.client(Node).create({ metadata: { name: 'n' } });
    t.is(spec?.taints, undefined, String(controllers));
  }
});

test('limit ranges give defaults to containers and reject what is outside', async (t) => {
  const plane = await start(t);
  const pods = plane.client(Pod).namespace(namespace);
  await plane
    .client(LimitRange)
    .namespace(namespace)
    .create({
      metadata: { name: 'limits', namespace },
      spec: {
        limits: [
          {
            type: 'Container',
            max: { cpu: '2' },
            min: { cpu: '100m' },
            default: { cpu: '1', memory: '1Gi' },
            defaultRequest: { cpu: '500m' },
            maxLimitRequestRatio: { cpu: '4' },
          },
          { type: 'Pod', max: { memory: '2Gi' } },
          { type: 'PersistentVolumeClaim', min: { storage: '1Gi' }, max: { storage: '5Gi' } },
        ],
      },
    });
  await until(async () => (await pods.create(pod('p'), { dryRun: true })).metadata?.annotations !== undefined);
  const made = await pods.create(pod('p'));
  t.deepEqual(made.spec.containers[0]?.resources, {
    limits: { cpu: '1', memory: '1Gi' },
    requests: { cpu: '500m', memory: '1Gi' },
  });
  t.is(
    made.metadata?.annotations?.['kubernetes.io/limit-ranger'],
    'LimitRanger plugin set: cpu, memory request for container app; cpu, memory limit for container app',
  );
  const cases: [Resources, string][] = [
    [{ limits: { cpu: '3' }, requests: { cpu: '1' } }, 'maximum cpu usage per Container is 2, but limit is 3'],
    [
      { limits: { cpu: '1' }, requests: { cpu: '50m' } },
      '[minimum cpu usage per Container is 100m, but request is 50m, cpu max limit to request ratio per Container is 4, ' +
        'but provided ratio is 20.000000]',
    ],
    [{ limits: { memory: '3Gi' } }, 'maximum memory usage per Pod is 2Gi, but limit is 3Gi'],
  ];
  for (const [resources, message] of cases) {
    t.is(await rejected(t, pods.create(withResources('x', resources))), `403 pods "x" is forbidden: ${message}`);
  }
  const claim = { metadata: { name: 'c', namespace }, spec: { accessModes: ['ReadWriteOnce'] } };
  const sized = (storage: string) => ({ ...claim, spec: { ...claim.spec, resources: { requests: { storage } } } });
  const claims = plane.client(PersistentVolumeClaim).namespace(namespace);
  t.is(
    await rejected(t, claims.create(sized('6Gi'))),
    '403 persistentvolumeclaims "c" is forbidden: maximum storage usage per PersistentVolumeClaim is 5Gi, but request ' +
      'is 6Gi',
  );
  t.is((await claims.create(sized('5Gi'))).status?.phase, 'Pending');
});

async function quota(plane: ControlPlane, hard: Record<string, string>, spec: object = {}, name = 'q'): Promise<void> {
  const quotas = plane.client(ResourceQuota).namespace(namespace);
  const made = await quotas.create({ metadata: { name, namespace }, spec: { hard, ...spec } });
  const used = Object.fromEntries(Object.keys(hard).map((resource) => [resource, '0']));
  if (made.status?.hard === undefined)
    await quotas.updateSubresource(name, 'status', { ...made, status: { hard, used } } as KubeObject);
}

const usedOf = async (plane: ControlPlane, name = 'q') =>
  (await plane.client(ResourceQuota).namespace(namespace).get(name)).status?.used;

test('a quota rejects with the messages of Kubernetes, and a rejected or failed object is not charged', async (t) => {
  const plane = await start(t);
  const pods = plane.client(Pod).namespace(namespace);
  await quota(plane, { pods: '2', 'requests.cpu': '1', 'count/configmaps': '1' });
  const maps = plane.client(ConfigMap).namespace(namespace);
  await until(async () => {
    const error = await pods.create(pod('x'), { dryRun: true }).catch((why: unknown) => why);
    return isStatusError(error);
  });
  t.is(
    await rejected(t, pods.create(pod('x'))),
    '403 pods "x" is forbidden: failed quota: q: must specify requests.cpu for: app',
  );
  const small = (name: string) => withResources(name, { requests: { cpu: '400m' } });
  await pods.create(small('a'));
  t.deepEqual(await usedOf(plane), { pods: '1', 'requests.cpu': '400m', 'count/configmaps': '0' });
  await rejected(t, pods.create(small('a')));
  t.deepEqual(
    await usedOf(plane),
    { pods: '1', 'requests.cpu': '400m', 'count/configmaps': '0' },
    'it existed already',
  );
  await pods.create(small('b'), { dryRun: true });
  await pods.create(small('b'));
  t.is(
    await rejected(t, pods.create(small('c'))),
    '403 pods "c" is forbidden: exceeded quota: q, requested: pods=1,requests.cpu=400m, used: pods=2,requests.cpu=800m, ' +
      'limited: pods=2,requests.cpu=1',
  );
  await maps.create({ metadata: { name: 'one', namespace } });
  t.is(
    await rejected(t, maps.create({ metadata: { name: 'two', namespace } })),
    '403 configmaps "two" is forbidden: exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=1, ' +
      'limited: count/configmaps=1',
  );
  t.deepEqual(await usedOf(plane), { pods: '2', 'requests.cpu': '800m', 'count/configmaps': '1' });
});

test('a resize of a pod is charged to quotas and checked against limit ranges', async (t) => {
  const plane = await start(t);
  const pods = plane.client(Pod).namespace(namespace);
  await quota(plane, { 'requests.cpu': '1' });
  await pods.create(withResources('a', { requests: { cpu: '400m' } }));
  const resize = (cpu: string) =>
    pods.patchSubresource('a', 'resize', 'strategic', {
      spec: { containers: [{ name: 'app', resources: { requests: { cpu } } }] },
    });
  await until(async () => isStatusError(await resize('2').catch((why: unknown) => why)));
  await resize('900m');
  t.deepEqual(await usedOf(plane), { 'requests.cpu': '900m' });
  t.is(
    await rejected(t, resize('1100m')),
    '403 pods "a" is forbidden: exceeded quota: q, requested: requests.cpu=200m, used: requests.cpu=900m, ' +
      'limited: requests.cpu=1',
  );
  const limits = [{ type: 'Container', min: { cpu: '300m' } }];
  await plane
    .client(LimitRange)
    .namespace(namespace)
    .create({ metadata: { name: 'l', namespace }, spec: { limits } });
  const below = /^403 pods "a" is forbidden: minimum cpu usage per Container is 300m, but request is 200m/;
  await until(async () => {
    const answer: unknown = await resize('200m').catch((why: unknown) => why);
    return isStatusError(answer) && below.test(`${answer.status.code} ${answer.message}`);
  });
});

test('scopes restrict what a quota counts; changes of services are charged', async (t) => {
  const plane = await start(t);
  const pods = plane.client(Pod).namespace(namespace);
  await quota(plane, { pods: '1' }, { scopes: ['BestEffort'] }, 'best-effort');
  await quota(plane, { pods: '1' }, { scopes: ['Terminating'] }, 'terminating');
  const high = { matchExpressions: [{ scopeName: 'PriorityClass', operator: 'In', values: ['system-node-critical'] }] };
  await quota(plane, { pods: '1' }, { scopeSelector: high }, 'high');
  await quota(plane, { 'services.nodeports': '1' }, {}, 'ports');
  const burst = (name: string, spec: object = {}) =>
    pod(name, { containers: [{ ...container, resources: { requests: { cpu: '1' } } }], ...spec });
  await until(async () => {
    await pods.create(burst('warm'), { dryRun: true });
    return (await plane.client(ResourceQuota).namespace(namespace).list()).items.length === 4;
  });
  await pods.create(pod('a'));
  t.regex(await rejected(t, pods.create(pod('b'))), /exceeded quota: best-effort, requested: pods=1, used: pods=1/);
  await pods.create(burst('c'));
  await pods.create(burst('d', { activeDeadlineSeconds: 60 }));
  t.regex(await rejected(t, pods.create(burst('e', { activeDeadlineSeconds: 60 }))), /exceeded quota: terminating,/);
  await pods.create(burst('f', { priorityClassName: 'system-node-critical' }));
  t.regex(
    await rejected(t, pods.create(burst('g', { priorityClassName: 'system-node-critical' }))),
    /exceeded quota: high,/,
  );

  const services = plane.client(Service).namespace(namespace);
  const made = await services.create({ metadata: { name: 's', namespace }, spec: { ports: [{ port: 80 }] } });
  const ports = [80, 81].map((port) => ({ name: `p${port}`, port }));
  t.is(
    await rejected(t, services.update({ ...made, spec: { ...made.spec, type: 'NodePort', ports } })),
    '403 services "s" is forbidden: exceeded quota: ports, requested: services.nodeports=2, used: services.nodeports=0, ' +
      'limited: services.nodeports=1',
  );
  await services.update({ ...made, spec: { ...made.spec, type: 'NodePort' } });
  t.deepEqual(await usedOf(plane, 'ports'), { 'services.nodeports': '1' });
});

async function exactlyTen(t: ExecutionContext, planes: readonly ControlPlane[]): Promise<void> {
  const [first] = planes as [ControlPlane];
  await quota(first, { pods: '10' });
  for (const plane of planes) {
    const full = { metadata: { name: 'probe', namespace }, spec: { hard: {} } };
    await plane.client(ResourceQuota).namespace(namespace).create(full, { dryRun: true });
    await until(async () => (await usedOf(plane)) !== undefined);
  }
  const results = await Promise.allSettled(
    Array.from({ length: 100 }, (_, i) =>
      planes[i % planes.length]!.client(Pod)
        .namespace(namespace)
        .create(pod(`p${i}`)),
    ),
  );
  const failed = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as Error] : []));
  t.is(results.length - failed.length, 10);
  for (const error of failed)
    t.regex(error.message, /exceeded quota: q, requested: pods=1, used: pods=10, limited: pods=10$/);
  t.is((await first.client(Pod).namespace(namespace).list()).items.length, 10);
  t.deepEqual(await usedOf(first), { pods: '10' });
}

test('100 concurrent creates against a quota of 10 pods give exactly 10: two servers on one store', async (t) => {
  const store = sharedStore(t);
  await exactlyTen(t, [await start(t, { storage: store }), await start(t, { storage: store })]);
});

test('100 concurrent creates against a quota of 10 pods give exactly 10: LMDB', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'keelson-quota-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  await exactlyTen(t, [await start(t, { storage: `lmdb:${dir}` })]);
});

test('the controller counts what exists, and what is deleted can be used again', async (t) => {
  const plane = await start(t, { controllers: ['resourcequota-controller'] });
  const pods = plane.client(Pod).namespace(namespace);
  const maps = plane.client(ConfigMap).namespace(namespace);
  await pods.create(withResources('before', { requests: { cpu: '1' }, limits: { cpu: '2' } }));
  await maps.create({ metadata: { name: 'm', namespace } });
  const hard = { pods: '2', cpu: '4', 'limits.cpu': '8', configmaps: '5', 'count/secrets': '1' };
  const quotas = plane.client(ResourceQuota).namespace(namespace);
  await quotas.create({ metadata: { name: 'q', namespace }, spec: { hard } });
  const used = { pods: '1', cpu: '1', 'limits.cpu': '2', configmaps: '1', 'count/secrets': '0' };
  await until(async () => (await usedOf(plane))?.['pods'] === '1');
  t.like(await quotas.get('q'), { status: { hard, used } });
  const second = withResources('second', { requests: { cpu: '1' }, limits: { cpu: '1' } });
  await pods.create(second);
  t.regex(await rejected(t, pods.create({ ...second, metadata: { name: 'third', namespace } })), /exceeded quota/);
  await pods.delete('before', { gracePeriodSeconds: 0 });
  await until(async () => (await usedOf(plane))?.['pods'] === '1');
  await pods.create({ ...second, metadata: { name: 'third', namespace } });
  t.is((await usedOf(plane))?.['limits.cpu'], '2');
});

test('quotas apply to their namespace only', async (t) => {
  const plane = await start(t);
  await plane.client(Namespace).create({ metadata: { name: 'other' } } as KubeObject as Namespace);
  await quota(plane, { pods: '0' });
  const pods = plane.client(Pod);
  await until(async () =>
    isStatusError(
      await pods
        .namespace(namespace)
        .create(pod('x'), { dryRun: true })
        .catch((e) => e),
    ),
  );
  await pods.namespace('other').create({ ...pod('x'), metadata: { name: 'x', namespace: 'other' } });
  t.pass();
});
