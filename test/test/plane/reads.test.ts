import { ConfigMap } from '@keelson/kinds';
import { MemoryStore } from '@keelson/storage-memory';
import { eventually } from '@keelson/testing';
import test, { type ExecutionContext } from 'ava';
import { createControlPlane, type ReadMode } from 'keelson';
import { shareStore } from '../../src/shared-store.ts';

/** Two servers on one store; the stream of the first is paused, so that its cache is behind. */
async function behind(t: ExecutionContext, reads: ReadMode) {
  const shared = shareStore(new MemoryStore());
  const connection = shared.connect();
  const slow = await createControlPlane({ storage: connection.store, reads, controllers: false });
  const other = await createControlPlane({ storage: shared.connect().store, controllers: false });
  t.teardown(async () => {
    await slow.close();
    await other.close();
  });
  const maps = other.client(ConfigMap).namespace('default');
  await maps.create({ metadata: { name: 'old' } });
  const { url } = await slow.listen();
  const collection = `${url}/api/v1/namespaces/default/configmaps`;
  const names = async (query = '') => {
    const answer = await fetch(`${collection}${query}`);
    const body = (await answer.json()) as { items?: { metadata: { name: string } }[]; metadata: { continue?: string } };
    return {
      status: answer.status,
      names: body.items?.map(({ metadata }) => metadata.name),
      token: body.metadata.continue,
    };
  };
  const status = async (path: string, method = 'GET') => (await fetch(`${collection}${path}`, { method })).status;
  await eventually(async () => (await names('?resourceVersion=0')).names?.includes('old'));
  connection.holdStream(true);
  const newest = await maps.create({ metadata: { name: 'new' } });
  return { connection, names, status, slow, newest: newest.metadata?.resourceVersion ?? '' };
}

test('consistent: a list or get without resourceVersion includes earlier writes of other servers', async (t) => {
  const { connection, names, status } = await behind(t, 'consistent');
  t.deepEqual((await names('?resourceVersion=0')).names, ['old']);
  const waiting = Promise.all([names(), status('/new')]);
  setTimeout(() => connection.holdStream(false), 50);
  const [list, get] = await waiting;
  t.deepEqual(list.names, ['new', 'old']);
  t.is(get, 200);
});

test('any: a list or get without resourceVersion returns the state of the cache', async (t) => {
  const { connection, names, status } = await behind(t, 'any');
  t.deepEqual((await names()).names, ['old']);
  t.is(await status('/new'), 404);
  connection.cut();
  t.deepEqual((await names()).names, ['old']);
  t.is(await status('/old'), 200);
});

test('any: a request for a resourceVersion or an exact state returns that state', async (t) => {
  const { connection, names, newest } = await behind(t, 'any');
  const waiting = names(`?resourceVersion=${newest}`);
  setTimeout(() => connection.holdStream(false), 50);
  t.deepEqual((await waiting).names, ['new', 'old']);
  t.is((await names('?resourceVersionMatch=NotOlderThan')).status, 422);
  const page = await names('?limit=1');
  t.deepEqual(page.names, ['new']);
  t.deepEqual((await names(`?limit=1&continue=${page.token}`)).names, ['old']);
});

test('any: deletions of collections and clients inside the server read the latest state', async (t) => {
  const { connection, status, slow } = await behind(t, 'any');
  const inside = slow.client(ConfigMap).namespace('default').get('new');
  const deleted = status('', 'DELETE');
  setTimeout(() => connection.holdStream(false), 50);
  t.is((await inside).metadata?.name, 'new');
  t.is(await deleted, 200);
  t.deepEqual((await slow.client(ConfigMap).namespace('default').list()).items, []);
});
