import test from 'ava';
import { applyObject } from '../../src/apply/field-manager.ts';
import { defineKind } from '../../src/kind/define-kind.ts';
import { optional, s } from '../../src/kind/schema.ts';
import { FieldTracking } from '../../src/registry/field-tracking.ts';
import { FakeClock } from '../../src/runtime/fake-clock.ts';

const spec = s.object({ x: optional(s.int32()), y: optional(s.int32()) });
/** A kind whose webhook exchanges the values of `x` and `y` between the versions. */
const swap = (version: string) =>
  Object.freeze({
    ...defineKind({ group: 'example.com', version, kind: 'Swap', schema: s.object({ spec: optional(spec) }) }),
    convertedByWebhook: true,
  });
const [v1, v2] = [swap('v1'), swap('v2')];

test('an apply keeps the fields of owners whose version only a webhook converts, and their entries', (t) => {
  const kindOf = (apiVersion: string) => [v1, v2].find((kind) => kind.apiVersion === apiVersion);
  const tracking = new FieldTracking(v2, { clock: new FakeClock(0), kindOf });
  const entry = { apiVersion: v1.apiVersion, fieldsType: 'FieldsV1' } as const;
  const a = { ...entry, manager: 'a', operation: 'Apply', fieldsV1: { 'f:spec': { 'f:x': {} } } } as const;
  const b = { ...entry, manager: 'b', operation: 'Update', fieldsV1: { 'f:spec': { 'f:y': {} } } } as const;
  const identity = { apiVersion: v2.apiVersion, kind: 'Swap' };
  const live = { ...identity, metadata: { name: 'n', managedFields: [a, b] }, spec: { x: 5, y: 1 } };
  const config = { ...identity, metadata: { name: 'n' }, spec: { y: 2 } };
  const applied = applyObject(tracking.through(undefined), live, config, { manager: 'a', nowMs: 0 }, false);
  if ('conflicts' in applied) return t.fail('no conflict');
  t.deepEqual(applied.object['spec'], { x: 5, y: 2 });
  const owners = applied.managedFields?.map(({ manager, apiVersion, fieldsV1 }) => [manager, apiVersion, fieldsV1]);
  t.deepEqual(owners, [
    ['a', v2.apiVersion, { 'f:spec': { 'f:y': {} } }],
    ['b', v1.apiVersion, { 'f:spec': { 'f:y': {} } }],
  ]);
});
