import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Retention } from '@keelson/conformance';

/** History that servers keep which compact their store every 200 ms. */
export const shortHistory: Retention = { minChanges: 300, minAgeMs: 0 };

const adapter = fileURLToPath(new URL('./compacting-lmdb.js', import.meta.url));

/** LMDB under the data directory of a server, compacted every 200 ms down to {@link shortHistory}. */
export function compactedLmdb(data: string): Readonly<Record<string, unknown>> {
  return { adapter, path: join(data, 'store') };
}
