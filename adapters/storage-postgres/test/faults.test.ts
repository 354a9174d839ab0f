import { isStorageError } from '@keelson/core';
import test, { type ExecutionContext } from 'ava';
import { PostgresStore, type PostgresStoreOptions } from '../src/index.ts';
import { create, everything, Following, span, waitFor } from './support/following.ts';
import { newSchema } from './support/postgres-harness.ts';
import { TcpProxy } from './support/tcp-proxy.ts';
import { serverFor } from './support/test-server.ts';

// Flushes to disk are real here: what is acknowledged must survive SIGKILL of the database.
const at = serverFor(test, { durable: true });
/** Far above what a loaded machine needs, and below the minutes after which the kernel gives up a dead connection. */
const limitMs = 15_000;

async function opened(t: ExecutionContext, schema: string, options: PostgresStoreOptions = {}, port?: number) {
  const store = new PostgresStore({ url: at?.server.url('keelson', port) ?? '', schema, readers: 3, ...options });
  t.teardown(() => store.close());
  await store.ready();
  return store;
}

async function proxied(t: ExecutionContext): Promise<TcpProxy> {
  const proxy = await TcpProxy.start(at?.server.port ?? 0);
  t.teardown(() => proxy.stop());
  return proxy;
}

function terminateListeners(): Promise<Record<string, unknown>[]> {
  return (
    at?.server.sql(
      'keelson',
      `select pg_terminate_backend(pid) from pg_stat_activity
       where application_name = 'keelson' and pid <> pg_backend_pid()
         and (query ilike 'listen%' or query ilike '%pg_notify(%' or query = 'select 1')`,
    ) ?? Promise.resolve([])
  );
}

/** A pooler that drops LISTEN. */
function swallowListen(data: Buffer): Buffer {
  const text = data.toString('latin1');
  return text.includes('listen "') ? Buffer.from(text.replace(/listen "(\w+)"/, "select '$1'"), 'latin1') : data;
}

