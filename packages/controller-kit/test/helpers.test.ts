import { labelSelectorOf } from '@keelson/core';
import { FakeClock } from '@keelson/core/runtime';
import { ConfigMap, Deployment, Pod, ReplicaSet } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import {
  addFinalizer,
  claim,
  conditionOf,
  isConditionTrue,
  ownerReference,
  patchStatus,
  type ReconcileRun,
  removeFinalizer,
  withCondition,
} from '../src/index.ts';
import { KitPlane } from './support/kit-plane.ts';

const template = { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'c', image: 'i' }] } };
const replicaSet = (name: string) =>
  ({ metadata: { name }, spec: { selector: { matchLabels: { app: 'a' } }, template } }) as unknown as ReplicaSet;
const pod = (name: string, app: string, more: object = {}) =>
  ({ metadata: { name, labels: { app }, ...more }, spec: template.spec }) as unknown as Pod;

/** Calls a function with a run of a controller of replica sets that reads pods. */
async function inRun(
  t: ExecutionContext,
  plane: KitPlane,
  work: (set: ReplicaSet, run: ReconcileRun) => Promise<void>,
) {
  let outcome: { readonly error?: unknown } | undefined;
  const reconcile = async (set: ReplicaSet, run: ReconcileRun) => {
    if (set.metadata?.name !== 'set' || outcome !== undefined) return undefined;
    outcome = await work(set, run).then(
      () => ({}),
      (error: unknown) => ({ error }),
    );
    return undefined;
  };
  await plane.run(t, [{ name: 'sets', kind: ReplicaSet, owns: [Pod], reconcile }]);
  const { error } = await until(() => outcome);
  if (error !== undefined) throw error;
}

const claimPods = (run: ReconcileRun, set: ReplicaSet) =>
  claim(run, { owner: ReplicaSet, object: set, kind: Pod, selector: labelSelectorOf({ matchLabels: { app: 'a' } }) });

test('claim adopts matching pods without controller, releases others, and ignores pods of other owners', async (t) => {
  const plane = await KitPlane.start(t);
  const sets = plane.api.resource(ReplicaSet).namespace('n');
  const pods = plane.api.resource(Pod).namespace('n');
  const set = await sets.create(replicaSet('set'));
  const other = await sets.create(replicaSet('other'));
  const mine = { ownerReferences: [ownerReference(ReplicaSet, set)] };
  const extra = { apiVersion: 'v1', kind: 'ConfigMap', name: 'm', uid: 'u' };
  await pods.create(pod('orphan', 'a'));
  await pods.create(pod('owned-only', 'a', { ownerReferences: [extra] }));
  await pods.create(pod('kept', 'a', mine));
  await pods.create(pod('changed', 'b', { ownerReferences: [extra, ...mine.ownerReferences] }));
  await pods.create(pod('foreign', 'a', { ownerReferences: [ownerReference(ReplicaSet, other)] }));
  await pods.create(pod('unmatched', 'b'));
  await pods.create(pod('deleting', 'a', { finalizers: ['x.io/f'] }));
  await pods.delete('deleting', { gracePeriodSeconds: 0 });
  await plane.api.resource(Pod).namespace('elsewhere').create(pod('orphan', 'a'));
  let claimed: string[] = [];
  await inRun(t, plane, async (object, run) => {
    claimed = (await claimPods(run, object)).map(({ metadata }) => `${metadata?.namespace}/${metadata?.name}`);
  });
  t.deepEqual(claimed.sort(), ['n/kept', 'n/orphan', 'n/owned-only']);
  const owners = async (name: string) => (await pods.get(name)).metadata?.ownerReferences ?? [];
  t.deepEqual(await owners('orphan'), mine.ownerReferences);
  t.deepEqual(await owners('owned-only'), [extra, ...mine.ownerReferences]);
  t.deepEqual(await owners('changed'), [extra]);
  t.is((await owners('foreign'))[0]?.name, 'other');
  for (const name of ['unmatched', 'deleting']) t.deepEqual(await owners(name), []);
  t.is(plane.requests.filter((request) => request === 'get replicasets').length, 1, 'one check for all adoptions');
  t.is(plane.requests.filter((request) => request === 'patch pods').length, 3);
});

test('claim adopts nothing when the owner was replaced or is being deleted, also when the informer is behind', async (t) => {
  for (const change of ['replace', 'remove', 'delete', 'deleteBefore'] as const) {
    const plane = await KitPlane.start(t);
    const sets = plane.api.resource(ReplicaSet).namespace('n');
    await plane.api.resource(Pod).namespace('n').create(pod('orphan', 'a'));
    const metadata = { finalizers: change.startsWith('delete') ? ['x.io/f'] : [] };
    await sets.create({ ...replicaSet('set'), metadata: { name: 'set', ...metadata } });
    if (change === 'deleteBefore') await sets.delete('set');
    const attempt = inRun(t, plane, async (set, run) => {
      if (change !== 'deleteBefore') await sets.delete('set');
      if (change === 'replace') await sets.create(replicaSet('set'));
      t.deepEqual(await claimPods(run, set), []);
    });
    await attempt;
    t.is((await plane.api.resource(Pod).namespace('n').get('orphan')).metadata?.ownerReferences, undefined);
  }
});

