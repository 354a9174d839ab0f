import { isStatusError, type KubeObject } from '@keelson/core';
import { Binding, Pod, PodDisruptionBudget, ReplicaSet } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { type ControlPlane, createControlPlane } from '../../src/index.ts';

const namespace = 'default';
const selector = { matchLabels: { app: 'a' } };
const template = { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'app', image: 'nginx:1.25' }] } };

async function start(t: ExecutionContext, controllers: readonly string[] = []): Promise<ControlPlane> {
  const made = await createControlPlane({ controllers: controllers.length === 0 ? false : controllers });
  t.teardown(() => made.close());
  return made;
}

const podsOf = (plane: ControlPlane) => plane.client(Pod).namespace(namespace);
const budgetsOf = (plane: ControlPlane) => plane.client(PodDisruptionBudget).namespace(namespace);

async function running(plane: ControlPlane, name: string, ready = true, owner?: KubeObject): Promise<void> {
  const owned = { apiVersion: 'apps/v1', kind: 'ReplicaSet', controller: true };
  const { name: ownerName = '', uid = '' } = owner?.metadata ?? {};
  const metadata = {
    name,
    namespace,
    labels: { app: 'a' },
    ...(owner ? { ownerReferences: [{ ...owned, name: ownerName, uid }] } : {}),
  };
  const made = await podsOf(plane).create({ metadata, spec: template.spec } as Pod);
  const conditions = [{ type: 'Ready', status: ready ? 'True' : 'False' }];
  await podsOf(plane).updateSubresource(name, 'status', {
    ...made,
    status: { phase: 'Running', conditions },
  } as KubeObject);
}

async function evict(plane: ControlPlane, name: string, deleteOptions: object = {}): Promise<KubeObject> {
  const eviction = {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name, namespace },
    deleteOptions: { gracePeriodSeconds: 0, ...deleteOptions },
  };
  return podsOf(plane).createSubresource(name, 'eviction', eviction as KubeObject);
}

/** Code, message and causes of a refused eviction. */
async function refused(t: ExecutionContext, call: Promise<unknown>): Promise<readonly unknown[]> {
  const error = await t.throwsAsync(call);
  if (!isStatusError(error)) throw error ?? new Error('evicted');
  const { code, message, details } = error.status;
  return [code, message, ...(details?.causes ?? []).map(({ reason, message: cause }) => `${reason}: ${cause}`)];
}

const violated = "Cannot evict pod as it would violate the pod's disruption budget.";

interface Counts {
  readonly allowed: number;
  readonly healthy?: number;
  readonly desired?: number;
}

async function budget(plane: ControlPlane, counts: Counts | undefined, spec: object = {}, name = 'b'): Promise<void> {
  const made = await budgetsOf(plane).create({
    metadata: { name, namespace },
    spec: { selector, minAvailable: 1, ...spec },
  });
  if (counts === undefined) return;
  const { allowed, healthy = 1, desired = 1 } = counts;
  const status = {
    observedGeneration: made.metadata?.generation ?? 0,
    disruptionsAllowed: allowed,
    currentHealthy: healthy,
    desiredHealthy: desired,
    expectedPods: 3,
  };
  await budgetsOf(plane).updateSubresource(name, 'status', { ...made, status } as KubeObject);
}

test('an eviction takes from the budget, and is refused when none is left', async (t) => {
  const plane = await start(t);
  for (const name of ['a', 'b', 'c']) await running(plane, name);
  await budget(plane, { allowed: 1, healthy: 3, desired: 2 });
  await evict(plane, 'a', { dryRun: ['All'] });
  t.is((await budgetsOf(plane).get('b')).status?.disruptionsAllowed, 1, 'a dry run takes nothing');
  t.like(await evict(plane, 'a'), { status: 'Success' });
  const { status } = await budgetsOf(plane).get('b');
  t.is(status?.disruptionsAllowed, 0);
  t.deepEqual(Object.keys(status?.disruptedPods ?? {}), ['a']);
  t.like(status?.conditions?.[0], { type: 'DisruptionAllowed', status: 'False', reason: 'InsufficientPods' });
  t.deepEqual(await refused(t, evict(plane, 'b')), [
    429,
    violated,
    'DisruptionBudget: The disruption budget b needs 2 healthy pods and has 3 currently',
  ]);
  t.deepEqual((await podsOf(plane).list()).items.map(({ metadata }) => metadata?.name).sort(), ['b', 'c']);
});

test('concurrent evictions do not exceed the budget', async (t) => {
  const plane = await start(t);
  const names = Array.from({ length: 12 }, (_, i) => `p${i}`);
  await Promise.all(names.map((name) => running(plane, name)));
  await budget(plane, { allowed: 5, healthy: 12, desired: 7 });
  const results = await Promise.allSettled(names.map((name) => evict(plane, name)));
  t.is(results.filter(({ status }) => status === 'fulfilled').length, 5);
  t.is((await podsOf(plane).list()).items.length, 7);
});

