import type { KindDefinition } from '@keelson/core';
import test from 'ava';
import {
  AppsV1beta1Deployment,
  AppsV1beta1StatefulSet,
  AppsV1beta2Deployment,
  AppsV1beta2StatefulSet,
  DaemonSet,
  Deployment,
  ExtensionsV1beta1DaemonSet,
  ExtensionsV1beta1Deployment,
  ExtensionsV1beta1ReplicaSet,
  ReplicaSet,
} from '../src/index.ts';
import { container, workloadManifest } from './helpers/manifests.ts';
import { create, defaulted, row, update, updateStatus } from './helpers/writes.ts';

const unlimited = 2147483647;
const deployment = (spec: Record<string, unknown> = {}) => workloadManifest('apps/v1', 'Deployment', spec);
const daemonSet = (spec: Record<string, unknown> = {}) => workloadManifest('apps/v1', 'DaemonSet', spec);
const template = (spec: Record<string, unknown>, labels: Record<string, string> = { app: 'web' }) => ({
  template: { metadata: { labels }, spec: { containers: [container], ...spec } },
});

test('defaults of both versions of Deployment', (t) => {
  t.like(defaulted(Deployment, deployment()).spec, {
    replicas: 1,
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' } },
    revisionHistoryLimit: 10,
    progressDeadlineSeconds: 600,
  });
  const old = defaulted(ExtensionsV1beta1Deployment, workloadManifest('extensions/v1beta1', 'Deployment'));
  t.deepEqual(old.metadata?.labels, { app: 'web' });
  t.like(old.spec, {
    replicas: 1,
    selector: { matchLabels: { app: 'web' } },
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1, maxSurge: 1 } },
    revisionHistoryLimit: unlimited,
    progressDeadlineSeconds: unlimited,
  });
});

test('defaults of both versions of DaemonSet', (t) => {
  t.like(defaulted(DaemonSet, daemonSet()).spec, {
    updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } },
    revisionHistoryLimit: 10,
  });
  const old = defaulted(ExtensionsV1beta1DaemonSet, workloadManifest('extensions/v1beta1', 'DaemonSet'));
  t.deepEqual(old.spec.updateStrategy, { type: 'OnDelete' });
  t.deepEqual(old.spec.selector, { matchLabels: { app: 'web' } });
});

test('a pod template has the defaults of pods, except those that only apply to pods', (t) => {
  const { template: made } = defaulted(
    ReplicaSet,
    workloadManifest(
      'apps/v1',
      'ReplicaSet',
      template({ containers: [{ ...container, resources: { limits: { cpu: '1' } } }] }),
    ),
  ).spec;
  t.like(made.spec, { restartPolicy: 'Always', terminationGracePeriodSeconds: 30, dnsPolicy: 'ClusterFirst' });
  t.is(made.spec.enableServiceLinks, undefined);
  t.deepEqual(made.spec.containers[0]?.resources, { limits: { cpu: '1' } });
});

for (const [kind, apiVersion] of [
  [Deployment, 'apps/v1'],
  [ReplicaSet, 'apps/v1'],
  [DaemonSet, 'apps/v1'],
  [ExtensionsV1beta1Deployment, 'extensions/v1beta1'],
  [ExtensionsV1beta1ReplicaSet, 'extensions/v1beta1'],
  [ExtensionsV1beta1DaemonSet, 'extensions/v1beta1'],
] as readonly [KindDefinition, string][]) {
  const manifest = (spec: Record<string, unknown> = {}) => workloadManifest(apiVersion, kind.kind, spec);
  const cases: readonly [string, Record<string, unknown>, readonly string[]][] = [
    ['the smallest one', {}, []],
    ['an empty selector', { selector: {} }, ['spec.selector Invalid']],
    [
      'a selector that does not fit',
      { selector: { matchLabels: { app: 'other' } } },
      ['spec.template.metadata.labels Invalid'],
    ],
    [
      'a bad selector',
      { selector: { matchExpressions: [{ key: 'app', operator: 'Like' }] } },
      ['spec.selector.matchExpressions[0].operator Invalid'],
    ],
    ['pods that end', template({ restartPolicy: 'Never' }), ['spec.template.spec.restartPolicy NotSupported']],
    [
      'a deadline for pods',
      template({ activeDeadlineSeconds: 3 }),
      ['spec.template.spec.activeDeadlineSeconds Forbidden'],
    ],
    ['no containers', template({ containers: [] }), ['spec.template.spec.containers Required']],
    ['no image', template({ containers: [{ name: 'a' }] }), ['spec.template.spec.containers[0].image Required']],
    ['bad labels', template({}, { app: 'web', 'a b': 'c' }), ['spec.template.labels Invalid']],
    ['a negative delay', { minReadySeconds: -1 }, ['spec.minReadySeconds Invalid']],
    ['negative replicas', { replicas: -1 }, ['spec.replicas Invalid']],
  ];
  for (const [title, spec, causes] of cases) {
    if (kind.kind === 'DaemonSet' && 'replicas' in spec) continue;
    test(`${kind.kind} of ${apiVersion} with ${title}`, (t) => {
      // An old selector that is left out follows the template, so that a bad label is refused in it as well.
      const follows = apiVersion !== 'apps/v1' && title === 'bad labels';
      t.deepEqual(
        create(kind, manifest(spec)).causes,
        follows ? ['spec.selector.matchLabels Invalid', ...causes] : causes,
      );
    });
  }

  test(`the selector of ${kind.kind} of ${apiVersion} ${apiVersion === 'apps/v1' ? 'is fixed' : 'may change'}`, (t) => {
    const old = create(kind, manifest()).object;
    const { causes } = update(kind, old, (object) => {
      object.spec.selector = { matchLabels: { app: 'b' } };
      object.spec.template.metadata.labels = { app: 'b' };
    });
    t.deepEqual(causes, apiVersion === 'apps/v1' ? ['spec.selector Invalid'] : []);
  });
}

