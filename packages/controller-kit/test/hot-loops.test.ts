import type { KubeObject } from '@keelson/core';
import { FakeClock } from '@keelson/core/runtime';
import { ConfigMap, Secret } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test from 'ava';
import { ControllerRunner } from '../src/controller-runner.ts';
import { HotLoops, maxOwnRuns } from '../src/hot-loops.ts';
import type { ControllerDefinition } from '../src/index.ts';
import { ReconcileTrace } from '../src/reconcile-trace.ts';
import { SharedInformer } from '../src/shared-informer.ts';
import { KitPlane } from './support/kit-plane.ts';

const turns = async () => {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

test('a controller that is triggered only by its own writes is delayed after 20 runs, and a warning names the writes', async (t) => {
  const plane = await KitPlane.start(t);
  const counted: string[] = [];
  const metrics = {
    counter: ({ name }: { name: string }) => ({
      add: (_: number, labels = {}) => counted.push(`${name} ${JSON.stringify(labels)}`),
    }),
    gauge: () => ({ set: () => {}, add: () => {} }),
    histogram: () => ({ observe: () => {} }),
    text: async () => '',
  };
  let runs = 0;
  const controller: ControllerDefinition<ConfigMap> = {
    name: 'spinner',
    kind: ConfigMap,
    reconcile: async (_object, { client }) => {
      runs += 1;
      await client
        .resource(ConfigMap)
        .namespace('n')
        .patch('a', 'merge', { data: { runs: String(runs) } });
    },
  };
  const manager = await plane.run(t, [controller], metrics);
  await plane.api
    .resource(ConfigMap)
    .namespace('n')
    .create({ metadata: { name: 'a' } });
  await until(() => plane.logger.lines.length === 1);
  await turns();
  t.is(runs, maxOwnRuns + 1, 'the first run was triggered by the test');
  t.like(plane.logger.lines[0], {
    message: 'a controller is triggered only by its own writes and is delayed',
    fields: { component: 'spinner', key: 'n/a', runs: 20, seconds: 1, writes: ['patch configmaps n/a'] },
  });
  t.true(counted.includes('keelson_controller_hot_loops_total {"controller":"spinner"}'));
  const events = plane.api.dynamic({ group: '', version: 'v1', resource: 'events' }).namespace('n');
  const event = await until(async () => (await events.list()).items[0] as KubeObject | undefined);
  t.like(event, {
    ...{ type: 'Warning', reason: 'HotLoop', involvedObject: { name: 'a' } },
    message: '20 consecutive runs of spinner were triggered only by its own writes: patch configmaps n/a',
  });
  plane.clock.advance(999);
  await turns();
  t.is(runs, 21);
  plane.clock.advance(1);
  await until(() => plane.logger.lines.length === 2);
  t.is(plane.logger.lines[1]?.fields['seconds'], 2, 'the delay grows');
  const last = manager.trace('spinner').at(-1);
  t.like(last, {
    ...{ key: 'n/a', requeue: 'hot loop', againAfterMs: 2_000, writeCount: 1 },
    triggers: [{ change: 'updated', resource: 'configmaps', key: 'n/a' }],
    writes: [{ verb: 'patch', resource: 'configmaps', key: 'n/a' }],
  });
  await plane.api
    .resource(ConfigMap)
    .namespace('n')
    .patch('a', 'merge', { data: { by: 'test' } });
  await until(() => runs === 22 + 21, 'a change by others is processed immediately, and the count begins again');
});

test('a controller that converges by its own writes in less than 20 runs is not delayed', async (t) => {
  const plane = await KitPlane.start(t);
  const controller: ControllerDefinition<ConfigMap> = {
    name: 'counter',
    kind: ConfigMap,
    reconcile: async ({ data }, { client }) => {
      const step = Number(data?.['step'] ?? 0);
      if (step < 19)
        await client
          .resource(ConfigMap)
          .namespace('n')
          .patch('a', 'merge', { data: { step: String(step + 1) } });
    },
  };
  await plane.run(t, [controller]);
  const maps = plane.api.resource(ConfigMap).namespace('n');
  await maps.create({ metadata: { name: 'a' } });
  await until(async () => (await maps.get('a')).data?.['step'] === '19');
  await turns();
  t.deepEqual(plane.logger.lines, []);
});

test('a run without writes, a long pause or a change by another client ends the sequence', (t) => {
  const clock = new FakeClock();
  const loops = new HotLoops(clock);
  const spin = () => Array.from({ length: 19 }, () => loops.ran('k', true, true)).every((hot) => hot === undefined);
  t.true(spin());
  loops.ran('k', true, false);
  t.true(spin());
  loops.ran('k', true, true, 1_000);
  t.true(spin());
  t.is(loops.delayOf('k', false), 0);
  t.true(spin());
  t.deepEqual(loops.ran('k', true, true), { runs: 20, delayMs: 1_000 });
  const delays = Array.from({ length: 8 }, () => loops.ran('k', true, true)?.delayMs);
  t.deepEqual(
    delays,
    [2, 4, 8, 16, 32, 60, 60, 60].map((seconds) => seconds * 1_000),
  );
  t.is(loops.delayOf('k', true), 60_000);
  t.is(loops.delayOf('other', true), 0);
  loops.ran('k', true, false);
  t.is(loops.size, 0);
});

test('the trace contains the last runs with triggers, writes, failures and the reason of a repetition', async (t) => {
  const plane = await KitPlane.start(t);
  const controller: ControllerDefinition<ConfigMap> = {
    name: 'traced',
    kind: ConfigMap,
    owns: [Secret],
    reconcile: async ({ data }, { client }) => {
      if (data?.['fail']) throw new Error('no way');
      await client
        .resource(Secret)
        .namespace('n')
        .create({ metadata: { name: 's' } });
      return { againAfterMs: 5_000 };
    },
  };
  const manager = await plane.run(t, [controller]);
  const maps = plane.api.resource(ConfigMap).namespace('n');
  await maps.create({ metadata: { name: 'a' } });
  await until(() => manager.trace('traced').length === 1);
  await maps.patch('a', 'merge', { data: { fail: 'yes' } });
  await until(() => manager.trace('traced').length === 2);
  const [first, second] = manager.trace('traced');
  t.like(first, {
    ...{ key: 'n/a', startedAt: plane.clock.now(), durationMs: 0, requeue: 'requested', againAfterMs: 5_000 },
    ...{ writeCount: 1, writes: [{ verb: 'create', resource: 'secrets', key: 'n/s' }] },
    triggers: [{ change: 'added', resource: 'configmaps', key: 'n/a' }],
  });
  t.like(second, { error: 'no way', requeue: 'failed', writeCount: 0 });
  t.deepEqual(manager.trace('unknown'), []);
  const trace = new ReconcileTrace(3);
  for (const key of ['a', 'b', 'c', 'd'])
    trace.add({ key, startedAt: 0, durationMs: 0, triggers: [], writes: [], writeCount: 0 });
  t.deepEqual(
    trace.records.map(({ key }) => key),
    ['b', 'c', 'd'],
  );
});

test('no state is kept for objects that were deleted', async (t) => {
  const plane = await KitPlane.start(t);
  const deleted = new Set<string>();
  const definition: ControllerDefinition<ConfigMap> = {
    name: 'memory',
    kind: ConfigMap,
    workers: 4,
    reconcile: async (object, { client, key }) => {
      if (object.data?.['done'] === undefined)
        await client
          .resource(ConfigMap)
          .namespace('n')
          .patch(key.slice(2), 'merge', { data: { done: 'yes' } });
    },
    deleted: async ({ key }) => void deleted.add(key),
  };
  const { client, clock, logger } = plane;
  const metrics = { counter: () => none, gauge: () => none, histogram: () => none, text: async () => '' };
  const host = { client, clock, logger, metrics };
  const informer = new SharedInformer(ConfigMap, host);
  const runner = new ControllerRunner(definition, new Map([['/v1/configmaps', informer]]), host, { record: () => {} });
  t.teardown(async () => {
    await runner.stop();
    await informer.informer.stop();
  });
  await runner.start(new AbortController().signal);
  const maps = plane.api.resource(ConfigMap).namespace('n');
  const names = Array.from({ length: 50 }, (_, index) => `m${index}`);
  for (const name of names) await maps.create({ metadata: { name } });
  await until(async () => (await maps.list()).items.every(({ data }) => data?.['done'] === 'yes'));
  for (const name of names) await maps.delete(name);
  await until(() => deleted.size === names.length && runner.remembered === 0);
  t.is(informer.waiting, 0);
});

const none = { add: () => {}, set: () => {}, observe: () => {} };
