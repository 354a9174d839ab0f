import type { Revision } from '@keelson/core/storage-adapter';
import type { Client } from 'pg';
import type { Database } from './database.ts';
import { isPooled } from './inspect-connection.ts';
import { discard } from './open-connections.ts';
import type { Settings } from './settings.ts';

const lockTimeoutMs = 1000;

/**
 * Drops the partitions of the log that lie wholly at or below `compacted`. They are detached without blocking readers
 * or writers, then dropped. When two servers do so at the same time, one of them stops; the next run drops the
 * remaining partitions.
 *
 * @returns the number of dropped partitions
 */
export async function dropPartitions(
  settings: Settings,
  db: Database,
  compacted: Revision,
  partitionRevisions: number,
): Promise<number> {
  const old = await oldPartitions(db, compacted, partitionRevisions);
  if (old.length === 0) return 0;
  const { schema } = settings;
  // Detaching cannot run in a transaction, so it needs a session without a pooler.
  const client = await db.connect(true);
  const cancel = settings.clock.after(60_000, () => discard(client));
  try {
    return isPooled(client) ? await dropInTransactions(client, schema, old) : await dropInSession(client, schema, old);
  } finally {
    cancel();
    discard(client);
  }
}

const lockName = (schema: string): string => `hashtextextended('keelson drop ' || '${schema}', 0)`;

async function isLocked(client: Client, lock: string): Promise<boolean> {
  const { rows } = await client.query<(string | null)[]>({ text: `select ${lock}`, rowMode: 'array' });
  return rows[0]?.[0] === 't';
}

async function dropInSession(client: Client, schema: string, old: readonly Partition[]): Promise<number> {
  let dropped = 0;
  if (!(await isLocked(client, `pg_try_advisory_lock(${lockName(schema)})`))) return 0;
  await client.query(`set lock_timeout to ${lockTimeoutMs}`);
  for (const { name, attached, pending } of old) {
    const log = `"${schema}".log`;
    const part = `"${schema}"."${name}"`;
    if (pending) await client.query(`alter table ${log} detach partition ${part} finalize`);
    else if (attached) await client.query(`alter table ${log} detach partition ${part} concurrently`);
    await client.query(`drop table ${part}`);
    dropped++;
  }
  return dropped;
}

/**
 * Drops partitions over a connection through a pooler. A pooler shares sessions, so that locks and settings must end
 * with the transaction. Readers may have to wait for up to `lockTimeoutMs`.
 */
async function dropInTransactions(client: Client, schema: string, old: readonly Partition[]): Promise<number> {
  let dropped = 0;
  for (const { name } of old) {
    await client.query('begin');
    if (!(await isLocked(client, `pg_try_advisory_xact_lock(${lockName(schema)})`))) {
      await client.query('rollback');
      return dropped;
    }
    await client.query(`set local lock_timeout to ${lockTimeoutMs}`);
    await client.query(`drop table if exists "${schema}"."${name}"`);
    await client.query('commit');
    dropped++;
  }
  return dropped;
}

interface Partition {
  readonly name: string;
  readonly attached: boolean;
  readonly pending: boolean;
}

async function oldPartitions(db: Database, compacted: Revision, size: number): Promise<Partition[]> {
  const rows = await db.read(db.statements.partitions, [], { urgent: true });
  return rows
    .map(([name, attached, pending]) => ({ name: name ?? '', attached: attached === 't', pending: pending === 't' }))
    .filter(({ name }) => Number(name.slice('log_'.length)) + size - 1 <= compacted)
    .sort((a, b) => Number(a.name.slice(4)) - Number(b.name.slice(4)));
}
