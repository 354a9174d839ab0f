import { StorageError, StorageErrorCode } from '@keelson/core';
import type { ClientBase } from 'pg';
import type { Settings } from './settings.ts';

const oldestServer = 140_000;

const query = `select current_setting('server_version_num'), pg_is_in_recovery(), current_setting('synchronous_commit'),
  current_setting('server_encoding'), current_setting('default_transaction_isolation'), current_setting('fsync'),
  current_setting('full_page_writes'), pg_backend_pid()`;

function refuse(reason: string): never {
  throw new StorageError(StorageErrorCode.Unavailable, reason);
}

const pooled = new WeakSet<object>();

/**
 * Returns whether a pooler is between this connection and the database: the id of the process that answers differs from
 * the id in the cancellation key, because a pooler issues its own keys. In transaction mode each transaction may run in
 * another session, so that nothing may depend on a session: no named statement, no setting, no lock. Session mode
 * cannot be distinguished from transaction mode and is treated like it.
 */
export function isPooled(connection: object): boolean {
  return pooled.has(connection);
}

/**
 * Inspects a new connection, since another server than before may answer at the same address. Determines
 * {@link isPooled}.
 *
 * @throws StorageError `Unavailable` when the store could not keep its guarantees over this connection
 */
export async function inspectConnection(client: ClientBase, settings: Settings): Promise<void> {
  const { rows } = await client.query<(string | null)[]>({ text: query, rowMode: 'array' });
  const [version, standby, commit, encoding, isolation, fsync, pageWrites, backend] = rows[0] ?? [];
  if (Number(version) < oldestServer) {
    refuse(`PostgreSQL 14 or later is needed, the server has version number ${version}`);
  }
  if (standby === 't') refuse('the server is a standby, which accepts no writes');
  if (encoding !== 'UTF8') refuse(`the database must have encoding UTF8, it has ${encoding}`);
  if (isolation !== 'read committed') {
    refuse(`default_transaction_isolation must be "read committed", it is "${isolation}"`);
  }
  if (commit === 'off' && !settings.allowAsyncCommit) {
    refuse(
      'synchronous_commit is off: a crash of the database would take back acknowledged writes; ' +
        'turn it on for this role or database, or set allowAsyncCommit',
    );
  }
  const unsafe = fsync === 'off' ? 'fsync' : pageWrites === 'off' ? 'full_page_writes' : undefined;
  if (unsafe !== undefined && !settings.allowUnsafeServer) {
    refuse(
      `${unsafe} is off: a crash of the machine would damage the database; ` +
        'turn it on in the configuration of the server, or set allowUnsafeServer',
    );
  }
  // The driver keeps the announced process id, but not in its public types.
  const { processID } = client as unknown as { readonly processID: number | null };
  if (Number(backend) !== processID) pooled.add(client);
}