test('apps/v1 requires a selector', (t) => {
  t.deepEqual(create(Deployment, deployment({ selector: undefined })).causes, ['spec.selector Required']);
});

const rolling = (rollingUpdate: Record<string, unknown>) => ({ strategy: { type: 'RollingUpdate', rollingUpdate } });
const pace = 'spec.strategy.rollingUpdate';
for (const [title, spec, causes] of [
  ['percentages', rolling({ maxUnavailable: '0%', maxSurge: '110%' }), []],
  ['a word', rolling({ maxUnavailable: 'half' }), [`${pace}.maxUnavailable Invalid`]],
  ['a fraction', rolling({ maxUnavailable: '1.5%' }), [`${pace}.maxUnavailable Invalid`]],
  ['nothing to spare', rolling({ maxUnavailable: 0, maxSurge: '0%' }), [`${pace}.maxUnavailable Invalid`]],
  ['more than all', rolling({ maxUnavailable: '101%' }), [`${pace}.maxUnavailable Invalid`]],
  ['a negative surge', rolling({ maxSurge: -1 }), [`${pace}.maxSurge Invalid`]],
  ['Recreate', { strategy: { type: 'Recreate' } }, []],
  ['Recreate with a pace', { strategy: { type: 'Recreate', rollingUpdate: {} } }, [`${pace} Forbidden`]],
  ['an unknown strategy', { strategy: { type: 'Hope' } }, ['spec.strategy.type NotSupported']],
  ['a deadline within the delay', { minReadySeconds: 600 }, ['spec.progressDeadlineSeconds Invalid']],
  ['negative history', { revisionHistoryLimit: -1 }, ['spec.revisionHistoryLimit Invalid']],
] as readonly [string, Record<string, unknown>, readonly string[]][]) {
  test(`Deployment with ${title}`, (t) => {
    t.deepEqual(create(Deployment, deployment(spec)).causes, causes);
  });
}

const daemonPace = 'spec.updateStrategy.rollingUpdate';
for (const [title, updateStrategy, causes] of [
  ['OnDelete', { type: 'OnDelete' }, []],
  ['a surge', { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } }, []],
  ['both', { rollingUpdate: { maxUnavailable: 1, maxSurge: 1 } }, [`${daemonPace}.maxSurge Invalid`]],
  ['neither', { rollingUpdate: { maxUnavailable: 0 } }, [`${daemonPace}.maxUnavailable Required`]],
  ['an unknown strategy', { type: 'Recreate' }, ['spec.updateStrategy.type NotSupported']],
] as readonly [string, Record<string, unknown>, readonly string[]][]) {
  test(`DaemonSet with ${title}`, (t) => {
    t.deepEqual(create(DaemonSet, daemonSet({ updateStrategy })).causes, causes);
  });
}

test('the server sets the template generation of a DaemonSet, in both versions', (t) => {
  const annotation = 'deprecated.daemonset.template.generation';
  const made = create(DaemonSet, daemonSet()).object;
  t.is(made.metadata?.annotations?.[annotation], '1');
  const touched = update(DaemonSet, made, (object) => {
    object.metadata!.annotations = { [annotation]: '7' };
  }).object;
  t.is(touched.metadata?.annotations?.[annotation], '1');
  const changed = update(DaemonSet, touched, (object) => {
    object.spec.template.spec.containers[0]!.image = 'b';
  }).object;
  t.is(changed.metadata?.annotations?.[annotation], '2');

  const old = create(
    ExtensionsV1beta1DaemonSet,
    workloadManifest('extensions/v1beta1', 'DaemonSet', { templateGeneration: 9 }),
  ).object;
  t.is(old.spec.templateGeneration, 1);
  const kept = update(ExtensionsV1beta1DaemonSet, old, (object) => {
    object.spec.templateGeneration = 5;
  }).object;
  t.is(kept.spec.templateGeneration, 1);
  const next = update(ExtensionsV1beta1DaemonSet, kept, (object) => {
    object.spec.minReadySeconds = 5;
  }).object;
  t.is(next.spec.templateGeneration, 1);
  const again = update(ExtensionsV1beta1DaemonSet, next, (object) => {
    object.spec.template.spec.nodeSelector = { a: 'b' };
  });
  t.is(again.object.spec.templateGeneration, 2);
});

