import type { KindDefinition, KubeObject } from '@keelson/core';
import { decoderOf } from '@keelson/core/internal';
import test from 'ava';
import fc from 'fast-check';
import {
  DaemonSet,
  Deployment,
  ExtensionsV1beta1DaemonSet,
  ExtensionsV1beta1Deployment,
  ExtensionsV1beta1ReplicaSet,
  ReplicaSet,
} from '../src/index.ts';
import { workloadManifest } from './helpers/manifests.ts';
import { create } from './helpers/writes.ts';

const rollback = 'deprecated.deployment.rollback.rollbackTo';
const generation = 'deprecated.daemonset.template.generation';

/** Annotations that may or may not look like those of the server. */
const annotations = fc.option(
  fc.dictionary(
    fc.constantFrom('a', 'b.io/c', rollback, generation, '__proto__x'),
    fc.oneof(
      fc.string(),
      fc.integer().map(String),
      fc.constantFrom('', '0', '-0', '007', '1e3', ' 1', '99999999999999999999'),
    ),
    { minKeys: 1 },
  ),
  { nil: undefined },
);
const common = {
  replicas: fc.option(fc.nat(), { nil: undefined }),
  minReadySeconds: fc.option(fc.nat(), { nil: undefined }),
  image: fc.stringMatching(/^[a-z]{1,8}$/),
  paused: fc.boolean(),
};

function built(
  kind: KindDefinition,
  spec: Record<string, unknown>,
  own: Record<string, string> | undefined,
): KubeObject {
  const manifest = workloadManifest(kind.apiVersion, kind.kind, spec);
  return decoderOf(kind.schema)({
    ...manifest,
    metadata: { ...manifest.metadata, ...(own ? { annotations: own } : {}) },
  }).value as KubeObject;
}

function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) frozen(member);
  }
  return value;
}

const template = (image: string) => ({
  template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'a', image }] } },
});

for (const [old, twin] of [
  [ExtensionsV1beta1Deployment, Deployment],
  [ExtensionsV1beta1ReplicaSet, ReplicaSet],
  [ExtensionsV1beta1DaemonSet, DaemonSet],
] as readonly [KindDefinition, KindDefinition][]) {
  const { toStorage, fromStorage, isRelabel } = old.storage!;
  const isDeployment = old.kind === 'Deployment';

  test(`${old.kind}: an object is unchanged after conversion to storage and back`, (t) => {
    const arbitrary = fc.record({
      ...common,
      own: annotations,
      revision: fc.option(fc.maxSafeInteger(), { nil: undefined }),
      rolls: fc.boolean(),
      count: fc.option(fc.nat(), { nil: undefined }),
    });
    fc.assert(
      fc.property(arbitrary, ({ replicas, minReadySeconds, image, paused, own, revision, rolls, count }) => {
        const object = built(
          old,
          {
            ...template(image),
            minReadySeconds,
            ...(old.kind === 'DaemonSet' ? { templateGeneration: count } : { replicas }),
            ...(isDeployment ? { paused, ...(rolls ? { rollbackTo: { revision } } : {}) } : {}),
          },
          own,
        );
        // Objects reach the store with their defaults, which leave no annotation of the server in this version.
        old.strategy.default?.(object);
        const stored = toStorage(frozen(object));
        t.is(stored.apiVersion, 'apps/v1');
        t.deepEqual(decoderOf(twin.schema)(stored).unknownFields, []);
        t.deepEqual(fromStorage(frozen(stored)), object);
      }),
    );
  });

  test(`${old.kind}: fields of apps/v1 survive a write through extensions/v1beta1`, (t) => {
    fc.assert(
      fc.property(fc.record({ ...common, own: annotations }), ({ replicas, minReadySeconds, image, own }) => {
        const selector = { matchLabels: { app: 'web' } };
        const stored = built(
          twin,
          { ...template(image), selector, minReadySeconds, ...(old.kind === 'DaemonSet' ? {} : { replicas }) },
          own,
        );
        const shown = fromStorage(frozen(stored));
        t.is(shown.apiVersion, 'extensions/v1beta1');
        t.deepEqual(decoderOf(old.schema)(shown).unknownFields, []);
        t.deepEqual(toStorage(frozen(shown)), stored);
        if (isRelabel(Buffer.from(JSON.stringify(stored)))) {
          t.deepEqual(shown, { ...stored, apiVersion: 'extensions/v1beta1' });
        }
      }),
    );
  });
}

test('rollback and template generation are annotations in apps/v1 and fields in extensions/v1beta1', (t) => {
  const deployment = create(
    ExtensionsV1beta1Deployment,
    workloadManifest('extensions/v1beta1', 'Deployment', { rollbackTo: { revision: 3 } }),
  );
  t.deepEqual(deployment.causes, []);
  const stored = ExtensionsV1beta1Deployment.storage!.toStorage(deployment.object);
  t.is(stored.metadata?.annotations?.[rollback], '3');
  t.false('rollbackTo' in (stored as Deployment).spec);

  const daemonSet = create(ExtensionsV1beta1DaemonSet, workloadManifest('extensions/v1beta1', 'DaemonSet')).object;
  const kept = ExtensionsV1beta1DaemonSet.storage!.toStorage(daemonSet);
  t.is(kept.metadata?.annotations?.[generation], '1');
  t.false(ExtensionsV1beta1DaemonSet.storage!.isRelabel(Buffer.from(JSON.stringify(kept))));
});

test('an object written through extensions/v1beta1 is valid in apps/v1', (t) => {
  for (const [old, twin] of [
    [ExtensionsV1beta1Deployment, Deployment],
    [ExtensionsV1beta1ReplicaSet, ReplicaSet],
    [ExtensionsV1beta1DaemonSet, DaemonSet],
  ] as readonly [KindDefinition, KindDefinition][]) {
    const { object } = create(old, workloadManifest('extensions/v1beta1', old.kind));
    const { causes } = create(twin, old.storage!.toStorage(object));
    t.deepEqual(causes, [], old.kind);
  }
});
