import type { Store } from '@keelson/core';
import { Etcd3Store } from '@keelson/storage-etcd3';
import { PostgresStore } from '@keelson/storage-postgres';
import type { ExecutionContext } from 'ava';

/** A database server of the test's own that several Keelson servers share. */
export interface FaultDatabase {
  readonly port: number;
  /** A `--storage` URL, by way of another port (a proxy) when one is given. */
  storage(parameters: Readonly<Record<string, string>>, port?: number): string;
  kill(): Promise<void>;
  start(): Promise<void>;
  readonly pid: number;
  /** A connection of the test's own to what servers with the same parameters use; to be closed. */
  open(): Promise<Store>;
  /** Ends the connections that the database has with servers, where it can be told to. */
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
}

interface EtcdSupport {
  findEtcd(): string | undefined;
  readonly EtcdServer: { start(binary: string): Promise<EtcdServer> };
}

const query = (parameters: Readonly<Record<string, string>>): string => {
  const text = new URLSearchParams(parameters).toString();
  return text === '' ? '' : `?${text}`;
};

/** Undefined where there is no PostgreSQL. It syncs its log like one in production. */
export async function postgresDatabase(t: ExecutionContext): Promise<FaultDatabase | undefined> {
  const { findPostgres, startPostgres } = (await import(support('storage-postgres', 'postgres-server'))) as PostgresSupport;
  if (findPostgres() === undefined) return undefined;
  const server = await startPostgres({ durable: true });
  t.teardown(() => server.stop());
  await server.createDatabase('plane');
  return {
    port: server.port,
    get pid() {
      return server.pid;
    },
    storage: (parameters, port) => server.url('plane', port) + query(parameters),
    kill: () => server.kill(),
    start: () => server.start(),
    async open() {
      const store = new PostgresStore({ url: server.url('plane'), notify: 'off' });
      await store.ready();
      return store;
    },
    async terminateConnections() {
      const others = `application_name = 'keelson' and pid <> pg_backend_pid()`;
      await server.sql('plane', `select pg_terminate_backend(pid) from pg_stat_activity where ${others}`);
    },
  };
}

/** Undefined where there is no etcd. */
export async function etcdDatabase(t: ExecutionContext): Promise<FaultDatabase | undefined> {
  const { findEtcd, EtcdServer } = (await import(support('storage-etcd3', 'etcd-server'))) as EtcdSupport;
  const binary = findEtcd();
  if (binary === undefined) return undefined;
  const server = await EtcdServer.start(binary);
  t.teardown(() => server.remove());
  return {
    port: server.port,
    get pid() {
      return server.pid;
    },
    storage: (parameters, port = server.port) => `etcd://127.0.0.1:${port}/plane/${query(parameters)}`,
    kill: () => server.kill(),
    start: () => server.run(),
    async open() {
      const store = new Etcd3Store({ endpoints: [`http://127.0.0.1:${server.port}`], prefix: '/plane/', compaction: 'never' });
      await store.ready();
      return store;
    },
  };
}
