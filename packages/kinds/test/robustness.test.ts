import { internalContext, type KindDefinition, type StrategyContext } from '@keelson/core';
import { decoderOf } from '@keelson/core/internal';
import test from 'ava';
import fc from 'fast-check';
import { builtinKinds, ConfigMap, Endpoints, Pod } from '../src/index.ts';
import { podManifest } from './helpers/manifests.ts';
import { randomValue } from './helpers/random-value.ts';
import { causesOf, create, now, row, update } from './helpers/writes.ts';

const context: StrategyContext = { request: internalContext(), now, warn: () => {} };
const rounds = Number(process.env['KEELSON_ROBUSTNESS_RUNS'] ?? '60');

/** A decodable object out of a seed; undefined when the decoder refuses it, which is its own matter. */
function objectOf(kind: KindDefinition, seed: number) {
  const { value, errors } = decoderOf(kind.schema)(randomValue(kind.schema, seed));
  if (errors.length > 0) return undefined;
  // The registry settles these before any hook sees the object.
  return { ...value, apiVersion: kind.apiVersion, kind: kind.kind, metadata: value.metadata ?? {} };
}

/** A port of a backend has a name or a number: validation refuses both, and the older form has place for one. */
function withOnePortEach<T extends object>(object: T): T {
  return JSON.parse(JSON.stringify(object), (key, value: { readonly name?: unknown; readonly number?: unknown }) =>
    key === 'port' && value?.name !== undefined && value.number !== undefined ? { number: value.number } : value,
  ) as T;
}

test('an object with too many errors is rejected with at most 101 causes in bounded time', (t) => {
  const labels = Object.fromEntries(Array.from({ length: 200_000 }, (_, i) => [`no label ${i}`, '']));
  const tolerations = Array.from({ length: 20_000 }, (_, i) => ({ key: `k${i}`, operator: 'Exists' }));
  const pod = create(Pod, podManifest({ nodeSelector: labels }));
  t.is(pod.causes.length, 101);
  const keys = create(ConfigMap, { metadata: { name: 'c' }, data: labels });
  t.is(keys.causes.length, 101);
  const old = create(Pod, podManifest({ tolerations })).object;
  const start = performance.now();
  t.deepEqual(update(Pod, old, ({ spec }) => spec.tolerations?.reverse()).causes, []);
  t.true(performance.now() - start < 60_000, 'comparing tolerations takes quadratic time');
});

test('the table counts combinations of addresses and ports without enumerating them', (t) => {
  const addresses = Array.from({ length: 30_000 }, () => ({ ip: '10.0.0.1' }));
  const ports = Array.from({ length: 30_000 }, (_, i) => ({ port: i + 1, name: `p${i}` }));
  const cell = row(Endpoints, { metadata: { name: 'e' }, subsets: [{ addresses, ports }] })['Endpoints'];
  t.is(cell, '10.0.0.1:1,10.0.0.1:1,10.0.0.1:1 + 899999997 more...');
});

for (const kind of builtinKinds) {
  const { strategy } = kind;
  const title = `${kind.kind} of ${kind.apiVersion}`;

  test(`${title}: no decodable object makes a hook throw`, (t) => {
    let met = 0;
    fc.assert(
      fc.property(fc.nat(), fc.nat(), (seed, otherSeed) => {
        const object = objectOf(kind, seed);
        const other = objectOf(kind, otherSeed);
        if (!object || !other) return;
        met++;
        for (const one of [object, other]) {
          strategy.default?.(one);
          strategy.prepareForCreate?.(one, context);
          strategy.validate?.(one);
        }
        for (const column of kind.columns) column.value(object, { now });
        for (const [, value] of kind.selectableFields) value(object);
        kind.rowConditions?.(object);
        strategy.gracePeriod?.(object, undefined);
        strategy.heldBack?.(object);
        strategy.warnings?.(object);
        strategy.validateStatusUpdate?.(object, other);
        const status = structuredClone(object);
        strategy.prepareForStatusUpdate?.(status, other, context);
        strategy.prepareForUpdate?.(object, other, context);
        strategy.validateUpdate?.(object, other);
      }),
      { numRuns: rounds },
    );
    t.true(met > rounds / 4, `only ${met} objects were decodable`);
  });

  test(`${title}: defaults are idempotent and canonical, and an update without changes is valid`, (t) => {
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const object = objectOf(kind, seed);
        if (!object) return;
        strategy.default?.(object);
        const again = decoderOf(kind.schema)(structuredClone(object));
        t.deepEqual(again.errors, []);
        strategy.default?.(again.value);
        t.deepEqual(again.value, object);
        strategy.prepareForUpdate?.(again.value, object, context);
        t.deepEqual(causesOf(strategy.validateUpdate?.(again.value, object) ?? []), []);
      }),
      { numRuns: rounds },
    );
  });

  if (kind.storage) {
    const { storage } = kind;
    test(`${title}: every object is unchanged after storage as ${storage.kind.apiVersion}`, (t) => {
      fc.assert(
        fc.property(fc.nat(), (seed) => {
          const object = objectOf(kind, seed);
          if (!object) return;
          strategy.default?.(object);
          const sound = withOnePortEach(object);
          const stored = storage.toStorage(sound);
          t.deepEqual(decoderOf(storage.kind.schema)(stored).unknownFields, []);
          t.deepEqual(storage.fromStorage(stored), sound);
        }),
        { numRuns: rounds },
      );
    });
  }
}
