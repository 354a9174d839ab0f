import { ConnectionError } from '@keelson/client';
import { type KubeObject, statusErrors } from '@keelson/core';
import { ConfigMap, Pod, Secret } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test from 'ava';
import { type ControllerDefinition, ownerReference, type Reconcile, type ReconcileRun } from '../src/index.ts';
import { KitPlane } from './support/kit-plane.ts';

/** A controller that keeps one secret per config map, from what it sees in its local copy. */
const oneSecretPer = (
  decide: (owner: ConfigMap, run: ReconcileRun, secrets: Secret[]) => Promise<undefined>,
  runs: number[],
): ControllerDefinition<ConfigMap> => ({
  name: 'secrets',
  kind: ConfigMap,
  owns: [Secret],
  reconcile: async (owner, run) => {
    const secrets = run.read(Secret).controlledBy(owner);
    runs.push(secrets.length);
    return decide(owner, run, secrets);
  },
});

const secretsOf = (run: Pick<ReconcileRun, 'client'>) => run.client.resource(Secret).namespace('n');
const owned = (owner: ConfigMap, extra: KubeObject['metadata'] = {}): Secret => ({
  metadata: { generateName: 'made-', ownerReferences: [ownerReference(ConfigMap, owner)], ...extra },
});
const turns = async () => {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

test('an object is not created twice while the watch is behind, however often the owner changes', async (t) => {
  const plane = await KitPlane.start(t);
  const runs: number[] = [];
  const create = async (owner: ConfigMap, run: ReconcileRun, secrets: Secret[]) => {
    if (secrets.length === 0) await secretsOf(run).create(owned(owner));
    return undefined;
  };
  await plane.run(t, [oneSecretPer(create, runs)]);
  plane.hold('secrets');
  const maps = plane.api.resource(ConfigMap).namespace('n');
  await maps.create({ metadata: { name: 'a' } });
  await until(() => plane.requests.includes('create secrets'));
  for (let time = 0; time < 5; time += 1) await maps.patch('a', 'merge', { data: { time: String(time) } });
  await turns();
  t.deepEqual(runs, [0], 'no run before the write is visible');
  plane.release('secrets');
  await until(() => runs.length > 1);
  t.deepEqual([...new Set(runs.slice(1))], [1]);
  t.is((await secretsOf({ client: plane.api }).list()).items.length, 1);
});

test('many keys wait for their writes at the same time without a warning about listeners', async (t) => {
  const plane = await KitPlane.start(t);
  const warnings: string[] = [];
  const record = ({ name }: Error) => warnings.push(name);
  process.on('warning', record);
  t.teardown(() => process.off('warning', record));
  const runs: number[] = [];
  const create = async (owner: ConfigMap, run: ReconcileRun, secrets: Secret[]) => {
    if (secrets.length === 0) await secretsOf(run).create(owned(owner));
    return undefined;
  };
  await plane.run(t, [oneSecretPer(create, runs)]);
  plane.hold('secrets');
  const maps = plane.api.resource(ConfigMap).namespace('n');
  for (let n = 0; n < 50; n += 1) await maps.create({ metadata: { name: `many-${n}` } });
  await until(() => plane.requests.filter((request) => request === 'create secrets').length === 50);
  await turns();
  plane.release('secrets');
  await until(() => runs.filter((count) => count === 1).length >= 50);
  t.false(warnings.includes('MaxListenersExceededWarning'));
});

test('without observed writes a controller creates twice while the watch is behind', async (t) => {
  const plane = await KitPlane.start(t);
  const runs: number[] = [];
  const create = async (owner: ConfigMap, _run: ReconcileRun, secrets: Secret[]) => {
    if (secrets.length === 0) await secretsOf({ client: plane.client }).create(owned(owner));
    return undefined;
  };
  await plane.run(t, [oneSecretPer(create, runs)]);
  plane.hold('secrets');
  const maps = plane.api.resource(ConfigMap).namespace('n');
  await maps.create({ metadata: { name: 'a' } });
  await until(() => runs.length === 1);
  await maps.patch('a', 'merge', { data: { time: '1' } });
  await until(() => runs.length === 2);
  t.deepEqual(runs, [0, 0]);
});

const writes: Record<string, (run: ReconcileRun, secret: Secret) => Promise<unknown>> = {
  update: (run, secret) => secretsOf(run).update({ ...secret, data: { v: 'Mg==' } }),
  patch: (run) => secretsOf(run).patch('s', 'merge', { data: { v: 'Mg==' } }),
  delete: (run) => secretsOf(run).delete('s'),
};
for (const [verb, write] of Object.entries(writes)) {
  test(`${verb}: the next run of the object sees the result`, async (t) => {
    const plane = await KitPlane.start(t);
    await secretsOf({ client: plane.api }).create({ metadata: { name: 's' }, data: { v: 'MQ==' } });
    const seen: unknown[] = [];
    const controller: ControllerDefinition<ConfigMap> = {
      name: 'writer',
      kind: ConfigMap,
      owns: [Secret],
      reconcile: async (_owner, run) => {
        const secret = run.read(Secret).get('n/s');
        seen.push(secret?.data?.['v']);
        if (secret?.data?.['v'] === 'MQ==') await write(run, secret);
      },
    };
    await plane.run(t, [controller]);
    plane.hold('secrets');
    const maps = plane.api.resource(ConfigMap).namespace('n');
    await maps.create({ metadata: { name: 'a' } });
    await until(() => plane.requests.includes(`${verb} secrets`));
    await maps.patch('a', 'merge', { data: { more: '1' } });
    await turns();
    t.deepEqual(seen, ['MQ==']);
    plane.release('secrets');
    await until(() => seen.length === 2);
    t.is(seen[1], verb === 'delete' ? undefined : 'Mg==');
  });
}

for (const gracePeriodSeconds of [30, 0]) {
  test(`a pod deleted with a grace period of ${gracePeriodSeconds} s is seen as deleted by the next run`, async (t) => {
    const plane = await KitPlane.start(t);
    const pods = plane.api.resource(Pod).namespace('n');
    const spec = { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] } as unknown as Pod['spec'];
    await pods.create({ metadata: { name: 'p' }, spec });
    const seen: string[] = [];
    const controller: ControllerDefinition<ConfigMap> = {
      name: 'deleter',
      kind: ConfigMap,
      owns: [Pod],
      reconcile: async (_owner, run) => {
        const pod = run.read(Pod).get('n/p');
        seen.push(pod === undefined ? 'gone' : pod.metadata?.deletionTimestamp ? 'deleting' : 'there');
        if (seen.length === 1) await run.client.resource(Pod).namespace('n').delete('p', { gracePeriodSeconds });
      },
    };
    await plane.run(t, [controller]);
    plane.hold('pods');
    const maps = plane.api.resource(ConfigMap).namespace('n');
    await maps.create({ metadata: { name: 'a' } });
    await until(() => plane.requests.includes('delete pods'));
    await maps.patch('a', 'merge', { data: { more: '1' } });
    await turns();
    t.deepEqual(seen, ['there']);
    plane.release('pods');
    await until(() => seen.length === 2);
    t.is(seen[1], gracePeriodSeconds === 0 ? 'gone' : 'deleting');
  });
}

