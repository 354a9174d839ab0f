import type { ConnectionOptions } from 'node:tls';
import { type Clock, type Logger, type Metrics, noMetrics, silentLogger, systemClock } from '@keelson/core/runtime';
import type { ClientConfig } from 'pg';

/** The history that readers and watchers of old revisions can use; both bounds apply. */
export interface HistoryOptions {
  /** Number of changes that are kept at least. Default 1000. */
  readonly minChanges?: number;
  /** Changes younger than this many milliseconds are kept. Default five minutes. */
  readonly minAgeMs?: number;
}

/**
 * How other servers are notified of a write. `after`: by a notification after the commit, which several commits share;
 * `txn`: by a notification within the commit, which arrives sooner and costs throughput; `off`: only by polling.
 */
export type NotifyMode = 'after' | 'txn' | 'off';

export interface PostgresStoreOptions {
  /** `postgres://user@host/database`; missing parts come from the fields below, then from the `PG*` variables. */
  readonly url?: string;
  readonly host?: string;
  readonly port?: number;
  readonly user?: string;
  readonly password?: string;
  readonly database?: string;
  /** TLS of the connections; `true` verifies the server with the certificate authorities of the system. */
  readonly tls?: boolean | ConnectionOptions;
  /** Connection for LISTEN and for statements that need a session, when `url` leads to a pooler; default `url`. */
  readonly listenUrl?: string;
  /** The schema that contains the store; created when missing. Each schema is a separate store. Default `keelson`. */
  readonly schema?: string;
  /** Default `after`. */
  readonly notify?: NotifyMode;
  readonly history?: HistoryOptions;
  /** Maximum number of connections for reads; default 6. */
  readonly readers?: number;
  /** Time limit of a read in milliseconds; default 15 s. */
  readonly readTimeoutMs?: number;
  /** Milliseconds after which the outcome of a batch of writes is determined on another connection; default 15 s. */
  readonly writeTimeoutMs?: number;
  /** Milliseconds that writes, and the resolution of a lost answer, wait for a connection; default 10 s. */
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
  /** Use named statements. Default: only on connections without a pooler. */
  readonly preparedStatements?: boolean;
  /** Revisions per partition of the log, fixed when the store is created; default 262144. */
  readonly partitionRevisions?: number;
  readonly clock?: Clock;
  readonly logger?: Logger;
  readonly metrics?: Metrics;
}

/** The options with all defaults. */
export interface Settings {
  readonly connection: ClientConfig;
  /** Connection for LISTEN and for statements that cannot run in a transaction. */
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
  /** Whether named statements are used; undefined: only on connections without a pooler. */
  readonly preparedStatements: boolean | undefined;
  readonly partitionRevisions: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** Leaves all fields as text; the code that reads a field converts it. */
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

/** Adds the defaults. @throws Error with a message for users, when an option is invalid */
export function resolveSettings(options: PostgresStoreOptions): Settings {
  const { schema = 'keelson', readers = 6, partitionRevisions = 262_144, connectTimeoutMs = 10_000 } = options;
  if (!/^[a-zA-Z_][\w$-]*$/.test(schema) || schema.length > 63 || schema.startsWith('pg_')) {
    throw new Error(
      `a schema is a name of letters, digits, "_" and "-" that does not begin with pg_, got ${JSON.stringify(schema)}`,
    );
  }
  if (!Number.isSafeInteger(readers) || readers < 1)
    throw new Error(`readers must be a positive number, got ${readers}`);
  if (!Number.isSafeInteger(partitionRevisions) || partitionRevisions < 1) {
    throw new Error(`partitionRevisions must be a positive number, got ${partitionRevisions}`);
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
