import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { childrenOf, cpuSeconds, familyCpuSeconds, residentBytes } from '../measure/cpu-time.ts';

/** A database server of this run alone, on loopback; its data lies in a folder of its own and goes with it. */
export interface Database {
  /** `http://…` of etcd, `postgres://…` of a database. */
  readonly url: string;
  /** `--storage` of a server; each space is a store of its own. */
  storage(space: string): string;
  /** CPU seconds that its processes have used. */
  cpu(): number;
  /** Resident memory of its processes in bytes. */
  memory(): number;
  stop(): Promise<void>;
}

// The adapters' tests start servers already; they are not part of what the packages export.
const support = (adapter: string, module: string): string =>
  new URL(`../../../../adapters/${adapter}/dist/test/support/${module}.js`, import.meta.url).href;

interface PostgresSupport {
  findPostgres(): string | undefined;
  startPostgres(options: { readonly durable: boolean }): Promise<{
    url(database: string): string;
    createDatabase(name: string): Promise<void>;
    readonly pid: number;
    stop(): Promise<void>;
  }>;
}

interface EtcdSupport {
  findEtcd(wanted?: string): string | undefined;
  readonly EtcdServer: {
    start(binary: string): Promise<{
      readonly url: string;
      readonly port: number;
      readonly pid: number;
      remove(): Promise<void>;
    }>;
  };
}

const postgresSupport = async () => (await import(support('storage-postgres', 'postgres-server'))) as PostgresSupport;
const etcdSupport = async () => (await import(support('storage-etcd3', 'etcd-server'))) as EtcdSupport;

/** Why an adapter cannot be measured here; undefined when it can. `etcd`: see {@link startDatabase}. */
export async function missingServer(adapter: string, etcd?: string): Promise<string | undefined> {
  if (adapter === 'etcd' && (await etcdSupport()).findEtcd(etcd) === undefined) return 'no etcd on this machine';
  if (adapter === 'postgres' && (await postgresSupport()).findPostgres() === undefined)
    return 'no PostgreSQL on this machine';
  return undefined;
}

/**
 * Starts what the adapter needs; undefined for those that need nothing. Commits are flushed to disk as in production.
 *
 * @param etcd kind of the etcd, as `KEELSON_TEST_ETCD` names it
 */
export async function startDatabase(adapter: string, etcd?: string): Promise<Database | undefined> {
  const missing = await missingServer(adapter, etcd);
  if (missing !== undefined) throw new Error(missing);
  if (adapter === 'etcd') {
    const { EtcdServer, findEtcd } = await etcdSupport();
    const server = await EtcdServer.start(findEtcd(etcd) ?? 'etcd');
    return {
      url: server.url,
      storage: (space) => `etcd://127.0.0.1:${server.port}/${space}`,
      cpu: () => cpuSeconds(server.pid),
      memory: () => residentBytes(server.pid),
      stop: () => server.remove(),
    };
  }
  if (adapter === 'postgres') {
    const server = await (await postgresSupport()).startPostgres({ durable: true });
    await server.createDatabase('bench');
    const url = server.url('bench');
    const { pid } = server;
    return {
      url,
      storage: (space) => `${url}?schema=${space}`,
      cpu: () => familyCpuSeconds(pid),
      memory: () => [pid, ...childrenOf(pid)].reduce((sum, process) => sum + residentBytes(process), 0),
      stop: () => server.stop(),
    };
  }
  return undefined;
}

/** Path of pgbench, when it is there. */
export async function findPgbench(): Promise<string | undefined> {
  const folders = [(await postgresSupport()).findPostgres() ?? '', ...(process.env['PATH'] ?? '').split(delimiter)];
  return folders.map((folder) => join(folder, 'pgbench')).find((path) => existsSync(path));
}
