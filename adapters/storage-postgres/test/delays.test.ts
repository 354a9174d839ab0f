import { describeDelays, rounds } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { PostgresStore, type PostgresStoreOptions } from '../src/index.ts';
import { create, Following, span, waitFor } from './support/following.ts';
import { newSchema } from './support/postgres-harness.ts';
import { TcpProxy } from './support/tcp-proxy.ts';
import { serverFor } from './support/test-server.ts';

const at = serverFor(test, { durable: true });

/** The safety poll runs at least every second; the rest is a margin for a busy machine. */
const pollMs = 1000;
const slackMs = 2000;

interface Scene {
  readonly t: ExecutionContext;
  readonly what: string;
  readonly count: number;
  readonly writer?: PostgresStoreOptions;
  readonly reader?: PostgresStoreOptions;
  before(round: number): Promise<void>;
  after?(): Promise<void>;
}

/** One server writes, another one watches, and before each write a fault is injected between them. */
async function measure({ t, what, count, writer: writing, reader: reading, before, after }: Scene): Promise<void> {
  t.timeout(60_000 + count * 20_000);
  const schema = newSchema();
  const open = async (options: PostgresStoreOptions = {}) => {
    const store = new PostgresStore({ url: at?.server.url('keelson') ?? '', schema, readers: 3, ...options });
    t.teardown(() => store.close());
    await store.ready();
    return store;
  };
  const writer = await open(writing);
  const reader = await open(reading);
  const start = await reader.currentRevision();
  const watcher = await Following.open(reader, start);
  const delays: number[] = [];
  let last = start;
  for (let round = 0; round < count; round++) {
    await before(round);
    const written = performance.now();
    last = await create(writer, `/${round}`);
    await watcher.reached(last);
    delays.push((watcher.at.at(-1) ?? Number.POSITIVE_INFINITY) - written);
    await after?.();
  }
  t.log(describeDelays(what, delays));
  t.deepEqual(watcher.revisions, span(start + 1, last), 'no change is lost or repeated');
  t.true(Math.max(...delays) < pollMs + slackMs, 'the safety poll bounds the delay');
  await watcher.close();
}

if (at !== undefined) {
  test.serial('after a terminated listener a change is delivered once, within the interval of the safety poll', (t) =>
    measure({
      t,
      what: 'listener terminated',
      count: rounds(10, 200),
      async before() {
        await at.server.sql(
          'keelson',
          `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'keelson' and pid <> pg_backend_pid()
           and (query ilike 'listen%' or query ilike '%pg_notify(%' or query = 'select 1')`,
        );
      },
    }),
  );

  test.serial(
    'after a half-open listener a change is delivered once, within the interval of the safety poll',
    async (t) => {
      const proxy = await TcpProxy.start(at.server.port);
      t.teardown(() => proxy.stop());
      await measure({
        t,
        what: 'listener half-open',
        count: rounds(6, 100),
        reader: { listenUrl: at.server.url('keelson', proxy.port) },
        async before() {
          await waitFor('the listener', () => proxy.connections > 0);
          proxy.blackHole();
        },
        async after() {
          proxy.cutAll();
          proxy.heal();
        },
      });
    },
  );

  test.serial('without notifications a change is delivered once, within the interval of the safety poll', (t) =>
    measure({
      t,
      what: 'all notifications lost',
      count: rounds(6, 200),
      writer: { notify: 'off' },
      // Spread over the time between two polls.
      before: (round) => new Promise((resolve) => setTimeout(resolve, (round * 137) % 500)),
    }),
  );

  test.serial('without notifications a change in an idle store is delivered by the poll of each second', (t) =>
    measure({
      t,
      what: 'all notifications lost, store idle for six seconds',
      count: rounds(1, 20),
      writer: { notify: 'off' },
      // After five seconds without a change the polls are a second apart.
      before: (round) => new Promise((resolve) => setTimeout(resolve, 6000 + ((round * 137) % 1000))),
    }),
  );
}
