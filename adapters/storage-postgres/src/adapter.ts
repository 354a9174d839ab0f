import { type Infer, optional, s } from '@keelson/core';
import { ClockToken, LoggerToken, MetricsToken } from '@keelson/core/runtime';
import type { StorageAdapter } from '@keelson/core/storage-adapter';
import { StoreToken } from '@keelson/core/storage-adapter';
import { parsePostgresUrl } from './parse-url.ts';
import { PostgresStore } from './postgres-store.ts';
import type { PostgresStoreOptions } from './settings.ts';

const historySchema = s.message(
  'keelson.storage.postgres.History',
  'The history that readers and watchers of old revisions can use.',
  {
    minChanges: optional(undefined, s.int64({ minimum: 0 }), 'Number of changes that are kept at least; default 1000.'),
    minAgeMs: optional(
      undefined,
      s.int64({ minimum: 0 }),
      'Changes younger than this many milliseconds are kept; default 300000.',
    ),
  },
);

const optionsSchema = s.message('keelson.storage.postgres.Options', 'A store in a schema of a PostgreSQL database.', {
  url: optional(
    undefined,
    s.string(),
    'postgres://user@host/database; missing parts come from the other fields, then from the PG* variables.',
  ),
  host: optional(undefined, s.string(), 'Host name, address or directory of the socket.'),
  port: optional(undefined, s.int32({ minimum: 1, maximum: 65_535 }), 'Port; default 5432.'),
  user: optional(undefined, s.string(), 'Role to connect as.'),
  password: optional(undefined, s.string(), 'Password of the role; a password file or PGPASSWORD is preferable.'),
  database: optional(undefined, s.string(), 'Database; default the name of the role.'),
  tls: optional(undefined, s.bool(), 'Connect with TLS and verify the server.'),
  listenUrl: optional(undefined, s.string(), 'A direct connection for LISTEN, when url leads to a pooler.'),
  schema: optional(undefined, s.string(), 'Schema that contains the store; created when missing. Default keelson.'),
  notify: optional(
    undefined,
    s.enum('after', 'txn', 'off'),
    'How other servers are notified of writes; default after the commit.',
  ),
  history: optional(undefined, historySchema, 'The history window.'),
  readers: optional(undefined, s.int32({ minimum: 1 }), 'Maximum number of connections for reads; default 6.'),
  readTimeoutMs: optional(undefined, s.int64({ minimum: 1 }), 'Time limit of a read in milliseconds; default 15000.'),
  writeTimeoutMs: optional(
    undefined,
    s.int64({ minimum: 1 }),
    'Milliseconds after which an answer to writes counts as lost; default 15000.',
  ),
  connectTimeoutMs: optional(
    undefined,
    s.int64({ minimum: 1 }),
    'Milliseconds that writes wait for the database to be reachable; default 10000.',
  ),
  allowAsyncCommit: optional(
    undefined,
    s.bool(),
    'Accept synchronous_commit = off, and with it the loss of acknowledged writes.',
  ),
  allowUnsafeServer: optional(
    undefined,
    s.bool(),
    'Accept fsync = off or full_page_writes = off, and with it a damaged database after a crash of its machine.',
  ),
  preparedStatements: optional(
    undefined,
    s.bool(),
    'Use named statements; default: only without a pooler between adapter and database.',
  ),
  partitionRevisions: optional(
    undefined,
    s.int64({ minimum: 1 }),
    'Revisions per partition of the log, fixed when the store is created; default 262144.',
  ),
});

/** Options of the adapter in a config file. */
export type PostgresAdapterOptions = Infer<typeof optionsSchema>;

/** The adapter behind `--storage postgres:`. */
export const postgresAdapter: StorageAdapter<PostgresAdapterOptions> = {
  name: 'postgres',
  optionsSchema,
  parseUrl: parsePostgresUrl,
  module: (options) => (bind) => {
    bind(StoreToken, [ClockToken, LoggerToken, MetricsToken], (clock, logger, metrics) => {
      const settings: PostgresStoreOptions = { ...options, clock, logger, metrics };
      return new PostgresStore(settings);
    });
  },
};
