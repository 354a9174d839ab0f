import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Bytes on disk of everything below a folder. */
export async function folderSize(folder: string): Promise<number> {
  let total = 0;
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    total += (await lstat(path)).blocks * 512;
    if (entry.isDirectory()) total += await folderSize(path);
  }
  return total;
}
