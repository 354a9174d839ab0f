import { setTimeout as pause } from 'node:timers/promises';
import type { OpenedStore, StoreHarness } from '@keelson/conformance';
import pg from 'pg';
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

/** Replaces the clock of a store by one that only `advance` moves. */
const freeze = (schema: string) => `
  create table "${schema}".test_clock as select "${schema}".now_ms() as now;
  create or replace function "${schema}".now_ms() returns bigint language sql volatile
    as 'select now from "${schema}".test_clock'`;

/** More rows than this are not deleted for the next store: their dead versions would slow it down. */
const mostRows = 2000;

/**
 * Turns the schema of a closed store into that of a new, empty store, which takes a fifth of the time of a migration.
 * Drops it instead when the store was large, or when the partitions are not those of a new store. The result of the
 * last statement is a row if the schema can be used.
 */
const reset = (schema: string) => `
  do $body$
  declare
    v_size bigint := (select partition_revs from "${schema}".meta);
    v_parts text[] := (select array_agg(c.relname::text order by c.relname::text) from pg_inherits i
      join pg_class c on c.oid = i.inhrelid where i.inhparent = '"${schema}".log'::regclass);
    v_initial text[] := (select array_agg('log_' || n * v_size order by 'log_' || n * v_size) from generate_series(0, 2) n);
    v_rows bigint := (select count(*) from "${schema}".objects) + (select count(*) from "${schema}".log);
  begin
    if v_parts is distinct from v_initial or v_rows > ${mostRows} then
      drop schema "${schema}" cascade;
      return;
    end if;
    delete from "${schema}".objects;
    delete from "${schema}".log;
    delete from "${schema}".marks;
    delete from "${schema}".lost;
    delete from "${schema}".fences;
    delete from "${schema}".meta;
    insert into "${schema}".meta (timeline, system_id, partition_revs)
      values ("${schema}".timeline(), "${schema}".system_id(), v_size);
    update "${schema}".test_clock set now = (extract(epoch from clock_timestamp()) * 1000)::bigint;
  end $body$;
  select 1 from pg_namespace where nspname = '${schema}'`;

const connectionsOfStores = `select pid from pg_stat_activity where application_name = 'keelson'`;

/** Runs statements as superuser over one connection that stays open until the server stops. */
class Administration {
  readonly #at: { readonly server: PostgresServer };
  #client: Promise<pg.Client> | undefined;

  constructor(at: { readonly server: PostgresServer }) {
    this.#at = at;
  }

  /** Gives the rows of the last statement. */
  async run(text: string): Promise<readonly unknown[]> {
    this.#client ??= this.#connect();
    const client = await this.#client;
    const results: unknown = await client.query(text);
    const last = (Array.isArray(results) ? results.at(-1) : results) as pg.QueryResult;
    return last.rows;
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: this.#at.server.direct('keelson') });
    client.on('error', () => {
      this.#client = undefined;
    });
    await client.connect();
    return client;
  }
}

/**
 * A harness over one database, in which every store has a schema of its own; a schema is used by one store at a time.
 */
export function postgresHarness(
  name: string,
  at: { readonly server: PostgresServer },
  options: PostgresStoreOptions = {},
): StoreHarness<OpenedPostgres> {
  const administration = new Administration(at);
  const emptySchemas: string[] = [];
  /**
   * Whether the server has ended the connections of all stores, within two seconds. A store that is closed during a
   * call cuts its connection, and the server still executes the statement that it has received. In a schema that was
   * reset meanwhile, that statement would find revisions lost and begin another epoch.
   */
  const allEnded = async () => {
    const deadline = performance.now() + 2_000;
    while ((await administration.run(connectionsOfStores)).length > 0) {
      if (performance.now() > deadline) return false;
      await pause(5);
    }
    return true;
  };
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
        const statement = (await allEnded()) ? reset(schema) : `drop schema "${schema}" cascade`;
        if ((await administration.run(statement)).length > 0) emptySchemas.push(schema);
      },
    };
  };
  return {
    name,
    capabilities: new PostgresStore().capabilities,
    async open() {
      const empty = emptySchemas.pop();
      const opened = await openOn(empty ?? newSchema());
      if (empty === undefined) await administration.run(freeze(opened.schema));
      return opened;
    },
    async advance({ store, schema }, ms) {
      await administration.run(`update "${schema}".test_clock set now = now + ${ms}`);
      await store.maintain();
    },
    async reopen({ store, schema }) {
      await store.close();
      return openOn(schema);
    },
    // As if the process had been killed: every connection ends without Terminate.
    async killAndReopen({ store, schema }) {
      await administration.run(
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'keelson' and pid <> pg_backend_pid()`,
      );
      const opened = await openOn(schema);
      await store.close();
      return opened;
    },
  };
}