test('deleteCollection: the next run sees none of the deleted objects', async (t) => {
  const plane = await KitPlane.start(t);
  for (const name of ['a', 'b', 'c']) await secretsOf({ client: plane.api }).create({ metadata: { name } });
  const seen: number[] = [];
  const controller: ControllerDefinition<ConfigMap> = {
    name: 'deleter',
    kind: ConfigMap,
    owns: [Secret],
    reconcile: async (_owner, run) => {
      seen.push(run.read(Secret).list().length);
      if (seen.length === 1) await secretsOf(run).deleteCollection();
    },
  };
  await plane.run(t, [controller]);
  plane.hold('secrets');
  const maps = plane.api.resource(ConfigMap).namespace('n');
  await maps.create({ metadata: { name: 'a' } });
  await until(() => plane.requests.includes('deletecollection secrets'));
  await maps.patch('a', 'merge', { data: { more: '1' } });
  await turns();
  plane.release('secrets');
  await until(() => seen.length === 2);
  t.deepEqual(seen, [3, 0]);
});

test('after a conflict the object is reconciled again with the new state, without a warning', async (t) => {
  const plane = await KitPlane.start(t);
  const seen: (string | undefined)[] = [];
  const controller: ControllerDefinition<ConfigMap> = {
    name: 'writer',
    kind: ConfigMap,
    reconcile: async (object, run) => {
      seen.push(object.data?.['by']);
      if (object.data?.['by'] === 'test') return;
      plane.hold('configmaps');
      await plane.api
        .resource(ConfigMap)
        .namespace('n')
        .patch('a', 'merge', { data: { by: 'test' } });
      await run.client
        .resource(ConfigMap)
        .namespace('n')
        .update({ ...object, data: { by: 'controller' } });
    },
  };
  await plane.run(t, [controller]);
  await plane.api
    .resource(ConfigMap)
    .namespace('n')
    .create({ metadata: { name: 'a' } });
  await until(() => plane.requests.includes('get configmaps'), 'the server is asked for the new state');
  plane.clock.advance(30_000);
  await turns();
  t.deepEqual(seen, [undefined]);
  plane.release('configmaps');
  await until(() => {
    plane.clock.advance(100);
    return seen.length === 2;
  });
  t.is(seen[1], 'test');
  t.deepEqual(plane.logger.lines, []);
});

