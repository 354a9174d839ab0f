import type { ConnectionOptions } from 'node:tls';
import { type Clock, type Logger, type Metrics, noMetrics, silentLogger, systemClock } from '@keelson/core';
import type { ClientConfig } from 'pg';

/** What is kept for readers and watchers of the past: both hold, so whichever keeps more. */
export interface HistoryOptions {
  /** Changes, default 1000. */
  readonly minChanges?: number;
  /** Milliseconds, default five minutes. */
  readonly minAgeMs?: number;
}

/**
 * How other servers learn of a write. `after`: by a notification that follows the commit, several commits in one;
 * `txn`: by one within the commit, sooner and at the cost of throughput; `off`: only by asking the database now and
 * then.
 */
export type NotifyMode = 'after' | 'txn' | 'off';

export interface PostgresStoreOptions {
  /** `postgres://user@host/database`; what it leaves out comes from the fields below, then from the `PG*` variables. */
  readonly url?: string;
  readonly host?: string;
  readonly port?: number;
  readonly user?: string;
  readonly password?: string;
  readonly database?: string;
  /** TLS of the connections; `true` verifies the server with the system's authorities. */
  readonly tls?: boolean | ConnectionOptions;
  /** Where to LISTEN, and where to do what needs a session, when `url` leads to a pooler; default `url`. */
  readonly listenUrl?: string;
  /** The schema that holds the store; made when missing. Each schema is a store of its own. Default `keelson`. */
  readonly schema?: string;
  /** Default `after`. */
  readonly notify?: NotifyMode;
  readonly history?: HistoryOptions;
  /** Connections for reads, at most; default 6. */
  readonly readers?: number;
  /** Milliseconds that one read may take, default 15 s. */
  readonly readTimeoutMs?: number;
  /** Milliseconds that a batch of writes may take before it is looked for on another connection, default 15 s. */
  readonly writeTimeoutMs?: number;
  /** Milliseconds that writes wait for a connection, and a lost answer is looked for, default 10 s. */
  readonly connectTimeoutMs?: number;
  /**
   * Open the store although `synchronous_commit` is off, so that a crash of the database may take back acknowledged
   * writes.
   */
  readonly allowAsyncCommit?: boolean;
  /**
   * Open the store although `fsync` or `full_page_writes` is off, so that a crash of the machine may destroy the
   * database.
   */
  readonly allowUnsafeServer?: boolean;
  /** Named statements. Default: on connections that lead directly to the database, and not through a pooler. */
  readonly preparedStatements?: boolean;
  /** Revisions per partition of the log, settled when the store is made; default 262144. */
  readonly partitionRevisions?: number;
  readonly clock?: Clock;
  readonly logger?: Logger;
  readonly metrics?: Metrics;
}

/** The options with everything filled in. */
export interface Settings {
  readonly connection: ClientConfig;
  /** For sessions: LISTEN, and what cannot run in a transaction. */
  readonly direct: ClientConfig;
  readonly schema: string;
  readonly notify: NotifyMode;
  readonly minChanges: number;
  readonly minAgeMs: number;
  readonly readers: number;
  readonly readTimeoutMs: number;
  readonly writeTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly allowAsyncCommit: boolean;
  readonly allowUnsafeServer: boolean;
  /** Undefined: unless there is a pooler in between. */
  readonly preparedStatements: boolean | undefined;
  readonly partitionRevisions: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** Fields are strings and stay strings; what they mean is decided where they are read. */
const types = { getTypeParser: () => (text: string) => text } as unknown as NonNullable<ClientConfig['types']>;

function connectionOf(options: PostgresStoreOptions, url: string | undefined, timeoutMs: number): ClientConfig {
  const { host, port, user, password, database, tls } = options;
  const config: ClientConfig = {
    application_name: 'keelson',
    keepAlive: true,
    keepAliveInitialDelayMillis: 5000,
    connectionTimeoutMillis: Math.min(timeoutMs, 5000),
    types,
  };
  if (host !== undefined) config.host = host;
  if (port !== undefined) config.port = port;
  if (user !== undefined) config.user = user;
  if (password !== undefined) config.password = password;
  if (database !== undefined) config.database = database;
  if (tls !== undefined) config.ssl = tls;
  if (url !== undefined) config.connectionString = url;
  return config;
}

/** @throws Error with a sentence for people. */
export function settle(options: PostgresStoreOptions): Settings {
  const { schema = 'keelson', readers = 6, partitionRevisions = 262_144, connectTimeoutMs = 10_000 } = options;
  if (!/^[a-zA-Z_][\w$-]*$/.test(schema) || schema.length > 63 || schema.startsWith('pg_')) {
    throw new Error(
      `a schema is a name of letters, digits, "_" and "-" that does not begin with pg_, got ${JSON.stringify(schema)}`,
    );
  }
  if (!Number.isSafeInteger(readers) || readers < 1) throw new Error(`readers is a positive number, got ${readers}`);
  if (!Number.isSafeInteger(partitionRevisions) || partitionRevisions < 1) {
    throw new Error(`partitionRevisions is a positive number, got ${partitionRevisions}`);
  }
  return {
    connection: connectionOf(options, options.url, connectTimeoutMs),
    direct: connectionOf(options, options.listenUrl ?? options.url, connectTimeoutMs),
    schema,
    notify: options.notify ?? 'after',
    minChanges: options.history?.minChanges ?? 1000,
    minAgeMs: options.history?.minAgeMs ?? 300_000,
    readers,
    readTimeoutMs: options.readTimeoutMs ?? 15_000,
    writeTimeoutMs: options.writeTimeoutMs ?? 15_000,
    connectTimeoutMs,
    allowAsyncCommit: options.allowAsyncCommit ?? false,
    allowUnsafeServer: options.allowUnsafeServer ?? false,
    preparedStatements: options.preparedStatements,
    partitionRevisions,
    clock: options.clock ?? systemClock,
    logger: (options.logger ?? silentLogger).child({ component: 'storage-postgres', schema }),
    metrics: options.metrics ?? noMetrics,
  };
}
