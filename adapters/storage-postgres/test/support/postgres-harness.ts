import type { OpenedStore, StoreHarness } from '@keelson/conformance';
import { PostgresStore, type PostgresStoreOptions } from '../../src/index.ts';
import type { PostgresServer } from './postgres-server.ts';

export interface OpenedPostgres extends OpenedStore {
  readonly store: PostgresStore;
  readonly schema: string;
}

let schemas = 0;

export function newSchema(): string {
  schemas++;
  return `s${process.pid}_${schemas}`;
}

/** Makes the time of a store stand still, so that `advance` alone moves it. */
async function freeze(server: PostgresServer, schema: string): Promise<void> {
  await server.sql(
    'keelson',
    `create table "${schema}".test_clock as select "${schema}".now_ms() as now;
     create or replace function "${schema}".now_ms() returns bigint language sql volatile as 'select now from "${schema}".test_clock'`,
  );
}

/** A harness over one database, in which every store has a schema of its own. */
export function postgresHarness(
  name: string,
  at: { readonly server: PostgresServer },
  options: PostgresStoreOptions = {},
): StoreHarness<OpenedPostgres> {
  const openOn = async (schema: string): Promise<OpenedPostgres> => {
    const store = new PostgresStore({
      url: at.server.url('keelson'),
      schema,
      readers: 3,
      allowUnsafeServer: true,
      ...options,
    });
    await store.ready();
    return {
      store,
      schema,
      async dispose() {
        await store.close();
        await at.server.sql('keelson', `drop schema if exists "${schema}" cascade`);
      },
    };
  };
  return {
    name,
    capabilities: new PostgresStore().capabilities,
    async open() {
      const opened = await openOn(newSchema());
      await freeze(at.server, opened.schema);
      return opened;
    },
    async advance({ store, schema }, ms) {
      await at.server.sql('keelson', `update "${schema}".test_clock set now = now + ${ms}`);
      await store.maintain();
    },
    async reopen({ store, schema }) {
      await store.close();
      return openOn(schema);
    },
    // The database sees the same as when the process dies: every connection breaks off, and nobody says goodbye.
    async killAndReopen({ store, schema }) {
      await at.server.sql(
        'keelson',
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'keelson' and pid <> pg_backend_pid()`,
      );
      const opened = await openOn(schema);
      await store.close();
      return opened;
    },
  };
}
