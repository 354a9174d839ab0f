import {
  type ApiClient,
  isStatusError,
  type KubeObject,
  type ObjectOf,
  type ResourceClient,
  StatusReason,
} from '@keelson/core';
import { ConfigMap, Event, Namespace, Secret } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import anyTest, { type TestFn } from 'ava';
import { startTestPlane, type TestPlane } from './support/test-plane.ts';

const test = anyTest as TestFn<{
  plane: TestPlane;
  maps: ResourceClient<ConfigMapObject>;
  secrets: ResourceClient<KubeObject>;
}>;
type ConfigMapObject = ObjectOf<typeof ConfigMap>;

let plane: TestPlane;

test.before(async () => {
  plane = await startTestPlane();
});

test.after.always(() => plane.close());

test.beforeEach(async (t) => {
  t.context.plane = plane;
  const namespace = `n-${Math.random().toString(36).slice(2)}`;
  await t.context.plane.api
    .dynamic({ group: '', version: 'v1', resource: 'namespaces' })
    .create({ metadata: { name: namespace } });
  t.context.maps = t.context.plane.client(ConfigMap).namespace(namespace) as ResourceClient<ConfigMapObject>;
  t.context.secrets = t.context.plane.client(Secret).namespace(namespace) as ResourceClient<KubeObject>;
});

function ownedBy(owner: KubeObject, name: string, blockOwnerDeletion = false): KubeObject {
  const { name: ownerName = '', uid = '' } = owner.metadata ?? {};
  return {
    metadata: {
      name,
      ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: ownerName, uid, blockOwnerDeletion }],
    },
  };
}

const gone = async (client: ResourceClient<KubeObject>, name: string): Promise<boolean> => {
  try {
    await client.get(name);
    return false;
  } catch (error) {
    if (isStatusError(error, StatusReason.NotFound)) return true;
    throw error;
  }
};

test('a chain of dependents is deleted after its first owner', async (t) => {
  const { maps, secrets } = t.context;
  const first = await maps.create({ metadata: { name: 'first' } });
  const second = await maps.create(ownedBy(first, 'second'));
  await secrets.create(ownedBy(second, 'third'));
  await maps.delete('first');
  await until(() => gone(maps, 'second'));
  await until(() => gone(secrets, 'third'));
  t.pass();
});

test('an object with one owner left stays and loses the reference to the other', async (t) => {
  const { maps, secrets } = t.context;
  const [stays, goes] = [
    await maps.create({ metadata: { name: 'stays' } }),
    await maps.create({ metadata: { name: 'goes' } }),
  ];
  const references = [
    ...(ownedBy(stays, '').metadata?.ownerReferences ?? []),
    ...(ownedBy(goes, '').metadata?.ownerReferences ?? []),
  ];
  await secrets.create({ metadata: { name: 'shared', ownerReferences: references } });
  await maps.delete('goes');
  await until(async () => (await secrets.get('shared')).metadata?.ownerReferences?.length === 1);
  t.is((await secrets.get('shared')).metadata?.ownerReferences?.[0]?.uid, stays.metadata?.uid);
});

test('an owner of the same name with another uid is not the owner', async (t) => {
  const { maps, secrets } = t.context;
  const owner = await maps.create({ metadata: { name: 'owner' } });
  const stale: KubeObject = { ...owner, metadata: { ...owner.metadata, uid: '00000000-0000-4000-8000-000000000000' } };
  await secrets.create(ownedBy(stale, 'impostor'));
  await until(() => gone(secrets, 'impostor'));
  t.false(await gone(maps, 'owner'));
});

