import { createInProcessClient } from '@keelson/client';
import { ControllerManager } from '@keelson/controller-kit';
import { type ApiClient, isStatusError, type KindDefinition, type ResourceClient, StatusReason } from '@keelson/core';
import { noMetrics, silentLogger } from '@keelson/core/runtime';
import { Lease, Namespace, Node, Pod } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { podGarbageCollector } from '../src/index.ts';
import { startTestPlane, type TestPlane, type TestPlaneOptions } from './support/test-plane.ts';

interface Opened {
  readonly plane: TestPlane;
  readonly pods: ResourceClient<Pod>;
  /** Waits for the condition while the time of the plane goes on. */
  readonly inTime: <T>(probe: () => Promise<T | undefined | false>) => Promise<T>;
  /** Advances the time of the plane until every pod has been checked several times. */
  readonly pass: () => Promise<void>;
}

async function open(t: ExecutionContext, options: TestPlaneOptions = {}): Promise<Opened> {
  const plane = await startTestPlane({ fakeClock: true, ...options });
  t.teardown(() => plane.close());
  const step = (ms = 5_000) => plane.clock?.advance(ms);
  const pods = plane.client(Pod).namespace('default');
  const inTime = <T>(probe: () => Promise<T | undefined | false>) =>
    until(async () => {
      step();
      return probe();
    });
  return {
    plane,
    pods,
    inTime,
    // The deletion of a pod of a missing node proves that passes have been made.
    pass: async () => {
      await pods.create(pod('probe', { nodeName: 'missing' }));
      await inTime(() => gone(pods, 'probe'));
      step(40_000);
    },
  };
}

const pod = (name: string, spec: Partial<Pod['spec']> = {}): Pod => ({
  metadata: { name },
  spec: { containers: [{ name: 'main', image: 'app:1' }], ...spec },
});

async function gone(pods: ResourceClient<Pod>, name: string): Promise<boolean> {
  try {
    await pods.get(name);
    return false;
  } catch (error) {
    if (isStatusError(error, StatusReason.NotFound)) return true;
    throw error;
  }
}