test('a status write keeps the labels of a Deployment and rejects inconsistent counts', (t) => {
  const old = create(Deployment, deployment()).object;
  const { object, causes } = updateStatus(Deployment, old, (changed) => {
    changed.metadata!.labels = { stolen: 'yes' };
    changed.status = { replicas: 1, readyReplicas: 2, availableReplicas: -1 };
  });
  t.is(object.metadata?.labels, undefined);
  t.deepEqual(causes, ['status.availableReplicas Invalid', 'status.readyReplicas Invalid']);
});

test('table rows of workloads', (t) => {
  const created = { creationTimestamp: '2026-01-01T12:00:00Z' };
  const web = create(Deployment, deployment({ replicas: 3 })).object;
  Object.assign(web.metadata!, created);
  web.status = { replicas: 3, readyReplicas: 2, updatedReplicas: 3, availableReplicas: 1 };
  t.deepEqual(row(Deployment, web), {
    Name: 'web',
    Ready: '2/3',
    'Up-to-date': 3,
    Available: 1,
    Age: '24h',
    Containers: 'app',
    Images: 'nginx:1.25',
    Selector: 'app=web',
  });
  const agent = create(DaemonSet, daemonSet(template({ nodeSelector: { b: '2', a: '1' } }))).object;
  t.like(row(DaemonSet, agent), { Desired: 0, Ready: 0, 'Node Selector': 'a=1,b=2', Age: '<unknown>' });
  const set = create(ReplicaSet, workloadManifest('apps/v1', 'ReplicaSet', { replicas: 2 })).object;
  t.like(row(ReplicaSet, set), { Desired: 2, Current: 0, Ready: 0 });
});

test('apps/v1beta2 is validated and stored like apps/v1, and orphans dependents by default', (t) => {
  const made = create(AppsV1beta2Deployment, { ...deployment(), apiVersion: 'apps/v1beta2' });
  t.deepEqual(made.causes, []);
  t.is(made.object.spec.revisionHistoryLimit, 10);
  const { toStorage, fromStorage } = AppsV1beta2Deployment.storage!;
  const stored = toStorage(made.object);
  t.deepEqual(stored, { ...made.object, apiVersion: 'apps/v1' });
  t.deepEqual(fromStorage(stored), made.object);
  t.is(AppsV1beta2Deployment.strategy.defaultPropagation, 'Orphan');
  t.is(Deployment.strategy.defaultPropagation, undefined);
  const moved = update(AppsV1beta2StatefulSet, create(AppsV1beta2StatefulSet, deployment()).object, ({ spec }) => {
    spec.serviceName = 'other';
  });
  t.deepEqual(moved.causes, ['spec Forbidden']);
  const scale = AppsV1beta2Deployment.subresources.find(({ name }) => name === 'scale');
  t.like(scale?.type === 'projection' ? scale.read(made.object) : {}, {
    apiVersion: 'apps/v1beta2',
    status: { selector: { app: 'web' }, targetSelector: 'app=web' },
  });
});

test('apps/v1beta1 has an optional selector and a rollback, and is stored as apps/v1', (t) => {
  const { selector: _, ...spec } = deployment().spec as Record<string, unknown>;
  const made = create(AppsV1beta1Deployment, { ...deployment(), apiVersion: 'apps/v1beta1', spec });
  t.deepEqual(made.causes, []);
  t.like(made.object.spec, {
    selector: { matchLabels: { app: 'web' } },
    revisionHistoryLimit: 2,
    progressDeadlineSeconds: 600,
    strategy: { rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } },
  });
  made.object.spec.rollbackTo = { revision: 3 };
  const { toStorage, fromStorage } = AppsV1beta1Deployment.storage!;
  const stored = toStorage(made.object);
  t.is(stored.apiVersion, 'apps/v1');
  t.false('rollbackTo' in (stored as unknown as { spec: object }).spec);
  t.deepEqual(fromStorage(stored), made.object);
  const rollback = AppsV1beta1Deployment.subresources.find(({ name }) => name === 'rollback');
  t.like(rollback, { bodyKind: { group: 'apps', version: 'v1beta1', kind: 'DeploymentRollback' } });
  const set = create(AppsV1beta1StatefulSet, { ...deployment(), apiVersion: 'apps/v1beta1', spec });
  t.deepEqual(set.causes, []);
  t.like(set.object.spec, {
    selector: { matchLabels: { app: 'web' } },
    updateStrategy: { type: 'OnDelete' },
    podManagementPolicy: 'OrderedReady',
    revisionHistoryLimit: 10,
  });
  t.is(AppsV1beta1StatefulSet.strategy.defaultPropagation, 'Orphan');
  t.is(AppsV1beta1StatefulSet.storage!.toStorage(set.object).apiVersion, 'apps/v1');
});