test('a reference with the uid of an owner but another name or kind is dangling', async (t) => {
  const { maps, secrets } = t.context;
  const owner = await maps.create({ metadata: { name: 'owner' } });
  await maps.create(ownedBy(owner, 'right'));
  const { uid } = owner.metadata ?? {};
  await maps.create(ownedBy({ metadata: { name: 'misspelt', uid } } as KubeObject, 'wrong-name'));
  const [reference] = ownedBy(owner, 'x').metadata?.ownerReferences ?? [];
  const ownerReferences = [{ ...reference, kind: 'Secret' }];
  await secrets.create({ metadata: { name: 'wrong-kind', ownerReferences } } as KubeObject);
  await until(() => gone(maps, 'wrong-name'));
  await until(() => gone(secrets, 'wrong-kind'));
  t.false(await gone(maps, 'right'));
});

test('an owner in another namespace, or a namespaced owner of a cluster-scoped object, is reported', async (t) => {
  const { maps, plane } = t.context;
  const owner = await maps.create({ metadata: { name: 'far-owner' } });
  const { uid, namespace } = owner.metadata ?? {};
  const others = plane.client(ConfigMap).namespace('default');
  await others.create(ownedBy(owner, 'far') as ConfigMapObject);
  await until(() => gone(others as ResourceClient<KubeObject>, 'far'));
  const name = `of-${namespace}`;
  const { ownerReferences = [] } = ownedBy(owner, name).metadata ?? {};
  await plane.client(Namespace).create({ metadata: { name, ownerReferences } });
  const messages = async () =>
    (await plane.client(Event).namespace('default').list()).items
      .filter(({ reason, message }) => reason === 'OwnerRefInvalidNamespace' && message?.includes(uid ?? ''))
      .map(({ involvedObject, message }) => `${involvedObject.kind} ${involvedObject.name}: ${message}`)
      .sort();
  const text = (place: string) =>
    `ownerRef [v1/ConfigMap, namespace: ${place}, name: far-owner, uid: ${uid}] does not exist in namespace "${place}"`;
  await until(async () => (await messages()).length === 2);
  t.deepEqual(await messages(), [`ConfigMap far: ${text('default')}`, `Namespace ${name}: ${text('')}`]);
  t.truthy(await plane.client(Namespace).get(name));
});

test('foreground deletion waits for dependents that block it', async (t) => {
  const { maps, secrets } = t.context;
  const owner = await maps.create({ metadata: { name: 'owner' } });
  const held = ownedBy(owner, 'held', true);
  await secrets.create({ ...held, metadata: { ...held.metadata, finalizers: ['example.com/hold'] } });
  await maps.delete('owner', { propagationPolicy: 'Foreground' });
  await until(async () => (await secrets.get('held')).metadata?.deletionTimestamp !== undefined);
  t.deepEqual((await maps.get('owner')).metadata?.finalizers, ['foregroundDeletion']);
  await secrets.patch('held', 'merge', { metadata: { finalizers: null } });
  await until(() => gone(maps, 'owner'));
});

test('foreground deletion does not wait for dependents that do not block it', async (t) => {
  const { maps, secrets } = t.context;
  const owner = await maps.create({ metadata: { name: 'owner' } });
  const held = ownedBy(owner, 'held');
  await secrets.create({ ...held, metadata: { ...held.metadata, finalizers: ['example.com/hold'] } });
  await maps.delete('owner', { propagationPolicy: 'Foreground' });
  await until(() => gone(maps, 'owner'));
  await secrets.patch('held', 'merge', { metadata: { finalizers: null } });
  await until(() => gone(secrets, 'held'));
  t.pass();
});

test('orphaning removes the owner references before the owner is removed', async (t) => {
  const { maps, secrets } = t.context;
  const owner = await maps.create({ metadata: { name: 'owner' } });
  for (let i = 0; i < 20; i += 1) await secrets.create(ownedBy(owner, `kept-${i}`));
  await maps.delete('owner', { propagationPolicy: 'Orphan' });
  await until(() => gone(maps, 'owner'));
  const kept = await secrets.list();
  t.is(kept.items.length, 20);
  t.true(kept.items.every((item) => item.metadata?.ownerReferences === undefined));
});

