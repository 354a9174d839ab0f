import test from 'ava';
import { internalContext, type Strategy, type StrategyContext } from '../../src/index.ts';
import type { AnyObject } from '../../src/meta/types.ts';
import { isReleased } from '../../src/registry/common-fields.ts';
import { deletionFinalizers, planDeletion } from '../../src/registry/deletion-plan.ts';
import type { DeleteParameters } from '../../src/registry/resource-service.ts';

type Row = [
  existing: string[],
  asked: Omit<DeleteParameters, 'dryRun'>,
  kindDefault: Strategy['defaultPropagation'],
  after: string[],
];

const rows: Row[] = [
  [[], {}, undefined, []],
  [[], {}, 'Background', []],
  [[], {}, 'Orphan', ['orphan']],
  [[], {}, 'Foreground', ['foregroundDeletion']],
  [[], {}, 'none', []],
  [['x/y'], {}, 'Orphan', ['x/y', 'orphan']],
  [['foregroundDeletion'], {}, 'Orphan', ['foregroundDeletion']],
  [['orphan'], {}, 'Background', ['orphan']],
  [['foregroundDeletion', 'x/y'], { propagationPolicy: 'Orphan' }, undefined, ['x/y', 'orphan']],
  [['orphan', 'x/y'], { propagationPolicy: 'Foreground' }, undefined, ['x/y', 'foregroundDeletion']],
  [['orphan', 'foregroundDeletion', 'x/y'], { propagationPolicy: 'Background' }, 'Orphan', ['x/y']],
  [[], { orphanDependents: true }, 'Background', ['orphan']],
  [['orphan'], { orphanDependents: false }, 'Orphan', []],
  [['orphan', 'x/y'], { propagationPolicy: 'Orphan' }, 'none', ['x/y']],
  [[], { propagationPolicy: 'Foreground' }, 'none', []],
];

for (const [existing, asked, kindDefault, after] of rows) {
  test(`finalizers [${existing}] asked ${JSON.stringify(asked)} default ${kindDefault} become [${after}]`, (t) => {
    t.deepEqual([...deletionFinalizers(existing, asked, kindDefault)], after);
  });
}

const now = new Date(Date.UTC(2026, 0, 1, 12));
const context: StrategyContext = { request: internalContext(), now, warn: () => {} };
const run = (object: AnyObject, asked: Omit<DeleteParameters, 'dryRun'> = {}, strategy: Strategy = {}) =>
  planDeletion(object, { dryRun: false, ...asked }, strategy, context);
const graceful: Strategy = { gracePeriod: (_object, requested) => requested ?? 30 };

test('an object without finalizers and grace period is removed immediately', (t) => {
  const object: AnyObject = { metadata: { name: 'a' } };
  t.is(run(object), 'remove');
  t.deepEqual(object, { metadata: { name: 'a' } });
});

test('a deletion without a grace period of its own does not wait', (t) => {
  t.is(run({ metadata: { name: 'a', deletionTimestamp: '2026-01-01T11:00:00Z' } }), 'remove');
});

test('an object with finalizers is marked once, with the time of the first request', (t) => {
  const object: AnyObject = { metadata: { name: 'a', generation: 4, finalizers: ['x/y'] } };
  t.is(run(object), 'mark');
  t.like(object.metadata, { deletionTimestamp: '2026-01-01T12:00:00Z', deletionGracePeriodSeconds: 0, generation: 5 });
  const before = JSON.stringify(object);
  t.is(planDeletion(object, { dryRun: false }, {}, { ...context, now: new Date(now.getTime() + 60_000) }), 'keep');
  t.is(JSON.stringify(object), before);
});

test('a second request may still change the propagation policy', (t) => {
  const object: AnyObject = { metadata: { name: 'a', finalizers: ['x/y'] } };
  run(object, { propagationPolicy: 'Foreground' });
  t.is(run(object, { propagationPolicy: 'Orphan' }), 'mark');
  t.deepEqual(object.metadata?.finalizers, ['x/y', 'orphan']);
});

test('a grace period sets a time in the future, may be shortened and never prolonged', (t) => {
  const object: AnyObject = { metadata: { name: 'a', generation: 1 } };
  t.is(run(object, {}, graceful), 'mark');
  t.like(object.metadata, { deletionTimestamp: '2026-01-01T12:00:30Z', deletionGracePeriodSeconds: 30, generation: 2 });
  t.is(run(object, {}, graceful), 'keep');
  t.is(run(object, { gracePeriodSeconds: 60 }, graceful), 'keep');
  t.is(run(object, { gracePeriodSeconds: 10 }, graceful), 'mark');
  t.like(object.metadata, { deletionTimestamp: '2026-01-01T12:00:10Z', deletionGracePeriodSeconds: 10, generation: 2 });
  t.is(run(object, { gracePeriodSeconds: -5 }, graceful), 'mark');
  t.like(object.metadata, { deletionTimestamp: '2026-01-01T12:00:01Z', deletionGracePeriodSeconds: 1 });
  t.is(run(object, { gracePeriodSeconds: 0 }, graceful), 'remove');
});

test('grace 0 with finalizers stays until they are gone', (t) => {
  const object: AnyObject = { metadata: { name: 'a', finalizers: ['x/y'] } };
  t.is(run(object, { gracePeriodSeconds: 20 }, graceful), 'mark');
  t.false(isReleased(object, graceful));
  t.is(run(object, { gracePeriodSeconds: 0 }, graceful), 'mark');
  t.is(object.metadata?.deletionGracePeriodSeconds, 0);
  t.false(isReleased(object, graceful));
  delete object.metadata?.finalizers;
  t.true(isReleased(object, graceful));
});

test('an object is kept while its kind delays the deletion, and beginDeletion runs exactly once', (t) => {
  let begun = 0;
  const strategy: Strategy = {
    heldBack: (object) => object.held,
    beginDeletion: (object) => {
      begun++;
      object.phase = `after ${object.metadata.deletionTimestamp}`;
    },
  };
  const object: AnyObject = { metadata: { name: 'a' }, held: true };
  t.is(run(object, {}, strategy), 'mark');
  t.is(object['phase'], 'after 2026-01-01T12:00:00Z');
  t.is(run(object, {}, strategy), 'keep');
  t.is(begun, 1);
  object['held'] = false;
  t.true(isReleased(object, strategy));
});