test('claim does not adopt an object that another controller adopted at the same time', async (t) => {
  const plane = await KitPlane.start(t);
  const sets = plane.api.resource(ReplicaSet).namespace('n');
  const pods = plane.api.resource(Pod).namespace('n');
  await sets.create(replicaSet('set'));
  const other = await sets.create(replicaSet('other'));
  await pods.create(pod('orphan', 'a'));
  const attempt = inRun(t, plane, async (set, run) => {
    await pods.patch('orphan', 'merge', { metadata: { ownerReferences: [ownerReference(ReplicaSet, other)] } });
    await claimPods(run, set);
  });
  await t.throwsAsync(attempt, { message: /the object has been modified/ });
  t.is((await pods.get('orphan')).metadata?.ownerReferences?.[0]?.name, 'other');
});

test('finalizers are added and removed once, keep the others, and require the state that was read', async (t) => {
  const { api: client, requests, client: access } = await KitPlane.start(t);
  const maps = client.resource(ConfigMap).namespace('n');
  const read = await maps.create({ metadata: { name: 'a', finalizers: ['x.io/other'] } });
  const added = await addFinalizer({ client: access }, ConfigMap, read, 'x.io/mine');
  t.deepEqual(added.metadata?.finalizers, ['x.io/other', 'x.io/mine']);
  t.is(await addFinalizer({ client: access }, ConfigMap, added, 'x.io/mine'), added);
  await t.throwsAsync(addFinalizer({ client: access }, ConfigMap, read, 'x.io/third'), {
    message: /the object has been modified/,
  });
  const removed = await removeFinalizer({ client: access }, ConfigMap, added, 'x.io/mine');
  t.deepEqual(removed?.metadata?.finalizers, ['x.io/other']);
  t.is(await removeFinalizer({ client: access }, ConfigMap, removed as ConfigMap, 'x.io/mine'), removed);
  t.is(requests.length, 3, 'what is already so is not sent');
  await maps.patch('a', 'merge', { metadata: { finalizers: null } });
  await maps.delete('a');
  t.is(await removeFinalizer({ client: access }, ConfigMap, added, 'x.io/mine'), undefined);
});

test('patchStatus sends only what changes, removes undefined fields, and sends nothing otherwise', async (t) => {
  const plane = await KitPlane.start(t);
  const deployments = plane.api.resource(Deployment).namespace('n');
  const created = await deployments.create({
    metadata: { name: 'd' },
    spec: { selector: { matchLabels: { app: 'a' } }, template },
  } as unknown as Deployment);
  const condition = { type: 'Available', status: 'True', reason: 'R', message: 'm' };
  const first = await patchStatus(plane, Deployment, created, {
    replicas: 2,
    readyReplicas: 1,
    conditions: [condition],
  });
  t.like(first.status, { replicas: 2, readyReplicas: 1, conditions: [condition] });
  const conditions = first.status?.conditions?.map((entry) => ({ ...entry }));
  t.is(await patchStatus(plane, Deployment, first, { replicas: 2, ...(conditions && { conditions }) }), first);
  t.is(plane.requests.length, 1);
  const second = await patchStatus(plane, Deployment, first, { replicas: 3, readyReplicas: undefined });
  t.like(second.status, { replicas: 3, conditions: [condition] });
  t.is(second.status?.readyReplicas, undefined);
  t.is(second.metadata?.generation, created.metadata?.generation);
  await t.throwsAsync(patchStatus(plane, Deployment, first, { replicas: 4 }), {
    message: /the object has been modified/,
  });
});

test('a condition keeps its transition time until its status changes, and an unchanged list is returned as it is', (t) => {
  const clock = new FakeClock();
  const ready = { type: 'Ready', status: 'False', reason: 'Waiting', message: '' };
  const first = withCondition(undefined, ready, clock);
  t.deepEqual(first, [{ ...ready, lastTransitionTime: '2026-01-01T00:00:00Z' }]);
  clock.advance(1_000);
  t.is(withCondition(first, ready, clock), first);
  const second = withCondition(first, { ...ready, reason: 'Other' }, clock);
  t.like(second[0], { reason: 'Other', lastTransitionTime: '2026-01-01T00:00:00Z' });
  const third = withCondition([{ ...ready, type: 'Else' }, ...second], { ...ready, status: 'True' }, clock);
  t.like(third[1], { status: 'True', lastTransitionTime: '2026-01-01T00:00:01Z' });
  t.is(third.length, 2);
  t.true(isConditionTrue(third, 'Ready'));
  t.false(isConditionTrue(third, 'Absent'));
  t.is(conditionOf(third, 'Else')?.status, 'False');
});
