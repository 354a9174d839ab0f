import type { KubeObject } from '@keelson/core';
import { noMetrics } from '@keelson/core/runtime';
import { ConfigMap, Node, Pod, ReplicaSet, Secret } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test from 'ava';
import {
  type AnyController,
  type ControllerDefinition,
  ControllerManager,
  isControlledBy,
  ownerReference,
  relatedKind,
} from '../src/index.ts';
import { KitPlane } from './support/kit-plane.ts';

const map = (name: string, data: Record<string, string> = {}): ConfigMap => ({ metadata: { name }, data });
const secret = (name: string, metadata: KubeObject['metadata'] = {}): Secret => ({ metadata: { name, ...metadata } });

test('objects that exist, that change and that are deleted are reconciled; controllers of one kind share a watch', async (t) => {
  const plane = await KitPlane.start(t);
  const maps = plane.api.resource(ConfigMap).namespace('n');
  await maps.create(map('before'));
  const seen: string[] = [];
  const definition = (name: string): ControllerDefinition<ConfigMap> => ({
    name,
    kind: ConfigMap,
    reconcile: async (object) => void seen.push(`${name} ${object.metadata?.name} ${object.data?.['v'] ?? ''}`),
    deleted: async ({ key }) => void seen.push(`${name} deleted ${key}`),
  });
  const manager = await plane.run(t, [definition('a'), definition('b')]);
  await until(() => seen.includes('a before ') && seen.includes('b before '));
  await maps.create(map('after', { v: '1' }));
  await until(() => seen.includes('a after 1') && seen.includes('b after 1'));
  await maps.patch('after', 'merge', { data: { v: '2' } });
  await until(() => seen.includes('a after 2') && seen.includes('b after 2'));
  await maps.delete('after');
  await until(() => seen.includes('a deleted n/after') && seen.includes('b deleted n/after'));
  t.is(plane.watches.get('configmaps'), 1);
  await manager.stop();
  const count = seen.length;
  await maps.create(map('late'));
  await new Promise((resolve) => setImmediate(resolve));
  t.is(seen.length, count, 'nothing runs after the stop');
});

test('owns: a change of an owned object reconciles its owner, also when the owner reference is removed', async (t) => {
  const plane = await KitPlane.start(t);
  const runs = new Map<string, number>();
  const count = (key: string) => runs.get(key) ?? 0;
  const controller: ControllerDefinition<ConfigMap> = {
    name: 'owner',
    kind: ConfigMap,
    owns: [Secret],
    reconcile: async (_object, { key }) => void runs.set(key, count(key) + 1),
  };
  await plane.run(t, [controller]);
  const owner = await plane.api.resource(ConfigMap).namespace('n').create(map('owner'));
  await plane.api.resource(ConfigMap).namespace('n').create(map('other'));
  await until(() => count('n/owner') === 1 && count('n/other') === 1);
  const secrets = plane.api.resource(Secret).namespace('n');
  await secrets.create(secret('s', { ownerReferences: [ownerReference(ConfigMap, owner)] }));
  await until(() => count('n/owner') === 2);
  await secrets.patch('s', 'merge', { metadata: { ownerReferences: null } });
  await until(() => count('n/owner') === 3);
  await secrets.patch('s', 'merge', { metadata: { labels: { a: 'b' } } });
  await secrets.create(secret('t', { ownerReferences: [{ ...ownerReference(ReplicaSet, owner), name: 'other' }] }));
  await secrets.create(secret('u', { ownerReferences: [ownerReference(ConfigMap, owner)] }));
  await until(() => count('n/owner') === 4);
  t.is(count('n/other'), 1, 'neither an object without owner nor one with an owner of another kind leads to a run');
});