test('a create without a response is not repeated when it was executed', async (t) => {
  const plane = await KitPlane.start(t);
  const runs: number[] = [];
  const create = async (owner: ConfigMap, run: ReconcileRun, secrets: Secret[]) => {
    if (secrets.length === 0) await secretsOf(run).create(owned(owner));
    return undefined;
  };
  let lost = false;
  plane.intercept = async (request, run) => {
    const answer = await run();
    if (request !== 'create secrets' || lost) return answer;
    lost = true;
    throw new ConnectionError('OutcomeUnknown', 'the connection was closed');
  };
  await plane.run(t, [oneSecretPer(create, runs)]);
  plane.hold('secrets');
  await plane.api
    .resource(ConfigMap)
    .namespace('n')
    .create({ metadata: { name: 'a' } });
  await until(() => plane.requests.filter((request) => request === 'list secrets').length === 2);
  plane.clock.advance(1_000);
  await turns();
  t.deepEqual(runs, [0]);
  plane.release('secrets');
  await until(() => {
    plane.clock.advance(100);
    return runs.length === 2;
  });
  t.deepEqual(runs, [0, 1]);
});

test('the next run does not wait for a rejected write or a dry run', async (t) => {
  const plane = await KitPlane.start(t);
  plane.intercept = async (request, run) => {
    if (request === 'create secrets') throw statusErrors.badRequest('no');
    return run();
  };
  let runs = 0;
  const reconcile: Reconcile<ConfigMap> = async (_owner, run) => {
    runs += 1;
    await secretsOf(run).patch('s', 'merge', { data: { v: 'Mg==' } }, { dryRun: true });
    if (runs === 1) await secretsOf(run).create({ metadata: { name: 'never' } });
  };
  await secretsOf({ client: plane.api }).create({ metadata: { name: 's' } });
  await plane.run(t, [{ name: 'writer', kind: ConfigMap, owns: [Secret], reconcile }]);
  plane.hold('secrets');
  await plane.api
    .resource(ConfigMap)
    .namespace('n')
    .create({ metadata: { name: 'a' } });
  await until(() => runs === 1);
  await until(() => {
    plane.clock.advance(100);
    return runs === 2;
  });
  t.deepEqual(
    plane.requests.filter((request) => request.startsWith('get') || request === 'list secrets'),
    ['list secrets'],
  );
});

test('a write that the informer never observes is reported after a minute, and the object is reconciled again', async (t) => {
  const plane = await KitPlane.start(t);
  const runs: number[] = [];
  const create = async (owner: ConfigMap, run: ReconcileRun) => {
    if (runs.length === 1) await secretsOf(run).create(owned(owner));
    return undefined;
  };
  await plane.run(t, [oneSecretPer(create, runs)]);
  plane.hold('secrets');
  const maps = plane.api.resource(ConfigMap).namespace('n');
  await maps.create({ metadata: { name: 'a' } });
  await until(() => plane.requests.includes('create secrets'));
  await maps.patch('a', 'merge', { data: { more: '1' } });
  await until(() => {
    plane.clock.advance(10_000);
    return runs.length === 2;
  });
  t.deepEqual(
    plane.logger.lines.map(({ message }) => message),
    ['writes are not visible in the local copy'],
  );
});
