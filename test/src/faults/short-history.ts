import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Retention } from '@keelson/conformance';

/** History that servers keep which compact their store every 200 ms. */
export const shortHistory: Retention = { minChanges: 300, minAgeMs: 0 };

const adapter = fileURLToPath(new URL('./compacting-lmdb.js', import.meta.url));

/** Arguments of a server on LMDB, under its data directory, that compacts every 200 ms down to {@link shortHistory}. */
export async function shortHistoryArguments(data: string): Promise<readonly string[]> {
  const file = join(data, 'keelson.json');
  await writeFile(file, JSON.stringify({ storage: { adapter, path: join(data, 'store') } }));
  return ['--config', file];
}