test('a dependent that is created after its owner was deleted is deleted as well', async (t) => {
  const { maps, secrets } = t.context;
  const owner = await maps.create({ metadata: { name: 'owner' } });
  await maps.delete('owner');
  await secrets.create(ownedBy(owner, 'late'));
  await until(() => gone(secrets, 'late'));
  t.pass();
});

test('a reference to a kind that is not served keeps the object', async (t) => {
  const { maps, secrets } = t.context;
  await secrets.create({
    metadata: {
      name: 'foreign',
      ownerReferences: [{ apiVersion: 'example.com/v1', kind: 'Unknown', name: 'x', uid: 'some-uid' }],
    },
  });
  // Something that is collected afterwards shows that the collector has had its turn.
  const owner = await maps.create({ metadata: { name: 'owner' } });
  await secrets.create(ownedBy(owner, 'probe'));
  await maps.delete('owner');
  await until(() => gone(secrets, 'probe'));
  t.false(await gone(secrets, 'foreign'));
});

test('all dependents of an owner are deleted when it was observed with the first of them', async (t) => {
  const { maps, secrets } = t.context;
  const owner = await maps.create({ metadata: { name: 'owner' } });
  const names = Array.from({ length: 20 }, (_, i) => `dependent-${i}`);
  for (const name of names.slice(0, 10)) await secrets.create(ownedBy(owner, name));
  await Promise.all([
    maps.delete('owner'),
    ...names.slice(10).map((name) => secrets.create(ownedBy(owner, name)).catch(() => undefined)),
  ]);
  for (const name of names) await until(() => gone(secrets, name));
  t.pass();
});

type Maps = ResourceClient<ConfigMapObject>;

/** ConfigMaps each of which is owned by the next, and the last by the first. All references block. */
async function cycle(maps: Maps, size: number): Promise<string[]> {
  const names = Array.from({ length: size }, (_, i) => `cycle-${i}`);
  const objects = [];
  for (const name of names) objects.push(await maps.create({ metadata: { name } }));
  for (const [i, name] of names.entries()) {
    const owner = objects[(i + 1) % size] ?? {};
    await maps.patch(name, 'merge', {
      metadata: { ownerReferences: ownedBy(owner, '', true).metadata?.ownerReferences },
    });
  }
  return names;
}

const foreground = { propagationPolicy: 'Foreground' } as const;

for (const size of [1, 2, 3, 7]) {
  test(`foreground deletion of one of ${size} objects that own each other in a cycle ends`, async (t) => {
    const { maps } = t.context;
    const names = await cycle(maps, size);
    await maps.delete(names[0] ?? '', foreground);
    for (const name of names) await until(() => gone(maps, name));
    t.pass();
  });
}

test('foreground deletion of all objects of a cycle at once ends', async (t) => {
  const { maps } = t.context;
  const names = await cycle(maps, 4);
  await Promise.all(names.map((name) => maps.delete(name, foreground).catch(() => undefined)));
  for (const name of names) await until(() => gone(maps, name));
  t.pass();
});

test('a cycle of dependents below an owner in foreground deletion is deleted before the owner', async (t) => {
  const { maps, secrets } = t.context;
  const [first = '', second = ''] = await cycle(maps, 2);
  const top = await maps.create({ metadata: { name: 'top' } });
  const others = (await maps.get(first)).metadata?.ownerReferences ?? [];
  const reference = ownedBy(top, '', true).metadata?.ownerReferences ?? [];
  await maps.patch(first, 'merge', { metadata: { ownerReferences: [...others, ...reference] } });
  const held = ownedBy(await maps.get(second), 'held', true);
  await secrets.create({ ...held, metadata: { ...held.metadata, finalizers: ['example.com/hold'] } });
  await maps.delete('top', foreground);
  await maps.delete(second, foreground);
  await until(async () => (await secrets.get('held')).metadata?.deletionTimestamp !== undefined);
  t.false(await gone(maps, second), 'a dependent outside of the cycle still blocks');
  await secrets.patch('held', 'merge', { metadata: { finalizers: null } });
  for (const name of [first, second, 'top']) await until(() => gone(maps, name));
});

