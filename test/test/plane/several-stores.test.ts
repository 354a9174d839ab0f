import { isStatusError, type KubeObject, StatusReason } from '@keelson/core';
import type { Store } from '@keelson/core/storage-adapter';
import { ConfigMap, Deployment, Namespace, Secret } from '@keelson/kinds';
import { MemoryStore } from '@keelson/storage-memory';
import { eventually } from '@keelson/testing';
import test, { type ExecutionContext } from 'ava';
import { type ControlPlane, createControlPlane, type StorageChoice } from 'keelson';
import { shareStore } from '../../src/shared-store.ts';

async function start(t: ExecutionContext, storage: StorageChoice): Promise<ControlPlane> {
  const plane = await createControlPlane({ storage });
  t.teardown(() => plane.close());
  return plane;
}

async function keysOf(store: Store): Promise<string[]> {
  const keys: string[] = [];
  for await (const chunk of store.list({ start: '/', end: '0' }, { keysOnly: true }))
    keys.push(...chunk.entries.map(({ key }) => key));
  return keys;
}

const missing = (call: Promise<unknown>) =>
  call.then(
    () => false,
    (error: unknown) => isStatusError(error, StatusReason.NotFound),
  );

const secretsApart = (main: Store, apart: Store): StorageChoice => ({
  default: main,
  routes: [{ group: '', resources: ['secrets'], storage: apart }],
});

test('each kind is stored in its own store only, and revisions of the stores are independent', async (t) => {
  const [main, apart] = [new MemoryStore(), new MemoryStore()];
  const plane = await start(t, secretsApart(main, apart));
  const secrets = plane.client(Secret).namespace('default');
  const maps = plane.client(ConfigMap).namespace('default');
  const revision = (object: KubeObject) => Number(object.metadata?.resourceVersion);
  const first = await secrets.create({ metadata: { name: 'a' } });
  for (let i = 0; i < 20; i += 1) await maps.create({ metadata: { name: `m-${i}` } });
  const second = await secrets.create({ metadata: { name: 'b' } });
  t.is(revision(second), revision(first) + 1);
  t.deepEqual(await keysOf(apart), ['/core/secrets/default/a', '/core/secrets/default/b']);
  t.true((await keysOf(main)).every((key) => !key.startsWith('/core/secrets/')));
  t.is((await secrets.list()).metadata.resourceVersion, second.metadata?.resourceVersion);
});

test('discovery shows the same kinds as with one store', async (t) => {
  const several = await start(t, secretsApart(new MemoryStore(), new MemoryStore()));
  const single = await start(t, 'memory:');
  t.deepEqual(await several.api.discover(), await single.api.discover());
});

test('both versions of a kind are in the store that one of them is routed to', async (t) => {
  const [main, apart] = [new MemoryStore(), new MemoryStore()];
  const plane = await start(t, {
    default: main,
    routes: [{ group: 'extensions', resources: ['deployments'], storage: apart }],
  });
  const labels = { app: 'x' };
  await plane
    .client(Deployment)
    .namespace('default')
    .create({
      metadata: { name: 'web' },
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } },
      },
    });
  const old = plane.api
    .dynamic({ group: 'extensions', version: 'v1beta1', resource: 'deployments' })
    .namespace('default');
  t.is((await old.get('web')).metadata?.name, 'web');
  t.is((await keysOf(apart)).length, 1);
});

test('deleting a namespace deletes its objects in every store', async (t) => {
  const [main, apart] = [new MemoryStore(), new MemoryStore()];
  const plane = await start(t, secretsApart(main, apart));
  await plane.client(Namespace).create({ metadata: { name: 'full' } });
  await plane
    .client(Secret)
    .namespace('full')
    .create({ metadata: { name: 'in' } });
  await plane
    .client(Secret)
    .namespace('default')
    .create({ metadata: { name: 'out' } });
  await plane
    .client(ConfigMap)
    .namespace('full')
    .create({ metadata: { name: 'in' } });
  await plane.client(Namespace).delete('full');
  await eventually(() => missing(plane.client(Namespace).get('full')));
  t.deepEqual(await keysOf(apart), ['/core/secrets/default/out']);
  t.true((await keysOf(main)).every((key) => !key.includes('/full')));
});

