import { cp, readFile, rm } from 'node:fs/promises';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { type OwnDatabase, startEtcdDatabase, startPostgresDatabase } from '../../src/faults/databases.ts';
import { directoryFor } from '../../src/faults/fault-run.ts';
import { startKeelson } from '../../src/keelson-process.ts';
import { RestoredStore } from '../../src/restored-store.ts';

/** A store that can be replaced by an older copy. */
interface Copied {
  readonly storage: readonly string[];
  keepCopy(): Promise<void>;
  putBack(): Promise<void>;
  /** The status of a watch at a revision that is in the copy. */
  readonly survivor: 200 | 410;
}

async function recordOf(data: string): Promise<{ storeId: string; epoch: number; revision?: number } | undefined> {
  const { stores } = JSON.parse(await readFile(`${data}/stores.json`, 'utf8')) as { stores: Record<string, never> };
  return Object.values(stores)[0];
}

async function restored(
  t: ExecutionContext,
  data: string,
  { storage, keepCopy, putBack, survivor }: Copied,
): Promise<void> {
  const start = async () => {
    const server = await startKeelson(data, ['--insecure', ...storage]);
    t.teardown(() => server.kill());
    return { server, api: new RestoredStore(server.url) };
  };
  const first = await start();
  const kept = await first.api.create('kept');
  t.is(await first.server.stop(), 0);
  t.true(((await recordOf(data))?.revision ?? 0) >= kept, 'the revision is recorded at the end');
  await keepCopy();

  const second = await start();
  t.is((await second.api.watchStatus(kept)).code, 200, 'watches of a store that was not restored continue');
  let last = 0;
  for (let i = 0; i < 30; i++) last = await second.api.create(`lost-${i}`);
  // The revision is recorded while the server runs.
  await until(async () => ((await recordOf(data))?.revision ?? 0) >= last);
  await second.server.kill();
  await putBack();

  const third = await start();
  const next = await third.api.create('next');
  t.true(next > last, `${next} after ${last}`);
  t.is((await third.api.watchStatus(last - 10)).code, 410, 'a revision with another meaning is expired');
  t.is((await third.api.watchStatus(kept)).code, survivor);
  t.is((await third.api.watchStatus(next)).code, 200);
  t.deepEqual(await third.api.names(), ['kept', 'next']);
  t.is((await recordOf(data))?.epoch, 2);
  t.regex(third.server.output().stderr, /the store was restored or failed over/);
  t.is(await third.server.stop(), 0);

  const fourth = await start();
  t.is((await fourth.api.watchStatus(next)).code, 200, 'revisions are not skipped twice');
  t.is((await recordOf(data))?.epoch, 2);
  t.is(await fourth.server.stop(), 0);
}

test('lmdb: an older copy restored while no server runs repeats no revision, and old revisions are expired', async (t) => {
  t.timeout(120_000);
  const data = await directoryFor(t);
  const copy = `${await directoryFor(t)}/copy`;
  await restored(t, data, {
    survivor: 410,
    storage: [],
    keepCopy: () => cp(`${data}/store`, copy, { recursive: true }),
    async putBack() {
      await rm(`${data}/store`, { recursive: true });
      await cp(copy, `${data}/store`, { recursive: true });
    },
  });
});

test('a server that is killed right after it skipped lost revisions has recorded them: another restore repeats none', async (t) => {
  t.timeout(120_000);
  const data = await directoryFor(t);
  const copy = `${await directoryFor(t)}/copy`;
  const putBack = async () => {
    await rm(`${data}/store`, { recursive: true });
    await cp(copy, `${data}/store`, { recursive: true });
  };
  const start = async () => {
    const server = await startKeelson(data, ['--insecure']);
    t.teardown(() => server.kill());
    return { server, api: new RestoredStore(server.url) };
  };
  const first = await start();
  await first.api.create('kept');
  await first.server.stop();
  await cp(`${data}/store`, copy, { recursive: true });
  const second = await start();
  let last = await second.api.create('lost');
  await second.server.stop();
  for (let restore = 1; restore <= 2; restore++) {
    await putBack();
    const { server, api } = await start();
    const next = await api.create(`restored-${restore}`);
    await server.kill();
    t.true(next > last, `restore ${restore}: ${next} after ${last}`);
    last = next;
  }
});

const databases: Readonly<Record<string, { start(): Promise<OwnDatabase | undefined>; readonly survivor: 200 | 410 }>> =
  {
    PostgreSQL: { start: () => startPostgresDatabase({ durable: false }), survivor: 200 },
    etcd: { start: startEtcdDatabase, survivor: 410 },
  };

for (const [name, { start, survivor }] of Object.entries(databases)) {
  test(`${name}: an older copy restored while no server runs repeats no revision, and old revisions are expired`, async (t) => {
    t.timeout(120_000);
    const database = await start();
    if (database === undefined) {
      if (process.env['CI'] !== undefined) t.fail(`no ${name} on this machine`);
      else t.pass(`not run: no ${name} on this machine`);
      return;
    }
    t.teardown(() => database.close());
    const { keepCopy, putBack } = database;
    await restored(t, await directoryFor(t), {
      storage: ['--storage', database.storage({})],
      keepCopy,
      putBack,
      survivor,
    });
  });
}

test('etcd: an older copy restored under two running servers repeats no revision, and old revisions are expired', async (t) => {
  t.timeout(120_000);
  const database = await startEtcdDatabase();
  if (database === undefined) {
    if (process.env['CI'] !== undefined) t.fail('no etcd on this machine');
    else t.pass('not run: no etcd on this machine');
    return;
  }
  t.teardown(() => database.close());
  const start = async () => {
    const server = await startKeelson(await directoryFor(t), ['--insecure', '--storage', database.storage({})]);
    t.teardown(() => server.kill());
    return { server, api: new RestoredStore(server.url) };
  };
  const servers = await Promise.all([start(), start()]);
  const [{ api: first }, { api: second }] = servers;
  await first.create('kept');
  await database.keepCopy();
  let last = 0;
  for (let i = 0; i < 10; i++) last = (await [first, second][i % 2]?.create(`lost-${i}`)) ?? 0;
  await database.putBack();
  let attempts = 0;
  const next = await until(() => first.create(`next-${attempts++}`), 'a create succeeds', 60_000);
  t.true(next > last, `${next} after ${last}`);
  for (const { api, server } of servers) {
    t.is((await api.watchStatus(last - 2)).code, 410, 'a client that was disconnected has to list again');
    t.is((await api.watchStatus(next)).code, 200);
    t.deepEqual(
      (await api.names()).filter((name) => !name.startsWith('next')),
      ['kept'],
    );
    t.regex(server.output().stderr, /the store was restored or failed over/);
  }
});
