import { statusErrors } from '@keelson/core';
import { PersistentVolumeClaim, type Pod, StatefulSet } from '@keelson/kinds';
import test from 'ava';
import { reconcilePods } from '../src/statefulset/reconcile-pods.ts';
import { missingIdentity, ordinalOf, statefulPod } from '../src/statefulset/stateful-pods.ts';
import { hasStaleClaim, setsOf } from '../src/statefulset/volume-claims.ts';
import { recordedWrites, runOverObjects } from './support/run-over-objects.ts';

type Spec = Partial<StatefulSet['spec']>;

function statefulSet(spec: Spec = {}): StatefulSet {
  return {
    metadata: { name: 's', namespace: 'default', uid: 's' },
    spec: {
      ...{ replicas: 3, serviceName: 'svc', selector: { matchLabels: { app: 's' } } },
      template: { metadata: { labels: { app: 's' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
      ...spec,
    },
  };
}

/**
 * Pods of the present revision, by ordinal: `.` is missing, `R` ready, `U` unready, `P` pending, `F` failed, `D` in
 * deletion; lower case: of an old revision.
 */
function podsOf(states: string, first = 0): Pod[] {
  return [...states].flatMap((state, i) => {
    if (state === '.') return [];
    const upper = state.toUpperCase();
    const ordinal = first + i;
    const pod = statefulPod(statefulSet(), ordinal, state === upper ? 'new' : 'old');
    const lastTransitionTime = '2020-01-01T00:00:00Z';
    return [
      {
        ...pod,
        metadata: {
          ...pod.metadata,
          ...{ namespace: 'default', uid: `uid-${ordinal}` },
          ...(upper === 'D' ? { deletionTimestamp: lastTransitionTime } : {}),
        },
        status: {
          phase: upper === 'P' ? 'Pending' : upper === 'F' ? 'Failed' : 'Running',
          conditions: [
            { type: 'Ready', status: upper === 'R' || upper === 'D' ? 'True' : 'False', lastTransitionTime },
          ],
        },
      },
    ];
  });
}

async function step(
  spec: Spec,
  pods: readonly Pod[],
  claims: readonly PersistentVolumeClaim[] = [],
  answer: Parameters<typeof recordedWrites>[0] = undefined,
) {
  const { client, writes, bodies } = recordedWrites(answer);
  const run = runOverObjects([[PersistentVolumeClaim, claims]], client);
  const set = statefulSet(spec);
  const newPod = (ordinal: number) => statefulPod(set, ordinal, 'new');
  const options = { run, set, pods, updateRevision: 'new', newPod, deleted: new Set<Pod>() };
  const error = await reconcilePods(options).then(
    () => undefined,
    (reason: Error) => reason.message,
  );
  return { writes: writes.map((write) => write.replace(' Pod s-', ' ')).join(', '), events: run.events, bodies, error };
}

const parallel = { podManagementPolicy: 'Parallel' };
const rolling = (rollingUpdate: object) => ({ updateStrategy: { type: 'RollingUpdate', rollingUpdate } });
for (const [title, spec, pods, expected] of [
  ['the first missing pod is created', {}, podsOf('R..'), 'create 1'],
  ['an unready pod is awaited', {}, podsOf('U..'), ''],
  ['a pod in deletion is awaited', {}, podsOf('D..'), ''],
  ['Parallel creates all missing pods', parallel, podsOf('U..'), 'create 1, create 2'],
  ['a failed pod is deleted', {}, podsOf('RF.'), 'delete 1'],
  ['ordinals begin with their start', { ordinals: { start: 2 }, replicas: 2 }, podsOf('R', 2), 'create 3'],
  ['the highest surplus pod is deleted', { replicas: 1 }, podsOf('RRR'), 'delete 2'],
  ['surplus pods wait for pods of the set', { replicas: 1 }, podsOf('URR'), ''],
  ['a surplus pod in deletion is awaited', { replicas: 1 }, podsOf('RRD'), ''],
  ['an unready surplus pod is awaited while a lower one is unready', { replicas: 1 }, podsOf('RUU'), ''],
  ['an unready surplus pod is deleted when all others are ready', { replicas: 1 }, podsOf('RRU'), 'delete 2'],
  ['pods below the start are deleted', { ordinals: { start: 2 }, replicas: 1 }, podsOf('RRR'), 'delete 1'],
  ['Parallel deletes all surplus pods', { ...parallel, replicas: 1 }, podsOf('RRDU'), 'delete 3, delete 1'],
  ['the highest old pod is replaced', {}, podsOf('rrr'), 'delete 2'],
  ['old pods wait for the replacement', {}, podsOf('rrU'), ''],
  ['two old pods may be replaced', rolling({ maxUnavailable: 2 }), podsOf('rrr'), 'delete 2, delete 1'],
  ['a share of the pods is rounded down', rolling({ maxUnavailable: '70%' }), podsOf('rrr'), 'delete 2, delete 1'],
  ['a share is at least one', rolling({ maxUnavailable: '10%' }), podsOf('rrr'), 'delete 2'],
  ['Parallel counts unready pods', { ...parallel, ...rolling({ maxUnavailable: 2 }) }, podsOf('rrU'), 'delete 1'],
  ['Parallel replaces unready old pods whatever the limit', { ...parallel, ...rolling({}) }, podsOf('ruU'), 'delete 1'],
  ['pods below the partition stay', rolling({ partition: 2 }), podsOf('rrr'), 'delete 2'],
  ['all pods below the partition stay', rolling({ partition: 3 }), podsOf('rrr'), ''],
  ['OnDelete replaces nothing', { updateStrategy: { type: 'OnDelete' } }, podsOf('rrr'), ''],
  ['surplus pods are deleted before old ones are replaced', { replicas: 2 }, podsOf('rrr'), 'delete 2'],
] as [string, Spec, Pod[], string][]) {
  test(`a step of a stateful set: ${title}`, async (t) => t.is((await step(spec, pods)).writes, expected));
}

test('a member has its name, its labels, its service and its claims; missing labels are added', async (t) => {
  const set = statefulSet({ volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: {} }] });
  const others = [
    { name: 'data', emptyDir: {} },
    { name: 'other', emptyDir: {} },
  ];
  set.spec.template.spec = { containers: [], volumes: others };
  const pod = statefulPod(set, 4, 'rev');
  t.deepEqual(pod.metadata?.labels, {
    app: 's',
    'statefulset.kubernetes.io/pod-name': 's-4',
    'apps.kubernetes.io/pod-index': '4',
    'controller-revision-hash': 'rev',
  });
  t.false('generateName' in (pod.metadata ?? {}));
  t.like(pod.spec, { hostname: 's-4', subdomain: 'svc' });
  t.deepEqual(pod.spec.volumes, [{ name: 'data', persistentVolumeClaim: { claimName: 'data-s-4' } }, others[1]]);
  const { volumes, subdomain } = statefulPod(statefulSet({ serviceName: '' }), 0, 'rev').spec;
  t.deepEqual([volumes, subdomain], [undefined, undefined]);
  t.is(missingIdentity(pod, 4), undefined);
  const names = ['s-0', 's-12', 's-01', 'x-1', 's-', 's-1-2'];
  t.deepEqual(
    names.map((name) => ordinalOf({ metadata: { name } } as Pod, set)),
    [0, 12, ...Array(4)],
  );

  const [adopted] = podsOf('R');
  const found = await step({ replicas: 1 }, [
    { ...adopted, metadata: { ...adopted?.metadata, labels: { 'controller-revision-hash': 'new' } } } as Pod,
  ]);
  t.is(found.writes, 'patch 0');
  t.like(found.bodies[0], { metadata: { uid: 'uid-0', labels: { 'apps.kubernetes.io/pod-index': '0' } } });
  t.deepEqual(found.events, ['Normal SuccessfulUpdate: update Pod s-0 in StatefulSet s successful']);
});

const template = { metadata: { name: 'data', labels: { a: '1' } }, spec: {} } as PersistentVolumeClaim;
const claim = (ordinal: number, metadata: PersistentVolumeClaim['metadata'] = {}): PersistentVolumeClaim => ({
  metadata: { name: `data-s-${ordinal}`, namespace: 'default', uid: `claim-${ordinal}`, ...metadata },
  spec: {},
});
const ownedBy = (kind: 'Pod' | 'StatefulSet', name: string, uid: string, controller?: boolean) => ({
  ...{ apiVersion: kind === 'Pod' ? 'v1' : 'apps/v1', kind, name, uid, ...(controller ? { controller } : {}) },
});

test('claims are created before their pod, and again for a pending pod', async (t) => {
  const spec = { volumeClaimTemplates: [template], replicas: 1 };
  const created = await step(spec, []);
  t.is(created.writes, 'create PersistentVolumeClaim data-s-0, create 0');
  t.deepEqual((created.bodies[0] as PersistentVolumeClaim).metadata, {
    name: 'data-s-0',
    labels: { a: '1', app: 's' },
  });
  t.is(created.events[0], 'Normal SuccessfulCreate: create Claim data-s-0 Pod s-0 in StatefulSet s success');
  t.is((await step(spec, [], [claim(0)])).writes, 'create 0');
  t.is((await step(spec, podsOf('P'))).writes, 'create PersistentVolumeClaim data-s-0');
  t.is((await step(spec, podsOf('U'))).writes, '');
  const deleting = await step(spec, [], [claim(0, { deletionTimestamp: 'x' })]);
  t.is(deleting.error, 'pvc data-s-0 is being deleted');
  t.deepEqual(deleting.events, [
    'Warning FailedCreate: create Pod s-0 in StatefulSet s failed error: pvc data-s-0 is being deleted',
  ]);
  const refused = await step(spec, [], [], () => {
    throw new Error('exceeded quota');
  });
  t.is(refused.error, 'failed to create PVC data-s-0: exceeded quota');
  t.is(
    refused.events[0],
    'Warning FailedCreate: create Claim data-s-0 Pod s-0 in StatefulSet s failed error: exceeded quota',
  );
});

test('a pod whose name is taken is tried again without an event, and pods that no longer exist are no failures', async (t) => {
  const exists = await step({ volumeClaimTemplates: [template], replicas: 1 }, [], [], () => {
    throw statusErrors.alreadyExists({ group: '', resource: 'pods' } as never, 's-0');
  });
  t.deepEqual([exists.error, exists.events], ['pods "s-0" already exists', []]);
  const gone = await step({}, podsOf('F'), [], () => {
    throw statusErrors.notFound({ group: '', resource: 'pods' } as never, 's-0');
  });
  t.deepEqual([gone.error, gone.events], [undefined, []]);
  const failed = await step({}, podsOf('F'), [], () => {
    throw new Error('no');
  });
  t.deepEqual(
    [failed.error, failed.events],
    ['no', ['Warning FailedDelete: delete Pod s-0 in StatefulSet s failed error: no']],
  );
});

test('the retention policy decides about the owners of claims', async (t) => {
  const owners = async (
    whenDeleted: string,
    whenScaled: string,
    metadata: PersistentVolumeClaim['metadata'],
    replicas = 1,
  ) => {
    const spec = {
      ...{ volumeClaimTemplates: [template], replicas },
      persistentVolumeClaimRetentionPolicy: { whenDeleted, whenScaled },
    };
    const { writes, bodies, events } = await step(spec, podsOf('U'), [claim(0, metadata)]);
    if (!writes.startsWith('patch PersistentVolumeClaim')) return events.length > 0 ? 'conflict' : 'unchanged';
    const patch = bodies[0] as PersistentVolumeClaim;
    return patch.metadata?.ownerReferences?.map(({ kind, name }) => `${kind} ${name}`).join() ?? 'none';
  };
  const set = ownedBy('StatefulSet', 's', 's');
  t.is(await owners('Retain', 'Retain', {}), 'unchanged');
  t.is(await owners('Delete', 'Retain', {}), 'StatefulSet s');
  t.is(await owners('Retain', 'Delete', {}), 'unchanged');
  t.is(await owners('Retain', 'Delete', {}, 0), 'Pod s-0');
  t.is(await owners('Delete', 'Delete', { ownerReferences: [set] }, 0), 'Pod s-0');
  t.is(await owners('Retain', 'Retain', { ownerReferences: [set] }), 'none');
  const other = { ownerReferences: [ownedBy('Pod', 'other', 'other')] };
  t.is(await owners('Delete', 'Retain', other), 'Pod other,StatefulSet s');
  t.is(await owners('Delete', 'Retain', { ownerReferences: [ownedBy('Pod', 'other', 'other', true)] }), 'conflict');
  t.is(await owners('Retain', 'Retain', { ownerReferences: [ownedBy('Pod', 'other', 'other', true)] }), 'unchanged');
  t.is(await owners('Retain', 'Retain', { ownerReferences: [ownedBy('StatefulSet', 's', 'former')] }), 'unchanged');
  t.is(await owners('Retain', 'Retain', { ownerReferences: [ownedBy('Pod', 's-0', 'former')] }), 'unchanged');
});

test('a pod waits until the claims of the earlier pod of its name are deleted', async (t) => {
  const spec = (whenScaled: string) => ({
    ...{ volumeClaimTemplates: [template], replicas: 1 },
    persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled },
  });
  const stale = claim(0, { ownerReferences: [ownedBy('Pod', 's-0', 'former')] });
  t.is((await step(spec('Delete'), [], [stale])).error, 'the claims of pod s-0 are being deleted');
  t.is((await step(spec('Retain'), [], [stale])).writes, 'create 0');
  t.is((await step(spec('Delete'), [], [claim(0)])).writes, 'create 0');
  const set = statefulSet(spec('Delete'));
  const run = runOverObjects([
    [PersistentVolumeClaim, [stale]],
    [StatefulSet, [set]],
  ]);
  t.true(hasStaleClaim({ run, set, pod: statefulPod(set, 0, 'new'), ordinal: 0 }));
  t.deepEqual(setsOf(stale, run.read), ['default/s']);
  t.deepEqual(setsOf({ ...stale, metadata: { name: 'other-s-0', namespace: 'default' } }, run.read), []);
});
