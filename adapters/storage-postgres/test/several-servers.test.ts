import { isStorageError } from '@keelson/core';
import test, { type ExecutionContext } from 'ava';
import { PostgresStore, type PostgresStoreOptions } from '../src/index.ts';
import { bytes, create, everything, Following, span, waitFor } from './support/following.ts';
import { newSchema } from './support/postgres-harness.ts';
import { serverFor } from './support/test-server.ts';

const at = serverFor(test);

/** Stores on one schema, closed with the test. */
async function servers(t: ExecutionContext, count: number, options: PostgresStoreOptions = {}) {
  const schema = newSchema();
  const stores = Array.from(
    { length: count },
    () =>
      new PostgresStore({
        url: at?.server.url('keelson') ?? '',
        schema,
        readers: 3,
        allowUnsafeServer: true,
        ...options,
      }),
  );
  t.teardown(() => Promise.all(stores.map((store) => store.close())));
  await Promise.all(stores.map((store) => store.ready()));
  return { stores, schema, first: stores[0]!, second: stores[1] ?? stores[0]! };
}

async function list(store: PostgresStore, revision?: number) {
  const entries = [];
  for await (const chunk of store.list(everything, revision === undefined ? {} : { revision }))
    entries.push(...chunk.entries);
  return entries;
}

