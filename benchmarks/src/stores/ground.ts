import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startDatabase } from './database.ts';
import type { Throughput } from './in-flight.ts';
import { etcdCalls } from './raw/etcd-calls.ts';
import { lmdbPuts } from './raw/lmdb-puts.ts';
import { mapAndArray } from './raw/map-and-array.ts';
import { postgresRows } from './raw/postgres-rows.ts';
import type { StoreSpec } from './store-spec.ts';

/** The same work without Keelson: what the backend itself can do, asked by the leanest client there is. */
export interface Raw {
  /** What the writes are, for the report. */
  readonly what: string;
  /** Durable writes of new keys with the value, so many under way. */
  write(inFlight: number, durationMs: number): Promise<Throughput>;
  /** Puts the keys that `get` and `page` read. */
  fill(keys: readonly string[]): Promise<void>;
  get(key: string): Promise<unknown>;
  /** 500 entries, beginning at the key. */
  page(start: string): Promise<unknown>;
  close(): Promise<void>;
}

/** A backend of this run, on which stores and the raw baseline live side by side. */
export interface Ground {
  readonly adapter: string;
  readonly raw: Raw;
  /** Each space is a store of its own; specs of the same space lead to the same store. */
  spec(space: string): StoreSpec;
  close(): Promise<void>;
}

/** Starts the backend, in folders and on ports of its own. */
export async function openGround(adapter: string, value: Buffer): Promise<Ground> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-bench-store-'));
  const database = await startDatabase(adapter).catch(async (error: unknown) => {
    await rm(folder, { recursive: true, force: true });
    throw error;
  });
  const url = database?.url ?? '';
  let raw: Raw | undefined;
  const close = async () => {
    await raw?.close();
    await database?.stop();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    raw = await openRaw(adapter, url, folder, value);
  } catch (error) {
    await close();
    throw error;
  }
  const spec = (space: string): StoreSpec => {
    if (adapter === 'lmdb') return { kind: 'lmdb', path: join(folder, space) };
    if (adapter === 'etcd') return { kind: 'etcd', url, prefix: `/${space}/` };
    if (adapter === 'postgres') return { kind: 'postgres', url, schema: space };
    return { kind: 'memory' };
  };
  return { adapter, raw, spec, close };
}

async function openRaw(adapter: string, url: string, folder: string, value: Buffer): Promise<Raw> {
  if (adapter === 'lmdb') return lmdbPuts(join(folder, 'raw'), value);
  if (adapter === 'etcd') return etcdCalls(url, value);
  if (adapter === 'postgres') return postgresRows(url, folder, value);
  return mapAndArray(value);
}
