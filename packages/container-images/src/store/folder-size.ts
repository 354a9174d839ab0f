import { lstat, readdir } from 'node:fs/promises';
import { fromText, onDisk } from '../layers/inside-root.ts';

/** Bytes on disk of everything below a folder; files with several names count once. */
export async function folderSize(folder: string): Promise<number> {
  const counted = new Set<bigint>();
  const pending = [fromText(folder)];
  let total = 0;
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    for (const name of await readdir(onDisk(path), { encoding: 'latin1' })) {
      const child = `${path}/${name}`;
      const entry = await lstat(onDisk(child), { bigint: true });
      if (entry.isDirectory()) pending.push(child);
      else if (entry.nlink > 1n && counted.has(entry.ino)) continue;
      if (entry.nlink > 1n) counted.add(entry.ino);
      total += Number(entry.blocks) * 512;
    }
  }
  return total;
}
