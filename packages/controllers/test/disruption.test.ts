import type { KindDefinition, KubeObject } from '@keelson/core';
import {
  Deployment,
  Event,
  Job,
  Pod,
  PodDisruptionBudget,
  ReplicaSet,
  ReplicationController,
  StatefulSet,
} from '@keelson/kinds';
import test, { type ExecutionContext } from 'ava';
import { disruptionConditions, disruptionController } from '../src/index.ts';
import { type PodFate, template, WorkloadPlane } from './support/workload-plane.ts';

type Owner = Pick<KubeObject, 'apiVersion' | 'kind' | 'metadata'>;
type Spec = PodDisruptionBudget['spec'];

const selected = { app: 'web' };
const selector = { matchLabels: selected };
const scaled = (replicas: number) => ({ replicas, selector, template: template(selected) });

/** A plane whose pods of the label `fate` have this fate, with functions that create what budgets depend on. */
async function start(t: ExecutionContext) {
  const workloads = await WorkloadPlane.start(t, {
    controllers: [disruptionController],
    fateOf: ({ metadata }) => (metadata?.labels?.['fate'] ?? 'ready') as PodFate,
  });
  const budgets = workloads.objects(PodDisruptionBudget);
  const reference = ({ kind = '', apiVersion = '', metadata }: Owner) => ({
    ...{ kind, apiVersion, name: metadata?.name ?? '', uid: metadata?.uid ?? '', controller: true },
  });
  return {
    workloads,
    budgets,
    create: <T extends KubeObject>(kind: KindDefinition<T>, name: string, spec: object, owner?: Owner) => {
      const ownerReferences = owner === undefined ? [] : [reference(owner)];
      return workloads.objects(kind).create({ metadata: { name, ownerReferences }, spec } as unknown as T);
    },
    pods: async (
      names: readonly string[],
      { owner, ...more }: { owner?: Owner; fate?: PodFate; app?: string } = {},
    ) => {
      const ownerReferences = owner === undefined ? [] : [reference(owner)];
      for (const name of names) {
        const metadata = { name, labels: { ...selected, ...more }, ownerReferences };
        await workloads.objects(Pod).create({ metadata, spec: template({}).spec });
      }
    },
    budget: (spec: Spec, name = 'b') => budgets.create({ metadata: { name }, spec: { selector, ...spec } }),
    /** Waits until the budget has the numbers `[allowed, healthy, desired, expected]`. */
    reaches: (numbers: readonly number[], name = 'b') =>
      workloads.reaches(
        PodDisruptionBudget,
        name,
        ({ status }) =>
          [status?.disruptionsAllowed, status?.currentHealthy, status?.desiredHealthy, status?.expectedPods].join() ===
          numbers.join(),
        { what: `${name} has ${numbers}` },
      ),
  };
}

const allowed = ({ status }: PodDisruptionBudget) =>
  status?.conditions?.map((one) => [one.type, one.status, one.reason].join(' ')).join();

test('minAvailable as a number: healthy pods beyond it may be evicted', async (t) => {
  const { workloads, budget, budgets, pods, reaches } = await start(t);
  await budget({ minAvailable: 2 });
  t.is(allowed(await reaches([0, 0, 2, 0])), 'DisruptionAllowed False InsufficientPods');
  await workloads.recorded('b', 'NoPods', /^No matching pods found$/);
  await pods(['a', 'b', 'c']);
  await pods(['starting'], { fate: 'running' });
  await pods(['unselected'], { app: 'other' });
  const enough = await reaches([1, 3, 2, 4]);
  t.is(allowed(enough), 'DisruptionAllowed True SufficientPods');
  t.is(enough.status?.observedGeneration, 1);
  await budgets.patch('b', 'merge', { spec: { minAvailable: 3 } });
  t.is((await reaches([0, 3, 3, 4])).status?.observedGeneration, 2);
  // A pod that is no longer selected, and one that is being deleted.
  await workloads.objects(Pod).patch('a', 'merge', { metadata: { labels: { app: 'other' } } });
  await reaches([0, 2, 3, 3]);
  await workloads.objects(Pod).patch('b', 'merge', { metadata: { finalizers: ['a/b'] } });
  await workloads.objects(Pod).delete('b');
  await reaches([0, 1, 3, 3]);
});

test('maxUnavailable and percentages refer to the scale of the controllers of the pods, each counted once', async (t) => {
  const { workloads, create, budget, pods, reaches } = await start(t);
  const deployment = await create(Deployment, 'd', scaled(4));
  const oldSet = await create(ReplicaSet, 'old', scaled(1), deployment);
  const newSet = await create(ReplicaSet, 'new', scaled(3), deployment);
  await pods(['d-1'], { owner: oldSet });
  await pods(['d-2', 'd-3', 'd-4'], { owner: newSet });
  await budget({ maxUnavailable: 1 }, 'number');
  await budget({ maxUnavailable: '30%' }, 'percent');
  await budget({ minAvailable: '60%' }, 'available');
  await budget({ maxUnavailable: 9 }, 'many');
  await reaches([1, 4, 3, 4], 'number');
  await reaches([2, 4, 2, 4], 'percent');
  await reaches([1, 4, 3, 4], 'available');
  await reaches([4, 4, 0, 4], 'many');
  await workloads.objects(Deployment).patch('d', 'merge', { spec: { replicas: 10 } });
  await reaches([0, 4, 9, 10], 'number');
  await reaches([0, 4, 6, 10], 'available');

  await pods(['s-0'], { owner: await create(StatefulSet, 's', { ...scaled(2), serviceName: 's' }) });
  const apps = { selector: selected, replicas: 3, template: template(selected) };
  await pods(['r-0'], { owner: await create(ReplicationController, 'r', apps) });
  await pods(['bare']);
  t.is((await reaches([0, 7, 14, 15], 'number')).status?.observedGeneration, 1);
});