const ready = (status: string) => ({ conditions: [{ type: 'Ready', status }] });
const outOfService = {
  taints: [{ key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' }],
};

test('a pod that is bound to a node which does not exist fails and is deleted after a quarantine', async (t) => {
  const { plane, pods, inTime } = await open(t);
  await plane.client(Node).create({ metadata: { name: 'n1' } });
  await pods.create(pod('here', { nodeName: 'n1' }));
  await pods.create(pod('free'));
  const { resourceVersion = '' } = (await pods.list()).metadata;
  const { uid } = (await pods.create(pod('lost', { nodeName: 'ghost' }))).metadata ?? {};
  const started = plane.clock?.now() ?? 0;
  await inTime(() => gone(pods, 'lost'));
  t.true((plane.clock?.now() ?? 0) - started >= 40_000, 'the node may be about to register');
  let last: Pod | undefined;
  for await (const { type, object } of pods.watch({ resourceVersion })) {
    if (type === 'BOOKMARK' || object.metadata?.uid !== uid) continue;
    last = object;
    if (type === 'DELETED') break;
  }
  const { phase, conditions } = last?.status ?? {};
  t.is(phase, 'Failed');
  t.like(
    conditions?.find(({ type }) => type === 'DisruptionTarget'),
    {
      status: 'True',
      reason: 'DeletionByPodGC',
      message: 'PodGC: node no longer exists',
    },
  );
  t.false(await gone(pods, 'here'));
  t.false(await gone(pods, 'free'));
});

test('a namespace whose pods are bound to a missing node is removed', async (t) => {
  const { plane, inTime } = await open(t);
  const namespaces = plane.client(Namespace);
  await namespaces.create({ metadata: { name: 'doomed' } });
  await plane
    .client(Pod)
    .namespace('doomed')
    .create(pod('lost', { nodeName: 'ghost' }));
  await namespaces.delete('doomed');
  await inTime(async () => !(await namespaces.list()).items.some(({ metadata }) => metadata?.name === 'doomed'));
  t.pass();
});

test('a node that registers within the quarantine keeps its pods', async (t) => {
  const { plane, pods, pass } = await open(t);
  await pods.create(pod('early', { nodeName: 'late' }));
  await plane.client(Node).create({ metadata: { name: 'late' } });
  await pass();
  t.false(await gone(pods, 'early'));
});

test('pods in deletion on a node with the out-of-service taint are removed when the node is not ready', async (t) => {
  const { plane, pods, inTime, pass } = await open(t);
  const nodes = plane.client(Node);
  await nodes.create({ metadata: { name: 'down' }, spec: outOfService, status: ready('False') });
  await nodes.create({ metadata: { name: 'up' }, spec: outOfService, status: ready('True') });
  await nodes.create({ metadata: { name: 'slow' }, status: ready('False') });
  for (const nodeName of ['down', 'up', 'slow']) {
    await pods.create(pod(nodeName, { nodeName }));
    await pods.delete(nodeName, { gracePeriodSeconds: 3600 });
  }
  await pods.create(pod('stays', { nodeName: 'down' }));
  await inTime(() => gone(pods, 'down'));
  await pass();
  for (const name of ['up', 'slow', 'stays']) t.false(await gone(pods, name), name);
});

test('a node whose lease was not renewed is not ready, whatever it reported last', async (t) => {
  const { plane, pods, inTime } = await open(t);
  await plane.client(Node).create({ metadata: { name: 'dead' }, spec: outOfService, status: ready('True') });
  const renewTime = new Date(plane.clock?.now() ?? 0).toISOString().replace('Z', '000Z');
  await plane
    .client(Lease)
    .namespace('kube-node-lease')
    .create({ metadata: { name: 'dead' }, spec: { holderIdentity: 'dead', leaseDurationSeconds: 40, renewTime } });
  await pods.create(pod('waits', { nodeName: 'dead' }));
  await pods.delete('waits', { gracePeriodSeconds: 3600 });
  await inTime(() => gone(pods, 'waits'));
  t.pass();
});

test('a node whose lease is renewed is ready', async (t) => {
  const { plane, pods, pass } = await open(t);
  await plane.client(Node).create({ metadata: { name: 'alive' }, spec: outOfService, status: ready('True') });
  const renewTime = new Date((plane.clock?.now() ?? 0) + 3_600_000).toISOString().replace('Z', '000Z');
  await plane
    .client(Lease)
    .namespace('kube-node-lease')
    .create({ metadata: { name: 'alive' }, spec: { holderIdentity: 'alive', leaseDurationSeconds: 40, renewTime } });
  await pods.create(pod('stays', { nodeName: 'alive' }));
  await pods.delete('stays', { gracePeriodSeconds: 3600 });
  await pass();
  t.false(await gone(pods, 'stays'));
});

test('a pod that is being deleted and was never bound to a node fails', async (t) => {
  const { pods, inTime } = await open(t);
  const free = pod('free');
  await pods.create({ ...free, metadata: { ...free.metadata, finalizers: ['example.com/hold'] } });
  await pods.delete('free');
  const status = await inTime(async () => {
    const found = await pods.get('free');
    return found.status?.phase === 'Failed' && found.status;
  });
  t.is(
    status.conditions?.find(({ type }) => type === 'DisruptionTarget'),
    undefined,
  );
  await pods.patch('free', 'merge', { metadata: { finalizers: null } });
  await inTime(() => gone(pods, 'free'));
});

test('the quarantine of a node begins again after the node has existed', async (t) => {
  const { plane, pods, inTime } = await open(t);
  const { clock } = plane;
  if (clock === undefined) return t.fail();
  const nodes = plane.client(Node);
  await pods.create(pod('lost', { nodeName: 'flaky' }));
  await pods.create(pod('probe', { nodeName: 'ghost' }));
  clock.advance(20_000);
  await nodes.create({ metadata: { name: 'flaky' } });
  await inTime(() => gone(pods, 'probe'));
  await nodes.delete('flaky');
  const deletedAt = clock.now();
  await inTime(() => gone(pods, 'lost'));
  t.true(clock.now() - deletedAt >= 40_000);
});

test('a node that only the watch does not report keeps its pods', async (t) => {
  const wrapClient = (client: ApiClient): ApiClient => {
    const nodes = client.resource(Node);
    const hidden = Object.assign(Object.create(nodes) as typeof nodes, {
      get: nodes.get.bind(nodes),
      list: async (...call: Parameters<typeof nodes.list>) => ({ ...(await nodes.list(...call)), items: [] }),
      watch: (options: Parameters<typeof nodes.watch>[0]) =>
        nodes.watch({ ...options, fieldSelector: 'metadata.name=x' }),
    });
    const resource = (kind: KindDefinition) => (kind.kind === 'Node' ? hidden : client.resource(kind));
    return Object.assign(Object.create(client) as ApiClient, {
      resource,
      dynamic: client.dynamic.bind(client),
      discover: client.discover.bind(client),
    });
  };
  const { plane, pods, pass } = await open(t, { wrapClient });
  await plane.client(Node).create({ metadata: { name: 'late' } });
  await pods.create(pod('here', { nodeName: 'late' }));
  await pass();
  t.false(await gone(pods, 'here'));
});

test('of more ended pods than the threshold the evicted ones are deleted first, then the oldest', async (t) => {
  const plane = await startTestPlane({ fakeClock: true, controllers: false });
  t.teardown(() => plane.close());
  const { clock } = plane;
  if (clock === undefined) return t.fail();
  const pods = plane.client(Pod).namespace('default');
  for (const [name, status] of [
    ['oldest', { phase: 'Succeeded' }],
    ['running', { phase: 'Running' }],
    ['middle', { phase: 'Failed' }],
    ['newest', { phase: 'Succeeded' }],
    ['evicted', { phase: 'Failed', reason: 'Evicted' }],
  ] as const) {
    await pods.create(pod(name));
    await pods.patchSubresource(name, 'status', 'merge', { status });
    clock.advance(1_000);
  }
  const client = createInProcessClient(plane.registry, { clock });
  const controllers = [podGarbageCollector({ terminatedPodThreshold: 2 })];
  const collector = new ControllerManager({ client, clock, logger: silentLogger, metrics: noMetrics, controllers });
  await collector.start();
  t.teardown(() => collector.stop());
  const left = async () => (await pods.list()).items.map(({ metadata }) => metadata?.name);
  await until(async () => (await left()).length === 3);
  t.deepEqual((await left()).sort(), ['middle', 'newest', 'running']);
});