if (at !== undefined) {
  test.serial('a terminated listener loses and reorders no event, and delays none beyond the limit', async (t) => {
    const schema = newSchema();
    const writer = await opened(t, schema);
    const reader = await opened(t, schema);
    const start = await reader.currentRevision();
    const watcher = await Following.open(reader, start);
    let last = start;
    let worst = 0;
    for (let round = 0; round < 10; round++) {
      await terminateListeners();
      for (let i = 0; i < 10; i++) {
        const before = performance.now();
        last = await create(writer, `/${round}/${i}`);
        await watcher.reached(last);
        worst = Math.max(worst, performance.now() - before);
      }
    }
    t.deepEqual(watcher.revisions, span(start + 1, last));
    t.log(`longest time from write to delivery: ${worst.toFixed(0)} ms`);
    t.true(worst < limitMs);
    await watcher.close();
  });

  test.serial('without notifications changes are delivered by polling', async (t) => {
    const schema = newSchema();
    const writer = await opened(t, schema, { notify: 'off' });
    const reader = await opened(t, schema);
    const start = await reader.currentRevision();
    const watcher = await Following.open(reader, start);
    for (let i = 0; i < 5; i++) {
      const before = performance.now();
      await watcher.reached(await create(writer, `/${i}`));
      t.true(performance.now() - before < limitMs);
    }
    t.is(watcher.changes.length, 5);
    await watcher.close();
  });

  test.serial('a pooler that drops LISTEN is detected and logged, and changes are delivered by polling', async (t) => {
    const proxy = await proxied(t);
    proxy.onData = (data, direction) => (direction === 'toServer' ? swallowListen(data) : data);
    const warnings: string[] = [];
    const ignore = () => {};
    const logger = {
      debug: ignore,
      info: ignore,
      warn: (text: string) => warnings.push(text),
      error: ignore,
      child: () => logger,
    };
    const schema = newSchema();
    const reader = await opened(t, schema, { logger }, proxy.port);
    const writer = await opened(t, schema);
    const watcher = await Following.open(reader, await reader.currentRevision());
    await waitFor('the warning', () => warnings.some((text) => text.includes('listenUrl')));
    await watcher.reached(await create(writer, '/a'));
    await watcher.close();
    // With a direct connection for LISTEN there is no warning.
    warnings.length = 0;
    const direct = await opened(t, schema, { logger, listenUrl: at.server.url('keelson') }, proxy.port);
    const receiver = await Following.open(direct, await direct.currentRevision());
    await receiver.reached(await create(writer, '/b'));
    t.deepEqual(warnings, []);
    await receiver.close();
  });

  test.serial('a listener on a half-open connection is replaced', async (t) => {
    const proxy = await proxied(t);
    const schema = newSchema();
    const reader = await opened(t, schema, { listenUrl: at.server.url('keelson', proxy.port) });
    const writer = await opened(t, schema);
    const start = await reader.currentRevision();
    const watcher = await Following.open(reader, start);
    await waitFor('the listener', () => proxy.connections === 1);
    await watcher.reached(await create(writer, '/before'));
    proxy.blackHole();
    const before = performance.now();
    await watcher.reached(await create(writer, '/during'));
    t.true(performance.now() - before < limitMs);
    await waitFor('the dead connection to be dropped', () => proxy.connections === 0);
    proxy.heal();
    await waitFor('a new connection', () => proxy.connections === 1);
    await watcher.reached(await create(writer, '/after'));
    t.deepEqual(watcher.revisions, span(start + 1, start + 3));
    await watcher.close();
  });

  test.serial('a store closes while the network is silent, and leaves no connection open', async (t) => {
    const proxy = await proxied(t);
    const schema = newSchema();
    const store = new PostgresStore({ url: at.server.url('keelson', proxy.port), schema, readers: 3, notify: 'off' });
    await store.ready();
    // Connections are accepted, but requests on them are not answered.
    proxy.onData = (data, direction) =>
      direction === 'toServer' && !data.includes('application_name') ? undefined : data;
    // More reads than connections: some need new connections, which wait for their verification.
    const reads = Array.from({ length: 6 }, (_, i) => t.throwsAsync(store.get(`/${i}`), { message: /closed/ }));
    await waitFor('new connections', () => proxy.connections >= 4);
    const before = performance.now();
    await store.close();
    await Promise.all(reads);
    t.true(performance.now() - before < limitMs);
    await waitFor('all connections to be closed', () => proxy.connections === 0);
  });

  test.serial('opening an open store again opens no connections', async (t) => {
    const store = await opened(t, newSchema());
    const connections = async () => {
      const [row] = await at.server.sql(
        'keelson',
        `select count(*) from pg_stat_activity where application_name = 'keelson'`,
      );
      return Number(row?.['count']);
    };
    await create(store, '/a');
    const before = await connections();
    await Promise.all(Array.from({ length: 20 }, () => store.ready()));
    // The store itself opens and closes connections for its maintenance and reads.
    t.true((await connections()) < before + 10);
  });

  test.serial('a write whose response is lost is found in the log and acknowledged', async (t) => {
    const proxy = await proxied(t);
    const schema = newSchema();
    const store = await opened(t, schema, { notify: 'off' }, proxy.port);
    const other = await opened(t, schema);
    for (let round = 0; round < 5; round++) {
      const before = await other.currentRevision();
      let armed = true;
      // The batch reaches the server, its response is lost.
      proxy.onData = (data, direction, cut) => {
        if (direction !== 'toClient' || !armed || !data.includes('T')) return data;
        if (data.length < 60) return data;
        armed = false;
        cut();
        return undefined;
      };
      const written = await Promise.all(span(0, 9).map((i) => create(store, `/${round}/${i}`)));
      t.false(armed, 'the response was dropped');
      proxy.heal();
      t.deepEqual(
        written.sort((a, b) => a - b),
        span(before + 1, before + 10),
      );
      t.is((await other.count(everything)).count, (round + 1) * 10);
    }
  });

  test.serial('a write that did not reach the server is sent again, once', async (t) => {
    const proxy = await proxied(t);
    const schema = newSchema();
    const store = await opened(t, schema, { notify: 'off', writeTimeoutMs: 300 }, proxy.port);
    const start = await store.currentRevision();
    for (let round = 0; round < 4; round++) {
      let swallowed = 0;
      const cutOff = round % 2 === 0;
      proxy.onData = (data, direction, cut) => {
        if (direction !== 'toServer' || swallowed > 0 || !data.includes('/lost/')) return data;
        swallowed++;
        if (cutOff) cut();
        return undefined;
      };
      t.is(await create(store, `/lost/${round}`), start + 1 + round);
      t.is(swallowed, 1);
      proxy.heal();
    }
    t.is((await store.count(everything)).count, 4);
  });

  test.serial('an abandoned batch is rejected when it is executed later', async (t) => {
    const schema = newSchema();
    const store = await opened(t, schema);
    const revision = await create(store, '/a');
    const [row] = await at.server.sql('keelson', `select stamp from "${schema}".head()`);
    const apply = (batch: number) =>
      at.server.sql(
        'keelson',
        `select base, created from "${schema}".apply($1, 77, $2, null, '{/late}', '{0}', '{x}', '{null}', '{null}')`,
        [row?.['stamp'], batch],
      );
    const resolve = (batch: number) =>
      at.server.sql('keelson', `select * from "${schema}".resolve(77, $1, $2)`, [batch, revision]);
    t.deepEqual(await resolve(5), []);
    const error = await t.throwsAsync(apply(5));
    t.is((error as { code?: string }).code, 'KS003');
    t.is((await store.get('/late')).entry, undefined);
    await apply(6);
    t.like((await resolve(6))[0], { key: '/late', rev: String(revision + 1) });
  });

  test.serial(
    'a write with an undetermined outcome is reported as OutcomeUnknown, and queued writes have no effect',
    async (t) => {
      const proxy = await proxied(t);
      const schema = newSchema();
      const store = await opened(t, schema, { notify: 'off', connectTimeoutMs: 400 }, proxy.port);
      const other = await opened(t, schema);
      proxy.onData = (data, direction, cut) => {
        if (direction !== 'toServer' || !data.includes('/doubt')) return data;
        proxy.refusing = true;
        setImmediate(cut);
        return data;
      };
      const doubtful = await t.throwsAsync(create(store, '/doubt'));
      t.true(isStorageError(doubtful, 'OutcomeUnknown'), String(doubtful));
      const refused = await t.throwsAsync(create(store, '/waiting'));
      t.true(isStorageError(refused, 'Unavailable'), String(refused));
      t.true(isStorageError(await t.throwsAsync(store.get('/a')), 'Unavailable'));
      proxy.heal();
      t.is((await other.get('/waiting')).entry, undefined);
      await create(store, '/waiting');
    },
  );

  test.serial('reads are retried when their connections end', async (t) => {
    const schema = newSchema();
    const store = await opened(t, schema);
    await Promise.all(span(0, 49).map((i) => create(store, `/${i}`)));
    for (let round = 0; round < 10; round++) {
      await at.server.sql(
        'keelson',
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'keelson'`,
      );
      const counts = await Promise.all(span(0, 5).map(() => store.count(everything)));
      t.deepEqual(new Set(counts.map(({ count }) => count)), new Set([50]));
    }
  });

  test.serial('terminated writers lose no acknowledged write and repeat none', async (t) => {
    const schema = newSchema();
    const store = await opened(t, schema);
    const start = await store.currentRevision();
    const watcher = await Following.open(store, start, true);
    let running = true;
    const acknowledged = new Map<string, number>();
    const unknown: string[] = [];
    const writer = async (name: string) => {
      for (let i = 0; running; i++) {
        const key = `/${name}/${i}`;
        try {
          acknowledged.set(key, await create(store, key));
        } catch (error) {
          if (!isStorageError(error, 'OutcomeUnknown') && !isStorageError(error, 'Unavailable')) throw error;
          if (error.code === 'OutcomeUnknown') unknown.push(key);
        }
      }
    };
    const writers = [...'abcdefgh'].map(writer);
    for (let round = 0; round < 15; round++) {
      const goal = acknowledged.size + 40;
      await waitFor('writes', () => acknowledged.size >= goal);
      await at.server.sql(
        'keelson',
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'keelson' and query like '%.apply(%' and pid <> pg_backend_pid()`,
      );
    }
    running = false;
    await Promise.all(writers);
    await watcher.reached(await store.currentRevision());
    t.deepEqual(unknown, []);
    t.is(watcher.changes.length, acknowledged.size);
    for (const change of watcher.changes) t.is(acknowledged.get(change.key), change.revision);
    t.true(watcher.changes.length >= 600);
    t.log(`${watcher.changes.length} writes, 15 terminations`);
    await watcher.close();
  });

  test.serial(
    'a promoted standby begins an epoch with much higher revisions, and watches without lost changes continue',
    async (t) => {
      const schema = newSchema();
      const store = await opened(t, schema, { connectTimeoutMs: 20_000 });
      const other = await opened(t, schema, { connectTimeoutMs: 20_000 });
      const start = await store.currentRevision();
      const watcher = await Following.open(other, start);
      for (let i = 0; i < 20; i++) await create(store, `/before/${i}`);
      await watcher.reached(start + 20);
      await at.server.kill();
      await at.server.start({ standby: true });
      const writing = Promise.all(span(0, 4).map((i) => create(store, `/after/${i}`)));
      const error = await t.throwsAsync(other.get('/before/0'));
      t.true(isStorageError(error, 'Unavailable'));
      t.regex(error?.message ?? '', /standby/);
      await at.server.sql('keelson', 'select pg_promote()');
      const written = await writing;
      t.true(Math.min(...written) > start + 1_000_000);
      await watcher.reached(Math.max(...written));
      t.deepEqual(watcher.revisions, [...span(start + 1, start + 20), ...written.sort((a, b) => a - b)]);
      for (const each of [store, other]) t.is((await each.identity()).epoch, 2);
      t.is((await other.count(everything, { revision: start + 20 })).count, 20);
      t.true(isStorageError(await t.throwsAsync(other.count(everything, { revision: start + 21 })), 'Compacted'));
      await watcher.close();
    },
  );

  test.serial('after a crash of the database every acknowledged write remains, and watches continue', async (t) => {
    const schema = newSchema();
    const store = await opened(t, schema);
    const other = await opened(t, schema);
    const start = await store.currentRevision();
    const watcher = await Following.open(other, start);
    const acknowledged = new Map<string, number>();
    const unknown = new Set<string>();
    let running = true;
    const writer = async (name: string) => {
      for (let i = 0; running; i++) {
        const key = `/${name}/${i}`;
        try {
          acknowledged.set(key, await create(name < 'c' ? store : other, key));
        } catch (error) {
          if (isStorageError(error, 'OutcomeUnknown')) unknown.add(key);
          else if (!isStorageError(error, 'Unavailable')) throw error;
        }
      }
    };
    const writers = [...'abcd'].map(writer);
    for (let round = 0; round < 3; round++) {
      const goal = acknowledged.size + 100;
      await waitFor('writes', () => acknowledged.size >= goal);
      await at.server.kill();
      await at.server.start();
    }
    const goal = acknowledged.size + 50;
    await waitFor('writes after the last crash', () => acknowledged.size >= goal, 30_000);
    running = false;
    await Promise.all(writers);
    const last = await other.currentRevision();
    await watcher.reached(last, 30_000);
    const seen = new Map(watcher.changes.map((change) => [change.key, change.revision]));
    t.is(seen.size, watcher.changes.length);
    for (const [key, revision] of acknowledged) t.is(seen.get(key), revision);
    for (const key of seen.keys()) t.true(acknowledged.has(key) || unknown.has(key), key);
    t.is((await store.identity()).epoch, 1);
    t.log(`${acknowledged.size} acknowledged, ${unknown.size} unknown, 3 crashes`);
    await watcher.close();
  });
}