test('a budget without a limit allows no eviction', async (t) => {
  const { budget, pods, reaches } = await start(t);
  await pods(['a']);
  await budget({});
  t.is(allowed(await reaches([0, 1, 0, 0])), 'DisruptionAllowed False InsufficientPods');
});

test('no eviction is allowed while the scale is unknown; other kinds have their scale in a subresource', async (t) => {
  const { workloads, create, budget, pods, reaches } = await start(t);
  const set = await create(ReplicaSet, 'set', scaled(2));
  await pods(['a', 'b'], { owner: set });
  await budget({ maxUnavailable: 1 });
  await reaches([1, 2, 1, 2]);
  const stranger = { ...set, metadata: { name: 'set', uid: 'other' } };
  await pods(['stranger'], { owner: stranger });
  const failed = await workloads.reaches(PodDisruptionBudget, 'b', ({ status }) => status?.disruptionsAllowed === 0);
  const text = 'found no controllers for pod "stranger"';
  t.like(failed.status?.conditions?.[0], { status: 'False', reason: 'SyncFailed', message: text });
  t.is(failed.status?.currentHealthy, 2, 'the numbers of the last success remain');
  const message = /^Failed to calculate the number of expected pods: found no controllers for pod "stranger"$/;
  await workloads.recorded('b', 'CalculateExpectedPodCountFailed', message);
  await workloads.objects(Pod).delete('stranger');
  t.is(allowed(await reaches([1, 2, 1, 2])), 'DisruptionAllowed True SufficientPods');

  const gone = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'w', uid: 'w' } };
  await pods(['widget'], { owner: gone });
  await workloads.recorded(
    'b',
    'CalculateExpectedPodCountFailed',
    /no matches for kind "Widget" in version "example.com\/v1"$/,
  );
  await workloads.objects(Pod).delete('widget');
  const job = await create(Job, 'job', { template: { spec: { ...template({}).spec, restartPolicy: 'Never' } } });
  await pods(['task'], { owner: { ...job, apiVersion: 'batch/v1', kind: 'Job' } });
  await workloads.recorded(
    'b',
    'CalculateExpectedPodCountFailed',
    /^Failed to calculate the number of expected pods: jobs\.batch does not implement the scale subresource$/,
  );
});

test('pods without a controller are reported when the scale matters; no evicted pods leave no field', async (t) => {
  const { workloads, budget, create, pods, reaches } = await start(t);
  const set = await create(ReplicaSet, 'set', scaled(1));
  await pods(['a'], { owner: set });
  await pods(['bare']);
  await budget({ minAvailable: 1 }, 'number');
  await budget({ maxUnavailable: 1 });
  const status = (await reaches([2, 2, 0, 1])).status ?? {};
  t.false('disruptedPods' in status);
  const selectorText =
    '&LabelSelector{MatchLabels:map[string]string{app: web,},MatchExpressions:[]LabelSelectorRequirement{},}';
  await workloads.recorded('b', 'UnmanagedPods', /^Pods selected by this PodDisruptionBudget \(selector: &Label/);
  const events = (await workloads.list(Event)).filter(({ reason }) => reason === 'UnmanagedPods');
  t.deepEqual([...new Set(events.map(({ involvedObject }) => involvedObject.name))], ['b']);
  t.true(events[0]?.message?.includes(`(selector: ${selectorText}) were found to be unmanaged. As a result, the`));
});

test('an evicted pod does not count as healthy until it is deleted, or two minutes have passed', async (t) => {
  const { workloads, budget, budgets, pods, reaches } = await start(t);
  await pods(['a', 'b', 'c']);
  await budget({ minAvailable: 1 });
  await reaches([2, 3, 1, 3]);
  const at = (ms: number) => new Date(workloads.clock.now() + ms).toISOString().replace(/\.\d+/, '');
  const disruptedPods = { a: at(0), b: at(60_000), absent: at(0) };
  await budgets.patchSubresource('b', 'status', 'merge', { status: { disruptedPods } });
  const evicted = await reaches([0, 1, 1, 3]);
  t.deepEqual(Object.keys(evicted.status?.disruptedPods ?? {}).sort(), ['a', 'b']);
  workloads.clock.advance(118_000);
  t.is((await budgets.get('b')).status?.currentHealthy, 1);
  workloads.clock.advance(4_000);
  const late = await reaches([1, 2, 1, 3]);
  t.deepEqual(Object.keys(late.status?.disruptedPods ?? {}), ['b']);
  await workloads.recorded('a', 'NotDeleted', /^Pod was expected by PDB default\/b to be deleted but it wasn't$/);
  workloads.clock.advance(62_000);
  t.is(JSON.stringify((await reaches([2, 3, 1, 3])).status?.disruptedPods ?? {}), '{}');
});

test('the condition keeps the time of its last change, and conditions of others remain', (t) => {
  const [before, now] = ['2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z'];
  const other = { type: 'Other', status: 'True', lastTransitionTime: before, reason: 'R', message: '' };
  const first = disruptionConditions([other], 1, 3, before);
  t.deepEqual(first, [
    other,
    {
      type: 'DisruptionAllowed',
      status: 'True',
      observedGeneration: 3,
      lastTransitionTime: before,
      reason: 'SufficientPods',
      message: '',
    },
  ]);
  t.deepEqual(disruptionConditions(first, 2, 3, now), first);
  const [, changed] = disruptionConditions(first, 0, undefined, now);
  t.like(changed, { status: 'False', reason: 'InsufficientPods', lastTransitionTime: now });
  t.false('observedGeneration' in (changed ?? {}));
});
