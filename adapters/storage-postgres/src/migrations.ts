import { readdir, readFile } from 'node:fs/promises';
import { StorageError, StorageErrorCode } from '@keelson/core';
import type { Client } from 'pg';
import type { Settings } from './settings.ts';

const folder = new URL('../../sql/', import.meta.url);

export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

/** The numbered SQL files of this package, in order. `:"schema"` and `:'schema'` stand for the name, as in psql. */
export async function readMigrations(): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => /^\d{4}-.*\.sql$/.test(name)).sort();
  return Promise.all(
    names.map(async (name) => ({
      version: Number(name.slice(0, 4)),
      name,
      sql: await readFile(new URL(name, folder), 'utf8'),
    })),
  );
}

/**
 * Migrates the schema to the version of this package. Each file runs in a transaction that begins by inserting its own
 * number, so that one of several servers that start together runs it and the others skip it.
 *
 * @throws StorageError `Unavailable` when the schema is newer than this package
 */
export async function migrate(client: Client, settings: Settings, migrations: readonly Migration[]): Promise<void> {
  const { schema, logger } = settings;
  const known = migrations.at(-1)?.version ?? 0;
  let current = await versionOf(client, schema);
  if (current > known) {
    throw new StorageError(
      StorageErrorCode.Unavailable,
      `schema "${schema}" has version ${current}, this version of Keelson supports up to ${known}; ` +
        'start the newer version',
    );
  }
  for (const migration of migrations) {
    if (migration.version <= current) continue;
    const done = await inTransaction(client, async () => {
      // Concurrent creation of the same schema or table is an error even with "if not exists".
      await client.query(`select pg_advisory_xact_lock(hashtextextended('keelson migrate ' || '${schema}', 0))`);
      const { rows } = await client.query<string[]>({
        text: `select 1 from pg_namespace where nspname = '${schema}'`,
        rowMode: 'array',
      });
      if (rows.length === 0) await client.query(`create schema "${schema}"`);
      await client.query(`create table if not exists "${schema}".migrations
        (version integer primary key, name text not null, applied_at timestamptz not null default now())`);
      const inserted = await client.query(
        `insert into "${schema}".migrations (version, name) values ($1, $2) on conflict do nothing`,
        [migration.version, migration.name],
      );
      if (inserted.rowCount === 0) return false;
      await client.query(migration.sql.replaceAll(':"schema"', `"${schema}"`).replaceAll(":'schema'", `'${schema}'`));
      if (migration.version === 1) await createStore(client, settings);
      return true;
    });
    if (done) logger.info('schema migrated', { migration: migration.name });
    current = migration.version;
  }
}

/** Inserts the row with the identity of the store. Part of the first migration, so that no store lacks it. */
async function createStore(client: Client, { schema, partitionRevisions }: Settings): Promise<void> {
  await client.query(
    `insert into "${schema}".meta (timeline, system_id, partition_revs)
      values ("${schema}".timeline(), "${schema}".system_id(), $1)`,
    [partitionRevisions],
  );
  await client.query(`select "${schema}".extend_log()`);
}

async function versionOf(client: Client, schema: string): Promise<number> {
  const exists = await client.query<(string | null)[]>({
    text: `select to_regclass('"${schema}".migrations')::text`,
    rowMode: 'array',
  });
  if (exists.rows[0]?.[0] === null) return 0;
  const { rows } = await client.query<string[]>({
    text: `select coalesce(max(version), 0) from "${schema}".migrations`,
    rowMode: 'array',
  });
  return Number(rows[0]?.[0]);
}

async function inTransaction<T>(client: Client, work: () => Promise<T>): Promise<T> {
  await client.query('begin');
  try {
    const result = await work();
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback').catch(() => {});
    throw error;
  }
}
