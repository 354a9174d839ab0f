import test, { type ExecutionContext } from 'ava';
import pg from 'pg';
import { PostgresStore, type PostgresStoreOptions } from '../src/index.ts';
import { create, everything, Following, span, waitFor } from './support/following.ts';
import { newSchema } from './support/postgres-harness.ts';
import { findPostgres, type PostgresServer, type ServerOptions, startPostgres } from './support/postgres-server.ts';

// Differences between servers; `npm run conformance` runs all cases on each of them.

type Variant = NonNullable<ServerOptions['variant']>;

/** A test with a server of its own; skipped visibly where this machine cannot have such a server. */
function on(
  variant: Variant,
  title: string,
  run: (t: ExecutionContext, server: PostgresServer) => Promise<void>,
): void {
  if (findPostgres(variant) === undefined) {
    if (process.env['CI'] !== undefined) test(title, (t) => t.fail(`there is no ${variant} PostgreSQL`));
    else test.skip(`${title} [not run, there is no ${variant} PostgreSQL]`, () => {});
    return;
  }
  test.serial(title, async (t) => {
    t.timeout(120_000);
    const server = await startPostgres({ variant });
    t.teardown(() => server.stop());
    await server.createDatabase('keelson');
    await run(t, server);
  });
}

interface Opening extends PostgresStoreOptions {
  readonly schema: string;
}

async function opened(t: ExecutionContext, server: PostgresServer, options: Opening): Promise<PostgresStore> {
  const store = new PostgresStore({ url: server.url('keelson'), allowUnsafeServer: true, ...options });
  t.teardown(() => store.close());
  await store.ready();
  return store;
}

/** Keeps warnings. */
function warningLogger(warnings: string[]) {
  const ignore = () => {};
  const logger = {
    debug: ignore,
    info: ignore,
    warn: (text: string) => warnings.push(text),
    error: ignore,
    child: () => logger,
  };
  return logger;
}

/** Writes, reads and watches of two servers at once, on many connections; returns the revision reached. */
async function exercise(t: ExecutionContext, first: PostgresStore, second: PostgresStore): Promise<number> {
  const start = await first.currentRevision();
  const watcher = await Following.open(second, start, true);
  const work = span(1, 60).map(async (i) => {
    const [mine, others] = i % 2 === 0 ? [first, second] : [second, first];
    const revision = await create(mine, `/exercise/${i}`);
    t.is((await others.get(`/exercise/${i}`)).entry?.modRevision, revision);
    for await (const chunk of others.list(everything, { revision })) t.true(chunk.entries.length > 0);
    t.true((await mine.count(everything)).count > 0);
  });
  await Promise.all(work);
  const removed = await first.write({
    op: 'delete',
    key: '/exercise/1',
    expect: (await first.get('/exercise/1')).revision,
  });
  t.false(removed.ok, 'the newest revision is not that of the key');
  const end = await second.currentRevision();
  await watcher.reached(end);
  t.deepEqual(watcher.revisions, span(start + 1, end));
  await watcher.close();
  return end;
}

on('pooled', 'the default URL works behind PgBouncer in transaction mode', async (t, server) => {
  const schema = newSchema();
  const warnings: string[] = [];
  const first = await opened(t, server, { schema, logger: warningLogger(warnings) });
  const second = await opened(t, server, { schema });
  // The sessions of the pool alternate between both stores.
  await exercise(t, first, second);
  await waitFor('the warning', () => warnings.length > 0);
  t.regex(warnings.join(), /pooler in transaction mode.*listenUrl/);
  t.is(warnings.length, 1);
  const shared = await server.sql('keelson', `select 1 from pg_stat_activity where application_name = 'keelson'`);
  t.true(shared.length < 20, 'connections are pooled');
  const watcher = await Following.open(second, await second.currentRevision());
  const before = performance.now();
  await watcher.reached(await create(first, '/polled'));
  t.true(performance.now() - before < 15_000, 'delivered by polling');
  await watcher.close();
});

on('pooled', 'notifications are received behind PgBouncer with a direct listenUrl', async (t, server) => {
  const schema = newSchema();
  const warnings: string[] = [];
  const received: string[] = [];
  const metric = ({ name }: { readonly name: string }) => ({
    add: () => received.push(name),
    set: () => {},
    observe: () => {},
  });
  const metrics = { counter: metric, gauge: metric, histogram: metric, text: async () => '' };
  const writer = await opened(t, server, { schema });
  const reader = await opened(t, server, {
    schema,
    listenUrl: server.direct('keelson'),
    logger: warningLogger(warnings),
    metrics,
  });
  const watcher = await Following.open(reader, await reader.currentRevision());
  await waitFor('a notification', async () => {
    await create(writer, `/${Math.random()}`);
    return received.includes('keelson_postgres_notifications_received_total');
  });
  t.deepEqual(warnings, []);
  await watcher.close();
});

