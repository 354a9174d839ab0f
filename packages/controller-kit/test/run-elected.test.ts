import { noMetrics } from '@keelson/core/runtime';
import { ConfigMap } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test from 'ava';
import { type ControllerDefinition, ControllerManager, InformerPool, runElected } from '../src/index.ts';
import { KitPlane } from './support/kit-plane.ts';

const controller = (name: string, seen: string[]): ControllerDefinition<ConfigMap> => ({
  name,
  kind: ConfigMap,
  reconcile: async (_object, { key }) => void seen.push(`${name} ${key}`),
});

test('of two candidates one runs the controllers; the other starts when the first stops', async (t) => {
  const plane = await KitPlane.start(t);
  const { client, clock, logger } = plane;
  const host = { client, clock, logger, metrics: noMetrics };
  const seen: string[] = [];
  const candidate = (identity: string) =>
    runElected({
      ...{ client, clock, logger, identity, namespace: 'n', name: 'test' },
      services: () => [new ControllerManager({ ...host, controllers: [controller(identity, seen)] })],
    });
  const maps = plane.api.resource(ConfigMap).namespace('n');
  await maps.create({ metadata: { name: 'a' } });
  const first = candidate('first');
  await first.start();
  t.teardown(() => first.stop());
  await until(() => seen.length === 1);
  const second = candidate('second');
  await second.start();
  t.teardown(() => second.stop());
  await maps.create({ metadata: { name: 'b' } });
  await until(() => seen.length === 2);
  t.deepEqual(seen, ['first n/a', 'first n/b']);
  await first.stop();
  await until(() => {
    clock.advance(1_000);
    return seen.length === 4;
  });
  t.deepEqual(seen.slice(2).sort(), ['second n/a', 'second n/b']);
});

test('managers with one pool share informers, which run until the last manager has stopped', async (t) => {
  const plane = await KitPlane.start(t);
  const { client, clock, logger } = plane;
  const host = { client, clock, logger, metrics: noMetrics };
  const informers = new InformerPool(host);
  const seen: string[] = [];
  const manager = (name: string) =>
    new ControllerManager({ ...host, informers, controllers: [controller(name, seen)] });
  const [first, second] = [manager('first'), manager('second')];
  t.teardown(() => Promise.all([first.stop(), second.stop()]));
  await Promise.all([first.start(), second.start()]);
  const maps = plane.api.resource(ConfigMap).namespace('n');
  await maps.create({ metadata: { name: 'a' } });
  await until(() => seen.length === 2);
  t.is(plane.watches.get('configmaps'), 1);
  const guest = informers.acquire(ConfigMap);
  t.is(guest.list().length, 1);
  await informers.release(guest);
  await first.stop();
  await maps.create({ metadata: { name: 'b' } });
  await until(() => seen.length === 3);
  t.is(seen[2], 'second n/b');
  const third = manager('third');
  t.teardown(() => third.stop());
  await third.start();
  await until(() => seen.length === 5, 'a manager that starts later reconciles what exists');
  t.is(plane.watches.get('configmaps'), 1);
  await Promise.all([second.stop(), third.stop()]);
  t.is(informers.size, 0);
});

test('with freeze a controller that modifies what it has read fails', async (t) => {
  const plane = await KitPlane.start(t);
  const { client, clock, logger } = plane;
  const modifying: ControllerDefinition<ConfigMap> = {
    name: 'modifying',
    kind: ConfigMap,
    reconcile: async (object) => {
      (object.data as Record<string, string>)['v'] = '2';
    },
  };
  const host = { client, clock, logger, metrics: noMetrics };
  const manager = new ControllerManager({ ...host, freeze: true, controllers: [modifying] });
  t.teardown(() => manager.stop());
  await manager.start();
  await plane.api
    .resource(ConfigMap)
    .namespace('n')
    .create({ metadata: { name: 'a' }, data: { v: '1' } });
  const record = await until(() => manager.trace('modifying')[0]);
  t.regex(record.error ?? '', /read only property/);
});