test('a budget that its controller has not seen permits nothing; several budgets are an error', async (t) => {
  const plane = await start(t);
  await running(plane, 'a');
  await budget(plane, undefined);
  t.deepEqual(await refused(t, evict(plane, 'a')), [
    429,
    violated,
    'DisruptionBudget: The disruption budget b is still being processed by the server.',
  ]);
  await budget(plane, { allowed: 1 }, {}, 'second');
  t.deepEqual(await refused(t, evict(plane, 'a')), [
    500,
    'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.',
  ]);
});

test('pods that do not run need no budget; the policy decides about pods that are not ready', async (t) => {
  const plane = await start(t);
  await budget(plane, { allowed: 0, healthy: 0, desired: 1 });
  await podsOf(plane).create({
    metadata: { name: 'pending', namespace, labels: { app: 'a' } },
    spec: template.spec,
  } as Pod);
  await evict(plane, 'pending');
  await running(plane, 'unready', false);
  t.is((await refused(t, evict(plane, 'unready')))[0], 429);
  const found = await budgetsOf(plane).get('b');
  await budgetsOf(plane).update({ ...found, spec: { ...found.spec, unhealthyPodEvictionPolicy: 'AlwaysAllow' } });
  await evict(plane, 'unready');
  t.is((await podsOf(plane).list()).items.length, 0);
});

test('evictions and bindings name the pod of their path, and a failed precondition says what differs', async (t) => {
  const plane = await start(t);
  await running(plane, 'a');
  const pods = podsOf(plane);
  for (const metadata of [{ name: 'b' }, {}]) {
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata };
    t.deepEqual(await refused(t, pods.createSubresource('a', 'eviction', eviction)), [
      400,
      'name in URL does not match name in Eviction object',
    ]);
  }
  const binding = { metadata: { namespace }, target: { name: 'n' } } as Binding;
  t.deepEqual(await refused(t, plane.client(Binding).namespace(namespace).create(binding)), [
    400,
    'Name parameter required.',
  ]);
  const { uid, resourceVersion } = (await pods.get('a')).metadata ?? {};
  const conflict = async (preconditions: object, dryRun: string[] = []) =>
    (await refused(t, evict(plane, 'a', { preconditions, dryRun }))).join(' ');
  const uidDiffers =
    '409 Operation cannot be fulfilled on Pod "a": the UID in the precondition (1) does not match the UID in record ' +
    `(${uid}). The object might have been deleted and then recreated`;
  t.is(await conflict({ uid: '1' }), uidDiffers);
  t.is(await conflict({ uid: '1', resourceVersion }, ['All']), uidDiffers);
  t.is(
    await conflict({ uid, resourceVersion: '1' }),
    '409 Operation cannot be fulfilled on Pod "a": the ResourceVersion in the precondition (1) does not match the ' +
      `ResourceVersion in record (${resourceVersion}). The object might have been modified`,
  );
});

test('the controller states how many evictions a budget permits, from the scale of the owners of the pods', async (t) => {
  const plane = await start(t, ['disruption-controller']);
  const set = await plane
    .client(ReplicaSet)
    .namespace(namespace)
    .create({
      metadata: { name: 'web', namespace },
      spec: { replicas: 4, selector, template },
    } as ReplicaSet);
  for (const name of ['a', 'b', 'c', 'd']) await running(plane, name, name !== 'd', set);
  await budget(plane, undefined, { minAvailable: '50%' });
  const statusOf = async (name: string) => (await budgetsOf(plane).get(name)).status;
  await until(async () => (await statusOf('b'))?.disruptionsAllowed === 1);
  t.like(await statusOf('b'), { expectedPods: 4, desiredHealthy: 2, currentHealthy: 3 });
  t.like((await statusOf('b'))?.conditions?.[0], { status: 'True', reason: 'SufficientPods' });
  await evict(plane, 'a');
  await until(async () => (await statusOf('b'))?.currentHealthy === 2);
  t.like(await statusOf('b'), { disruptionsAllowed: 0, expectedPods: 4 });
  t.like((await statusOf('b'))?.conditions?.[0], { status: 'False', reason: 'InsufficientPods' });
  await budgetsOf(plane).delete('b');
  const { minAvailable: _, ...spec } = { selector, minAvailable: 1, maxUnavailable: 1 };
  await budgetsOf(plane).create({ metadata: { name: 'most', namespace }, spec });
  await until(async () => (await statusOf('most'))?.desiredHealthy === 3);
  t.like(await statusOf('most'), { disruptionsAllowed: 0, expectedPods: 4, currentHealthy: 2 });
});