test('owns: a cluster-scoped owner is found by its name alone', async (t) => {
  const plane = await KitPlane.start(t);
  const runs: string[] = [];
  const controller: ControllerDefinition<Node> = {
    name: 'nodes',
    kind: Node,
    owns: [ConfigMap],
    reconcile: async (_object, { key }) => void runs.push(key),
  };
  await plane.run(t, [controller]);
  const node = await plane.api.resource(Node).create({ metadata: { name: 'n1' } });
  await until(() => runs.length === 1);
  const owned: ConfigMap = { metadata: { name: 'm', ownerReferences: [ownerReference(Node, node)] } };
  await plane.api.resource(ConfigMap).namespace('n').create(owned);
  await until(() => runs.length === 2);
  t.deepEqual(runs, ['n1', 'n1']);
});

test('related: its keys are reconciled; reads and index functions see the state of the change', async (t) => {
  const plane = await KitPlane.start(t);
  const byTarget = (object: ConfigMap) => (object.data?.['secret'] ? [object.data['secret']] : []);
  const runs: string[] = [];
  const controller: ControllerDefinition<ConfigMap> = {
    name: 'maps',
    kind: ConfigMap,
    related: [
      relatedKind(Secret, (changed, _before, read) =>
        read(ConfigMap)
          .by(byTarget, changed.metadata?.name ?? '')
          .map(({ metadata }) => `${metadata?.namespace}/${metadata?.name}`),
      ),
    ],
    reconcile: async (_object, { key, read }) => void runs.push(`${key} ${read(Secret).inNamespace('n').length}`),
  };
  await plane.run(t, [controller]);
  const maps = plane.api.resource(ConfigMap).namespace('n');
  await maps.create(map('a', { secret: 's' }));
  await maps.create(map('b', { secret: 'other' }));
  await until(() => runs.length === 2);
  await plane.api.resource(Secret).namespace('n').create(secret('s'));
  await until(() => runs.includes('n/a 1'));
  await maps.patch('b', 'merge', { data: { secret: 't' } });
  await until(() => runs.length === 4);
  await plane.api.resource(Secret).namespace('n').create(secret('t'));
  await until(() => runs.includes('n/b 2'));
  t.is(runs.length, 5);
});

test('a local copy keeps the fields that its controller reads; others have whole objects', async (t) => {
  const plane = await KitPlane.start(t);
  const namesOnly = ({ metadata = {} }: Secret): Secret => ({ metadata });
  const read = new Map<string, Secret | undefined>();
  const reader = (name: string, keep?: typeof namesOnly): ControllerDefinition<ConfigMap> => ({
    name,
    kind: ConfigMap,
    related: [relatedKind(Secret, () => [], { keep })],
    reconcile: async (_object, run) => void read.set(name, run.read(Secret).get('n/s')),
  });
  await plane.api
    .resource(Secret)
    .namespace('n')
    .create({ ...secret('s'), type: 'example.com/t' });
  await plane.run(t, [reader('a', namesOnly), reader('b', namesOnly), reader('whole')]);
  await plane.api.resource(ConfigMap).namespace('n').create(map('a'));
  await until(() => read.size === 3);
  t.is(read.get('a')?.metadata?.name, 's');
  t.false('type' in (read.get('a') ?? {}));
  t.is(read.get('b'), read.get('a'));
  t.is(read.get('whole')?.type, 'example.com/t');
  t.is(plane.watches.get('secrets'), 2);
});

test('a kind that the controller does not declare cannot be read, also when another controller declares it', async (t) => {
  const plane = await KitPlane.start(t);
  let message = '';
  const reader: ControllerDefinition<ConfigMap> = {
    name: 'reader',
    kind: ConfigMap,
    reconcile: async (_object, { read }) => {
      message = t.throws(() => read(Secret))?.message ?? '';
    },
  };
  const other: ControllerDefinition<Secret> = { name: 'other', kind: Secret, reconcile: async () => undefined };
  await plane.run(t, [reader, other]);
  await plane.api.resource(ConfigMap).namespace('n').create(map('a'));
  await until(() => message !== '');
  t.is(message, 'the controller reader does not declare that it reads secrets; add relatedKind(Secret) to "related"');
});