on(
  'pooled',
  'old history is dropped through PgBouncer without locks or warnings in its sessions',
  async (t, server) => {
    const schema = newSchema();
    const warnings: string[] = [];
    const store = await opened(t, server, { schema, partitionRevisions: 20, logger: warningLogger(warnings) });
    for (const i of span(1, 70)) await create(store, `/${i}`);
    const partitions = async () =>
      (await server.sql('keelson', `select 1 from pg_inherits where inhparent = '"${schema}".log'::regclass`)).length;
    const before = await partitions();
    await store.compact(await store.currentRevision());
    t.true((await partitions()) <= before - 2);
    t.deepEqual(await server.sql('keelson', `select * from pg_locks where locktype = 'advisory'`), []);
    t.deepEqual(
      warnings.filter((text) => !text.includes('listenUrl')),
      [],
    );
  },
);

on('pooled', 'named statements that a pooler does not keep are rejected with a message', async (t, server) => {
  const schema = newSchema();
  const failures: unknown[] = [];
  const store = new PostgresStore({
    url: server.url('keelson'),
    schema,
    preparedStatements: true,
    allowUnsafeServer: true,
    notify: 'off',
  });
  t.teardown(() => store.close());
  const attempt = async () => {
    await store.ready();
    await Promise.all(span(1, 8).map((i) => store.get(`/${i}`)));
  };
  await waitFor('a rejection', async () => {
    await attempt().catch((error: unknown) => failures.push(error));
    return failures.length > 0;
  });
  t.like(failures[0], { code: 'Unavailable' });
  t.regex(String(failures[0]), /a pooler does not keep named statements; remove preparedStatements=true/);
});

on('crowded', 'two servers work with eight connections in total', async (t, server) => {
  const schema = newSchema();
  const first = await opened(t, server, { schema });
  const second = await opened(t, server, { schema });
  for (let round = 0; round < 3; round++) {
    const reads = span(1, 30).flatMap(() => [first.count(everything), second.count(everything)]);
    await Promise.all(reads);
  }
  await create(first, '/a');
  t.is((await second.count(everything)).count, 1);
});

on('crowded', 'a server reports that no connection is available', async (t, server) => {
  const held = span(1, 8).map(() => server.sql('keelson', 'select pg_sleep(4)'));
  t.teardown(() => Promise.allSettled(held));
  await waitFor('all connections', async () => {
    const client = new pg.Client({ connectionString: server.direct('keelson') });
    client.on('error', () => {});
    return client.connect().then(
      () => client.end().then(() => false),
      () => true,
    );
  });
  const late = new PostgresStore({
    url: server.url('keelson'),
    schema: newSchema(),
    allowUnsafeServer: true,
    connectTimeoutMs: 200,
  });
  t.teardown(() => late.close());
  const error = await t.throwsAsync(late.ready(), { code: 'Unavailable' });
  t.regex(String(error), /no connection left, raise max_connections or lower readers \(.*too many clients/);
});

on('newest', 'the newest PostgreSQL serves writes, reads, watches and compaction', async (t, server) => {
  const [row] = await server.sql('keelson', `select current_setting('server_version_num')::int / 10000 as version`);
  t.log(`PostgreSQL ${String(row?.['version'])}`);
  t.true(Number(row?.['version']) >= 18);
  const schema = newSchema();
  const first = await opened(t, server, { schema, partitionRevisions: 20 });
  const second = await opened(t, server, { schema });
  const end = await exercise(t, first, second);
  await first.compact(end);
  const error = await t.throwsAsync(second.count(everything, { revision: end - 1 }));
  t.like(error, { code: 'Compacted' });
});

on('installed', 'a server without fsync is rejected unless it is allowed', async (t, server) => {
  const schema = newSchema();
  const attempt = async (): Promise<string> => {
    const store = new PostgresStore({ url: server.url('keelson'), schema });
    const error = await t.throwsAsync(store.ready(), { code: 'Unavailable' });
    await store.close();
    return String(error);
  };
  t.regex(await attempt(), /fsync is off: .*allowUnsafeServer/);
  await server.sql('postgres', 'alter system set fsync = on');
  await server.sql('postgres', 'select pg_reload_conf()');
  await waitFor('the setting', async () => (await server.sql('postgres', 'show fsync'))[0]?.['fsync'] === 'on');
  t.regex(await attempt(), /full_page_writes is off: .*allowUnsafeServer/);
  await create(await opened(t, server, { schema }), '/a');
});