if (at !== undefined) {
  test('servers that start concurrently on an empty database create one store', async (t) => {
    const { stores } = await servers(t, 6);
    const identities = await Promise.all(stores.map((store) => store.identity()));
    t.is(new Set(identities.map(({ storeId }) => storeId)).size, 1);
    t.deepEqual(new Set(identities.map(({ epoch }) => epoch)), new Set([1]));
    await Promise.all(stores.map((store, i) => create(store, `/a/${i}`)));
    for (const store of stores) t.is((await list(store)).length, 6);
  });

  for (const notify of ['after', 'txn', 'off'] as const) {
    test(`concurrent writers on two servers have one order that every watcher receives completely (notify ${notify})`, async (t) => {
      const { stores, first, second } = await servers(t, 2, { notify });
      const start = await first.currentRevision();
      const watchers = [await Following.open(first, start, true), await Following.open(second, start, true)];
      const writer = async (store: PostgresStore, name: string) => {
        const revisions: number[] = [];
        for (let i = 0; i < 60; i++) revisions.push(await create(store, `/${name}/${i}`, `${i}`));
        return revisions;
      };
      const written = (
        await Promise.all(stores.flatMap((store, i) => [...'abc'].map((name) => writer(store, `${i}${name}`))))
      ).flat();
      const last = Math.max(...written);
      t.deepEqual(
        written.sort((a, b) => a - b),
        span(start + 1, start + 360),
      );
      for (const watcher of watchers) {
        await watcher.reached(last);
        t.deepEqual(watcher.revisions, written);
        await watcher.close();
      }
      t.deepEqual(await list(first, start + 100), await list(second, start + 100));
    });
  }

  test('a write that one server has acknowledged is visible to every read of another', async (t) => {
    const { first, second } = await servers(t, 2);
    for (let i = 0; i < 40; i++) {
      const [writer, reader] = i % 2 === 0 ? [first, second] : [second, first];
      const revision = await create(writer, `/a/${i}`);
      const [got, current, count] = await Promise.all([
        reader.get(`/a/${i}`),
        reader.currentRevision(),
        reader.count(everything),
      ]);
      t.is(got.entry?.modRevision, revision);
      t.true(current >= revision);
      t.is(count.count, i + 1);
    }
  });

  test('exactly one of several concurrent writers on several servers wins each revision', async (t) => {
    const { stores, first } = await servers(t, 3);
    let expect = await create(first, '/a');
    for (let round = 0; round < 20; round++) {
      const results = await Promise.all(
        stores.flatMap((store, i) =>
          [0, 1].map((j) => store.write({ op: 'put', key: '/a', value: bytes(`${i}${j}`), expect })),
        ),
      );
      const winners = results.filter((result) => result.ok);
      t.is(winners.length, 1);
      const revision = winners[0]?.revision ?? 0;
      for (const result of results) if (!result.ok) t.is(result.current?.modRevision, revision);
      expect = revision;
    }
  });

  test('a key expires by one delete, from whichever server', async (t) => {
    const { first, second, stores } = await servers(t, 3);
    const start = await first.currentRevision();
    const watcher = await Following.open(second, start, true);
    for (let i = 0; i < 20; i++) await create(stores[i % 3]!, `/a/${i}`, 'x', 150 + i);
    await waitFor('the keys to expire', async () => (await first.count(everything)).count === 0);
    const last = await first.currentRevision();
    t.is(last, start + 40);
    await watcher.reached(last);
    const deletes = watcher.changes.filter(({ type }) => type === 'delete');
    t.is(new Set(deletes.map(({ key }) => key)).size, 20);
    t.is(deletes.length, 20);
    await watcher.close();
  });

  test('the log grows into new partitions, and compaction drops old ones while watches and reads continue', async (t) => {
    const { first, second, schema } = await servers(t, 2, { partitionRevisions: 40 });
    const start = await first.currentRevision();
    const watcher = await Following.open(second, start, true);
    const partitions = async () =>
      (
        await at.server.sql(
          'keelson',
          `select relname from pg_class where relnamespace = $1::regnamespace and relname ~ '^log_[0-9]+$' and relkind = 'r'`,
          [schema],
        )
      ).length;
    let last = start;
    for (let round = 0; round < 12; round++) {
      const writes = span(0, 39).map((i) => create(i % 2 === 0 ? first : second, `/r${round}/${i}`));
      last = Math.max(...(await Promise.all(writes)));
      await watcher.reached(last);
      const pinned = last - 10;
      const [before] = await Promise.all([list(first, pinned), first.compact(pinned), second.compact(pinned - 5)]);
      t.deepEqual(await list(second, pinned), before);
      t.true(isStorageError(await t.throwsAsync(list(second, pinned - 1)), 'Compacted'));
    }
    t.deepEqual(watcher.revisions, span(start + 1, start + 480));
    t.true((await partitions()) <= 6, `${await partitions()} partitions`);
    await watcher.close();
    // Only the current revision remains when the whole log is compacted.
    await first.compact(last);
    await first.maintain();
    t.is(await second.currentRevision(), last);
    t.is(await create(second, '/after'), last + 1);
  });

  test('a database on another timeline begins an epoch with much higher revisions, and lost revisions are compacted', async (t) => {
    const { first, second, schema } = await servers(t, 2);
    for (let i = 0; i < 10; i++) await create(first, `/a/${i}`);
    const last = await first.currentRevision();
    const caughtUp = await Following.open(second, last - 3);
    await caughtUp.reached(last);
    // As after a failover: the server reports another timeline than that of the store.
    await at.server.sql(
      'keelson',
      `create or replace function "${schema}".timeline() returns text language sql volatile as 'select ''0000FFFF''::text'`,
    );
    const revision = await create(second, '/b');
    t.true(revision > last + 1_000_000);
    t.is((await second.identity()).epoch, 2);
    t.is(await first.currentRevision(), revision);
    t.is((await first.identity()).epoch, 2);
    await caughtUp.reached(revision);
    t.deepEqual(caughtUp.revisions, [last - 2, last - 1, last, revision]);
    t.is((await list(first, last)).length, 10);
    for (const lost of [last + 1, last + 999_999]) {
      t.true(isStorageError(await t.throwsAsync(list(first, lost)), 'Compacted'));
      t.true(isStorageError(await t.throwsAsync(second.watch(everything, { after: lost })), 'Compacted'));
    }
    await caughtUp.close();
  });

  test('a database that was restored to an earlier state ends watches with Compacted and begins an epoch', async (t) => {
    const { first, second, schema } = await servers(t, 2);
    for (let i = 0; i < 10; i++) await create(first, `/a/${i}`);
    const last = await second.currentRevision();
    const [ahead, behind] = [await Following.open(second, last), await Following.open(second, last - 5)];
    await behind.reached(last);
    // As after the restore of a backup: the last five writes are lost.
    await at.server.sql('keelson', `delete from "${schema}".log where rev > ${last - 5}`);
    await at.server.sql('keelson', `delete from "${schema}".objects where mod_rev > ${last - 5}`);
    const revision = await second.currentRevision();
    t.true(revision > last + 999_999, `${revision}`);
    t.is((await list(first)).length, 5);
    await waitFor('the watches to fail', () => ahead.failure !== undefined && behind.failure !== undefined);
    t.true(isStorageError(ahead.failure, 'Compacted'));
    t.true(isStorageError(behind.failure, 'Compacted'));
    t.true((await create(first, '/a/9')) > revision);
    t.is((await first.identity()).epoch, 2);
  });

  test('another store in the same schema is detected and rejected', async (t) => {
    const { first, schema } = await servers(t, 1);
    await create(first, '/a');
    await at.server.sql('keelson', `update "${schema}".meta set store_id = gen_random_uuid()`);
    t.true(isStorageError(await t.throwsAsync(first.get('/a')), 'EpochChanged'));
    t.true(isStorageError(await t.throwsAsync(create(first, '/b')), 'EpochChanged'));
  });

  test('a store of a newer version is rejected with a message', async (t) => {
    const { schema } = await servers(t, 1);
    await at.server.sql(
      'keelson',
      `insert into "${schema}".migrations (version, name) values (9999, '9999-later.sql')`,
    );
    const store = new PostgresStore({ url: at.server.url('keelson'), schema, allowUnsafeServer: true });
    const error = await t.throwsAsync(store.ready());
    t.regex(error?.message ?? '', /has version 9999.*start the newer version/);
    await store.close();
  });

  test('asynchronous commit is rejected unless it is allowed', async (t) => {
    const url = `${at.server.direct('keelson')}?options=${encodeURIComponent('-c synchronous_commit=off')}`;
    const refused = new PostgresStore({ url, schema: newSchema(), allowUnsafeServer: true });
    t.regex((await t.throwsAsync(refused.ready()))?.message ?? '', /synchronous_commit is off/);
    await refused.close();
    const allowed = new PostgresStore({ url, schema: newSchema(), allowUnsafeServer: true, allowAsyncCommit: true });
    await allowed.ready();
    await create(allowed, '/a');
    await allowed.close();
  });

  test('a role without the permission to create objects can open an existing store', async (t) => {
    const { schema } = await servers(t, 1);
    await at.server.sql(
      'keelson',
      `create role plain login;
       grant usage on schema "${schema}" to plain;
       grant select, insert, update, delete on all tables in schema "${schema}" to plain`,
    );
    const plain = at.server.url('keelson').replace('postgres@', 'plain@');
    const store = new PostgresStore({ url: plain, schema, allowUnsafeServer: true });
    await store.ready();
    t.true((await create(store, '/a')) > 1);
    t.is((await list(store)).length, 1);
    await store.close();
  });

  test('metrics report batches, notifications and watches', async (t) => {
    const values = new Map<string, number>();
    const metric = ({ name }: { readonly name: string }) => ({
      add: (value: number) => values.set(name, (values.get(name) ?? 0) + value),
      set: (value: number) => values.set(name, value),
      observe: (value: number) => values.set(name, (values.get(name) ?? 0) + value),
    });
    const metrics = { counter: metric, gauge: metric, histogram: metric, text: async () => '' };
    const { first, second } = await servers(t, 2, { metrics, listenUrl: at.server.direct('keelson') });
    const value = (name: string) => values.get(`keelson_postgres_${name}`) ?? 0;
    await waitFor('the listeners', () => value('listener_connected') === 1);
    const watcher = await Following.open(second, await first.currentRevision());
    for (let i = 0; i < 5; i++) await watcher.reached(await create(first, `/${i}`));
    await waitFor('notifications', () => value('notifications_received_total') > 0);
    t.true(value('notifications_sent_total') > 0);
    t.is(value('batch_writes'), 5);
    t.true(value('batch_seconds') > 0);
    t.is(value('watch_streams'), 1);
    t.is(value('lag_revisions'), 0);
    await watcher.close();
    t.is(value('watch_streams'), 0);
  });

  test('reads, writes and watches work without prepared statements', async (t) => {
    const { first, second } = await servers(t, 2, { preparedStatements: false });
    const watcher = await Following.open(second, await first.currentRevision(), true);
    const revision = await create(first, '/a', 'ä\u0000ö');
    t.is((await second.get('/a')).entry?.value.toString(), 'ä\u0000ö');
    await watcher.reached(revision);
    await watcher.close();
  });
}