test('a dependent of a foreground deletion is deleted in the foreground when it has dependents itself', async (t) => {
  const { maps } = t.context;
  const owner = await maps.create({ metadata: { name: 'top' } });
  const middle = await maps.create(ownedBy(owner, 'middle', true));
  const held = ownedBy(middle, 'held', true);
  await maps.create({ ...held, metadata: { ...held.metadata, finalizers: ['example.com/hold'] } });
  await maps.delete('top', { propagationPolicy: 'Foreground' });
  await until(async () => (await maps.get('held')).metadata?.deletionTimestamp !== undefined);
  t.deepEqual((await maps.get('middle')).metadata?.finalizers, ['foregroundDeletion']);
  await maps.patch('held', 'merge', { metadata: { finalizers: null } });
  await until(() => gone(maps, 'top'));
  t.true(await gone(maps, 'middle'));
});

test('an object with the finalizer orphan keeps its dependents when it is collected', async (t) => {
  const { maps, secrets } = t.context;
  const owner = await maps.create({ metadata: { name: 'top' } });
  const template = ownedBy(owner, 'middle');
  const middle = await maps.create({ ...template, metadata: { ...template.metadata, finalizers: ['orphan'] } });
  await secrets.create(ownedBy(middle, 'kept'));
  await maps.delete('top');
  await until(() => gone(maps, 'middle'));
  await secrets.create(ownedBy(owner, 'probe'));
  await until(() => gone(secrets, 'probe'));
  t.is((await secrets.get('kept')).metadata?.ownerReferences, undefined);
});

test('a kind that cannot be listed delays neither the collector of other kinds nor a foreground deletion', async (t) => {
  const served = new Set(['configmaps']);
  let failures = 0;
  const list = () => {
    failures += 1;
    return Promise.reject(new Error('no answer'));
  };
  const wrapClient = (client: ApiClient): ApiClient =>
    Object.create(client, {
      resource: { value: client.resource.bind(client) },
      discover: { value: async () => (await client.discover()).filter(({ resource }) => served.has(resource)) },
      dynamic: {
        value: (...call: Parameters<typeof client.dynamic>) => {
          const real = client.dynamic(...call);
          if (call[0].resource !== 'endpoints') return real;
          return Object.create(real, { list: { value: list }, resourceName: { value: real.resourceName } });
        },
      },
    });
  const own = await startTestPlane({ fakeClock: true, wrapClient });
  t.teardown(() => own.close());
  const later = (isSo: () => boolean | Promise<boolean>) =>
    until(() => {
      own.clock?.advance(1_000);
      return isSo();
    });
  served.add('endpoints');
  await later(() => failures > 1);
  served.add('secrets');
  const secrets = own.client(Secret).namespace('default') as ResourceClient<KubeObject>;
  await secrets.create(ownedBy({ metadata: { name: 'none', uid: 'none' } }, 'abandoned'));
  await later(() => gone(secrets, 'abandoned'));
  const maps = own.client(ConfigMap).namespace('default') as ResourceClient<ConfigMapObject>;
  const owner = await maps.create({ metadata: { name: 'owner' } });
  await secrets.create(ownedBy(owner, 'dependent', true));
  await maps.delete('owner', { propagationPolicy: 'Foreground' });
  await later(() => gone(maps, 'owner'));
  t.true(await gone(secrets, 'dependent'));
  // It may have dependents of that kind, which would be deleted if they were not orphaned.
  await maps.create({ metadata: { name: 'orphaning' } });
  await maps.delete('orphaning', { propagationPolicy: 'Orphan' });
  const before = failures;
  await later(() => failures > before + 3);
  t.false(await gone(maps, 'orphaning'));
});