test('an index function of a run is rejected after 32 indexes, so that closures do not use up the memory', async (t) => {
  const plane = await KitPlane.start(t);
  let failure: Error | undefined;
  const controller: ControllerDefinition<ConfigMap> = {
    name: 'closures',
    kind: ConfigMap,
    reconcile: async (_object, { read }) => {
      const constant = () => ['x'];
      for (let time = 0; time < 100; time += 1) t.is(read(ConfigMap).by(constant, 'x').length, 1);
      failure = t.throws(() => {
        for (let time = 0; time < 40; time += 1) read(ConfigMap).by(() => ['x'], 'x');
      });
    },
  };
  await plane.run(t, [controller]);
  await plane.api.resource(ConfigMap).namespace('n').create(map('a'));
  await until(() => failure !== undefined);
  t.is(failure?.message, 'more than 32 index functions for configmaps; pass constants to by()');
});

test('select limits the informer of a kind by selectors and to metadata', async (t) => {
  const plane = await KitPlane.start(t);
  const seen: unknown[] = [];
  const controller: ControllerDefinition<ConfigMap> = {
    name: 'selected',
    kind: ConfigMap,
    select: { fieldSelector: 'metadata.name=mine', metadataOnly: true },
    reconcile: async (object) => void seen.push([object.metadata?.name, object.data, object.kind]),
  };
  await plane.run(t, [controller]);
  const maps = plane.api.resource(ConfigMap).namespace('n');
  await maps.create(map('other', { v: '1' }));
  await maps.create(map('mine', { v: '1' }));
  await until(() => seen.length === 1);
  t.deepEqual(seen, [['mine', undefined, 'ConfigMap']]);
});

test('names of controllers are unique, and one controller has one selection of a kind', async (t) => {
  const { client, clock, logger } = await KitPlane.start(t);
  const definition: ControllerDefinition<ConfigMap> = {
    name: 'twice',
    kind: ConfigMap,
    reconcile: async () => undefined,
  };
  const create = (...controllers: ControllerDefinition<ConfigMap>[]) =>
    new ControllerManager({ controllers, client, clock, logger, metrics: noMetrics });
  t.throws(() => create(definition, definition), { message: 'two controllers have the name twice' });
  const related = [relatedKind(ConfigMap)];
  t.throws(() => create({ ...definition, select: { labelSelector: 'a=b' }, related }), {
    message: 'the controller twice declares configmaps with different selections',
  });
});

test('a kind that cannot be listed delays only its own controllers, and the manager reports what it waits for', async (t) => {
  const plane = await KitPlane.start(t);
  let broken = true;
  plane.intercept = async (request, run) => {
    if (broken && request === 'list secrets') throw new Error('the disk is damaged');
    return run();
  };
  const seen: string[] = [];
  const controllers: AnyController[] = [
    { name: 'maps', kind: ConfigMap, reconcile: async (_object, { key }) => void seen.push(`map ${key}`) },
    { name: 'secrets', kind: Secret, reconcile: async (_object, { key }) => void seen.push(`secret ${key}`) },
  ];
  const { client, clock, logger } = plane;
  const manager = new ControllerManager({ ...{ controllers, client, clock, logger }, metrics: noMetrics });
  t.teardown(() => manager.stop());
  const started = manager.start();
  await plane.api.resource(ConfigMap).namespace('n').create(map('a'));
  await plane.api.resource(Secret).namespace('n').create(secret('s'));
  await until(() => seen.includes('map n/a'));
  t.is(manager.waitingFor(), 'the first list of secrets');
  broken = false;
  await until(() => {
    clock.advance(1_000);
    return seen.includes('secret n/s');
  });
  await started;
  t.is(manager.waitingFor(), undefined);
});

