import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { findPgbench } from '../database.ts';
import type { Raw } from '../ground.ts';
import { keepInFlight, type Throughput } from '../in-flight.ts';

/**
 * More connections than this only wait for each other on two cores; 256 writes in flight are compared with these, too.
 */
const mostConnections = 32;
/** As many as the store has by default. */
const readers = 6;

/**
 * pgbench counts whole seconds; slices of less than half of one (only tests have them) are so many transactions
 * instead.
 */
const shortMs = 500;

const run = promisify(execFile);

/** Single-row inserts with a commit each, in the same server: by pgbench, or by node-postgres where there is none. */
export async function postgresRows(url: string, folder: string, value: Buffer): Promise<Raw> {
  const pool = new pg.Pool({ connectionString: url, max: mostConnections });
  const reading = new pg.Pool({ connectionString: url, max: readers });
  for (const each of [pool, reading]) each.on('error', () => {});
  await pool.query('create table raw_inserts (id bigserial primary key, value bytea not null)');
  await pool.query('create table raw_rows (key text collate "C" primary key, value bytea not null)');
  const pgbench = await findPgbench();
  const script = join(folder, 'insert.sql');
  await writeFile(script, `insert into raw_inserts (value) values (decode('${value.toString('hex')}', 'hex'));\n`);

  const byPgbench = async (program: string, connections: number, durationMs: number, left = 2): Promise<Throughput> => {
    const length =
      durationMs < shortMs ? ['-t', Math.ceil(durationMs)] : ['-T', Math.max(1, Math.round(durationMs / 1000))];
    const words = ['-n', '-M', 'prepared', '-c', connections, '-j', 1, ...length, '-f', script, url];
    const { stdout } = await run(program, words.map(String), { timeout: durationMs + 30_000 });
    const perSecond = Number(/^tps = ([\d.]+) \(without/m.exec(stdout)?.[1]);
    const averageMs = Number(/^latency average = ([\d.]+) ms/m.exec(stdout)?.[1]);
    // On a busy machine the time is over before all of them are connected.
    if (!(perSecond > 0) && left > 0) return byPgbench(program, connections, durationMs, left - 1);
    if (!(perSecond > 0)) throw new Error(`pgbench gave no figure: ${stdout.replace(/\s+/g, ' ')}`);
    // pgbench reports only the average; percentiles would need a log, which costs it throughput.
    return { perSecond, p50Ms: averageMs, p90Ms: Number.NaN, p99Ms: Number.NaN };
  };
  const insert = { name: 'raw-insert', text: 'insert into raw_inserts (value) values ($1)', values: [value] };
  return {
    what:
      pgbench === undefined
        ? 'single-row inserts by node-postgres (there is no pgbench here), at most 32 connections'
        : 'single-row inserts by pgbench -M prepared, at most 32 connections',
    write: (inFlight, durationMs) =>
      pgbench === undefined
        ? keepInFlight(Math.min(inFlight, mostConnections), durationMs, () => pool.query(insert))
        : byPgbench(pgbench, Math.min(inFlight, mostConnections), durationMs),
    fill: async (keys) => {
      await pool.query('insert into raw_rows (key, value) select unnest($1::text[]), $2', [keys, value]);
      await pool.query('analyze raw_rows');
    },
    get: (key) =>
      reading.query({ name: 'raw-get', text: 'select key, value from raw_rows where key = $1', values: [key] }),
    page: (start) =>
      reading.query({
        name: 'raw-page',
        text: 'select key, value from raw_rows where key >= $1 order by key limit 500',
        values: [start],
      }),
    close: async () => {
      await pool.end();
      await reading.end();
    },
  };
}