test('objects are deleted with an owner in another store, and remain while the owner exists', async (t) => {
  const plane = await start(t, secretsApart(new MemoryStore(), new MemoryStore()));
  const maps = plane.client(ConfigMap).namespace('default');
  const secrets = plane.client(Secret).namespace('default');
  const dependentOf = async (name: string) => {
    const owner = await maps.create({ metadata: { name } });
    const ownerReferences = [
      { apiVersion: 'v1', kind: 'ConfigMap', name, uid: owner.metadata?.uid ?? '', blockOwnerDeletion: true },
    ];
    await secrets.create({ metadata: { name: `of-${name}`, ownerReferences } });
  };
  await dependentOf('background');
  await dependentOf('foreground');
  await dependentOf('kept');
  await maps.delete('background');
  await maps.delete('foreground', { propagationPolicy: 'Foreground' });
  await eventually(() => missing(secrets.get('of-background')));
  await eventually(() => missing(maps.get('foreground')));
  t.true(await missing(secrets.get('of-foreground')));
  t.is((await secrets.get('of-kept')).metadata?.name, 'of-kept');
});

test('a continue token is invalid when its kind has moved to another store, also at the same revision', async (t) => {
  const [main, first, second] = [new MemoryStore(), new MemoryStore(), new MemoryStore()];
  const fill = async (store: Store) => {
    const plane = await createControlPlane({
      storage: secretsApart(shareStore(main).connect().store, store),
      controllers: false,
    });
    for (const name of ['a', 'b', 'c']) await plane.client(Secret).namespace('default').create({ metadata: { name } });
    return plane;
  };
  const before = await fill(first);
  const page = await before.client(Secret).list({ limit: 1 });
  const token = page.metadata.continue ?? '';
  t.is((await before.client(Secret).list({ limit: 1, continue: token })).items[0]?.metadata?.name, 'b');
  await before.close();
  const after = await fill(second);
  t.teardown(() => after.close());
  t.is((await after.client(Secret).list()).metadata.resourceVersion, page.metadata.resourceVersion);
  await t.throwsAsync(after.client(Secret).list({ limit: 1, continue: token }), {
    message: /continue/,
  });
});

test('a store whose changes cannot be read fails its own health check, and kinds of other stores are served', async (t) => {
  const apart = shareStore(new MemoryStore()).connect();
  const plane = await start(t, {
    default: new MemoryStore(),
    routes: [{ name: 'apart', group: '', resources: ['secrets'], storage: apart.store }],
  });
  const { url } = await plane.listen();
  const health = async () => {
    const answer = await fetch(`${url}/readyz?verbose`);
    return { status: answer.status, text: await answer.text() };
  };
  const before = await health();
  t.is(before.status, 200);
  t.regex(before.text, /\[\+\]storage ok\n\[\+\]storage-apart ok/);
  apart.cut();
  const after = await eventually(async () => {
    const now = await health();
    return now.status === 200 ? undefined : now;
  });
  t.regex(after.text, /\[\+\]storage ok\n\[-\]storage-apart/);
  t.is((await fetch(`${url}/api/v1/configmaps`)).status, 200);
  const refused = await fetch(`${url}/api/v1/secrets`);
  t.is(refused.status, 500);
  t.is(((await refused.json()) as { reason: string }).reason, 'ServerTimeout');
  t.false(plane.ready());
});

test('when one of several stores cannot be opened the others are closed', async (t) => {
  const main = new MemoryStore();
  const broken = new MemoryStore();
  broken.ready = () => Promise.reject(new Error('no such database'));
  await t.throwsAsync(createControlPlane({ storage: secretsApart(main, broken) }), { message: 'no such database' });
  await t.throwsAsync(main.currentRevision(), { code: 'Closed' });
});