test('a controller that needs objects lists no other kind before the first of them exists', async (t) => {
  const plane = await KitPlane.start(t);
  const requests: string[] = [];
  plane.intercept = async (request, run) => {
    requests.push(request);
    return run();
  };
  const maps = plane.api.resource(ConfigMap).namespace('n');
  const secrets = plane.api.resource(Secret).namespace('n');
  await secrets.create(secret('before'));
  const seen: string[] = [];
  const controller: ControllerDefinition<ConfigMap> = {
    name: 'maps',
    kind: ConfigMap,
    needsObjects: true,
    related: [relatedKind(Secret, () => ['n/a'])],
    reconcile: async (_object, { key, read }) => void seen.push(`${key}: ${read(Secret).list().length}`),
  };
  const manager = await plane.run(t, [controller]);
  const listsOfSecrets = () => requests.filter((request) => request === 'list secrets').length;
  t.is(manager.waitingFor(), undefined, 'it does not delay the start');
  t.deepEqual([seen, listsOfSecrets()], [[], 0]);
  const other = await plane.run(t, [{ ...controller, name: 'other' }]);
  await other.stop();
  await maps.create(map('a'));
  await until(() => seen.length > 0);
  t.deepEqual([seen[0], listsOfSecrets()], ['n/a: 1', 1]);
  await secrets.create(secret('after'));
  await until(() => seen.at(-1) === 'n/a: 2');
});

test('stop aborts the signal of a running reconcile and waits for it', async (t) => {
  const plane = await KitPlane.start(t);
  const order: string[] = [];
  let finish = () => {};
  const controller: ControllerDefinition<ConfigMap> = {
    name: 'slow',
    kind: ConfigMap,
    reconcile: async (_object, { signal }) => {
      order.push('began');
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      order.push('ended');
    },
  };
  const manager = await plane.run(t, [controller]);
  await plane.api.resource(ConfigMap).namespace('n').create(map('a'));
  await until(() => order.length === 1);
  const stopped = manager.stop().then(() => order.push('stopped'));
  await new Promise((resolve) => setImmediate(resolve));
  t.deepEqual(order, ['began']);
  finish();
  await stopped;
  t.deepEqual(order, ['began', 'ended', 'stopped']);
});

test('a stop during the start aborts the start', async (t) => {
  const plane = await KitPlane.start(t);
  plane.intercept = async () => {
    throw new Error('no answer');
  };
  const { client, clock, logger } = plane;
  const controllers: ControllerDefinition<Pod>[] = [
    { name: 'pods', kind: Pod, reconcile: async () => t.fail('nothing may run') as undefined },
  ];
  const manager = new ControllerManager({ ...{ controllers, client, clock, logger }, metrics: noMetrics });
  const started = manager.start();
  await manager.stop();
  await t.notThrowsAsync(started);
});

test('events are created with the name of the controller as their source, and repeated ones are counted', async (t) => {
  const plane = await KitPlane.start(t);
  const controller: ControllerDefinition<ConfigMap> = {
    name: 'event-controller',
    kind: ConfigMap,
    reconcile: async (object, { event }) => void event(object, 'Warning', 'Odd', 'the object is odd'),
  };
  await plane.run(t, [controller]);
  const object = await plane.api.resource(ConfigMap).namespace('n').create(map('a'));
  const events = plane.api.dynamic({ group: '', version: 'v1', resource: 'events' }).namespace('n');
  await until(async () => (await events.list()).items.length === 1);
  await plane.api
    .resource(ConfigMap)
    .namespace('n')
    .patch('a', 'merge', { data: { v: '2' } });
  const event = await until(async () => {
    const [found] = (await events.list()).items as (KubeObject & Record<string, unknown>)[];
    return found?.['count'] === 2 && found;
  });
  t.like(event, {
    ...{ type: 'Warning', reason: 'Odd', message: 'the object is odd', source: { component: 'event-controller' } },
    involvedObject: { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'n', name: 'a', uid: object.metadata?.uid },
  });
});

test('an object without a controller reference has no controlling owner', (t) => {
  t.false(isControlledBy({ metadata: {} }, { metadata: {} }));
});
