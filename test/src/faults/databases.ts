import { cp, rm } from 'node:fs/promises';
import type { Store } from '@keelson/core/storage-adapter';
import { Etcd3Store } from '@keelson/storage-etcd3';
import { PostgresStore } from '@keelson/storage-postgres';
import test, { type ExecutionContext, type TestFn } from 'ava';

/** A database server of the test's own that several Keelson servers share. */
export interface FaultDatabase {
  readonly port: number;
  /** A `--storage` URL, by way of another port (a proxy) when one is given. */
  storage(parameters: Readonly<Record<string, string>>, port?: number): string;
  kill(): Promise<void>;
  start(): Promise<void>;
  readonly pid: number;
  /**
   * A connection of the test to the store of servers without parameters, or to another store of this name; to be
   * closed.
   */
  open(space?: string): Promise<Store>;
  /** Ends the connections of the database with servers, where it supports this. */
  terminateConnections?(): Promise<void>;
}

// The adapters' tests start servers already; they are not part of what the packages export.
const support = (adapter: string, module: string): string =>
  new URL(`../../../../adapters/${adapter}/dist/test/support/${module}.js`, import.meta.url).href;

interface PostgresServer {
  readonly port: number;
  readonly pid: number;
  url(database: string, port?: number): string;
  createDatabase(name: string): Promise<void>;
  sql(database: string, text: string): Promise<unknown>;
  kill(): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

interface PostgresSupport {
  findPostgres(): string | undefined;
  startPostgres(options: { readonly durable: boolean }): Promise<PostgresServer>;
}

interface EtcdServer {
  readonly port: number;
  readonly pid: number;
  run(): Promise<void>;
  kill(): Promise<void>;
  remove(): Promise<void>;
  readonly dataFolder: string;
}

interface EtcdSupport {
  findEtcd(): string | undefined;
  readonly EtcdServer: { start(binary: string): Promise<EtcdServer> };
}

const etcdSupport = async () => (await import(support('storage-etcd3', 'etcd-server'))) as EtcdSupport;
const postgresSupport = async () => (await import(support('storage-postgres', 'postgres-server'))) as PostgresSupport;

const query = (parameters: Readonly<Record<string, string>>): string => {
  const text = new URLSearchParams(parameters).toString();
  return text === '' ? '' : `?${text}`;
};

/** A database that is not tied to one test. */
export interface OwnDatabase extends FaultDatabase {
  /** Copies what the database holds. */
  keepCopy(): Promise<void>;
  /** Puts the copy in the place of what the database holds now. */
  putBack(): Promise<void>;
  /** Ends the server and removes its data. */
  close(): Promise<void>;
}

/** Undefined where there is no PostgreSQL. */
export async function startPostgresDatabase({
  durable,
}: {
  readonly durable: boolean;
}): Promise<OwnDatabase | undefined> {
  const { findPostgres, startPostgres } = await postgresSupport();
  if (findPostgres() === undefined) return undefined;
  const server = await startPostgres({ durable });
  await server.createDatabase('plane');
  const unsafe: Readonly<Record<string, string>> = durable ? {} : { allowUnsafeServer: 'true' };
  return {
    port: server.port,
    get pid() {
      return server.pid;
    },
    storage: (parameters, port) => server.url('plane', port) + query({ ...unsafe, ...parameters }),
    kill: () => server.kill(),
    start: () => server.start(),
    async open(space) {
      const schema = space === undefined ? {} : { schema: space };
      const store = new PostgresStore({
        url: server.url('plane'),
        notify: 'off',
        allowUnsafeServer: !durable,
        ...schema,
      });
      await store.ready();
      return store;
    },
    async terminateConnections() {
      const others = `application_name = 'keelson' and pid <> pg_backend_pid()`;
      await server.sql('plane', `select pg_terminate_backend(pid) from pg_stat_activity where ${others}`);
    },
    async keepCopy() {
      await server.sql('postgres', 'create database plane_copy template plane');
    },
    async putBack() {
      await server.sql('postgres', 'drop database plane with (force)');
      await server.sql('postgres', 'alter database plane_copy rename to plane');
    },
    close: () => server.stop(),
  };
}

/** Path of an etcd. @throws Error where there is none, see {@link offersDatabase} */
export async function etcdBinary(): Promise<string> {
  const binary = (await etcdSupport()).findEtcd();
  if (binary === undefined) throw new Error('there is no etcd on this machine');
  return binary;
}

/** Undefined where there is no etcd. */
export async function startEtcdDatabase(): Promise<OwnDatabase | undefined> {
  const { findEtcd, EtcdServer } = await etcdSupport();
  const binary = findEtcd();
  if (binary === undefined) return undefined;
  const server = await EtcdServer.start(binary);
  return {
    port: server.port,
    get pid() {
      return server.pid;
    },
    storage: (parameters, port = server.port) => `etcd://127.0.0.1:${port}/plane/${query(parameters)}`,
    kill: () => server.kill(),
    start: () => server.run(),
    async open(space = 'plane') {
      const endpoints = [`http://127.0.0.1:${server.port}`];
      const store = new Etcd3Store({ endpoints, prefix: `/${space}/`, compaction: 'never' });
      await store.ready();
      return store;
    },
    async keepCopy() {
      await server.kill();
      await cp(server.dataFolder, `${server.dataFolder}.copy`, { recursive: true });
      await server.run();
    },
    async putBack() {
      await server.kill();
      await rm(server.dataFolder, { recursive: true });
      await cp(`${server.dataFolder}.copy`, server.dataFolder, { recursive: true });
      await server.run();
    },
    close: () => server.remove(),
  };
}

export type DatabaseName = 'etcd' | 'postgres';

const finders = {
  etcd: async () => (await etcdSupport()).findEtcd(),
  postgres: async () => (await postgresSupport()).findPostgres(),
};

/** Whether this machine has the database. @throws Error in CI, which must have it */
export async function offersDatabase(name: DatabaseName): Promise<boolean> {
  if ((await finders[name]()) !== undefined) return true;
  if (process.env['CI'] === undefined) return false;
  throw new Error(`no ${name} on this machine, and CI must have one`);
}

/**
 * AVA's test function for tests that need the database: they are skipped visibly where there is none.
 * @throws Error in CI
 */
export async function databaseTest(name: DatabaseName): Promise<TestFn> {
  if (await offersDatabase(name)) return test;
  return ((title: string) => test.skip(`${title} (no ${name} on this machine)`, () => {})) as unknown as TestFn;
}

function forTest(t: Pick<ExecutionContext, 'teardown'>, database: OwnDatabase | undefined): FaultDatabase {
  if (database === undefined) throw new Error('there is no such database on this machine');
  t.teardown(() => database.close());
  return database;
}

/** It syncs its log like one in production. @throws Error where there is none, see {@link offersDatabase} */
export async function postgresDatabase(t: Pick<ExecutionContext, 'teardown'>): Promise<FaultDatabase> {
  return forTest(t, await startPostgresDatabase({ durable: true }));
}

/** @throws Error where there is none, see {@link offersDatabase} */
export async function etcdDatabase(t: Pick<ExecutionContext, 'teardown'>): Promise<FaultDatabase> {
  return forTest(t, await startEtcdDatabase());
}
