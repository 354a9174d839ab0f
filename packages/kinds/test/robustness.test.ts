import { decoderOf, internalContext, type KindDefinition, type StrategyContext } from '@keelson/core';
import test from 'ava';
import fc from 'fast-check';
import { builtinKinds } from '../src/index.ts';
import { randomValue } from './helpers/random-value.ts';
import { now } from './helpers/writes.ts';

const context: StrategyContext = { request: internalContext(), now, warn: () => {} };
const rounds = 150;

/** A decodable object out of a seed; undefined when the decoder refuses it, which is its own matter. */
function objectOf(kind: KindDefinition, seed: number) {
  const { value, errors } = decoderOf(kind.schema)(randomValue(kind.schema, seed));
  if (errors.length > 0) return undefined;
  // The registry settles these before any hook sees the object.
  return { ...value, apiVersion: kind.apiVersion, kind: kind.kind, metadata: value.metadata ?? {} };
}

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

  test(`${title}: defaults are idempotent and canonical, and an unchanged object may always be written`, (t) => {
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
        t.deepEqual(strategy.validateUpdate?.(again.value, object) ?? [], []);
      }),
      { numRuns: rounds },
    );
  });

  if (kind.storage) {
    const { storage } = kind;
    test(`${title}: every object survives being stored as ${storage.kind.apiVersion}`, (t) => {
      fc.assert(
        fc.property(fc.nat(), (seed) => {
          const object = objectOf(kind, seed);
          if (!object) return;
          strategy.default?.(object);
          const stored = storage.toStorage(object);
          t.deepEqual(decoderOf(storage.kind.schema)(stored).unknownFields, []);
          t.deepEqual(storage.fromStorage(stored), object);
        }),
        { numRuns: rounds },
      );
    });
  }
}
