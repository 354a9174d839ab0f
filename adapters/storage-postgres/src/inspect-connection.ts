import { StorageError, StorageErrorCode } from '@keelson/core';
import type { ClientBase } from 'pg';
import type { Settings } from './settings.ts';

const oldestServer = 140_000;

const query = `select current_setting('server_version_num'), pg_is_in_recovery(), current_setting('synchronous_commit'),
  current_setting('server_encoding'), current_setting('default_transaction_isolation')`;

function refuse(reason: string): never {
  throw new StorageError(StorageErrorCode.Unavailable, reason);
}

/**
 * Looks a new connection over: another server may answer behind the same address than the time before.
 *
 * @throws StorageError `Unavailable` when the store could not keep its promises over this connection.
 */
export async function inspectConnection(client: ClientBase, settings: Settings): Promise<void> {
  const { rows } = await client.query<(string | null)[]>({ text: query, rowMode: 'array' });
  const [version, standby, commit, encoding, isolation] = rows[0] ?? [];
  if (Number(version) < oldestServer) {
    refuse(`PostgreSQL 14 or later is needed, the server has version number ${version}`);
  }
  if (standby === 't') refuse('the server is a standby, which takes no writes');
  if (encoding !== 'UTF8') refuse(`the database must have encoding UTF8, it has ${encoding}`);
  if (isolation !== 'read committed') {
    refuse(`default_transaction_isolation must be "read committed", it is "${isolation}"`);
  }
  if (commit === 'off' && !settings.allowAsyncCommit) {
    refuse(
      'synchronous_commit is off: a crash of the database would take back acknowledged writes; turn it on for this role or database, or set allowAsyncCommit',
    );
  }
}
