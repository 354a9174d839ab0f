import { readdir, readFile, statfs } from 'node:fs/promises';
import { join } from 'node:path';

/** A file system on a device of the machine. */
export interface FileSystem {
  readonly device: string;
  readonly type: string;
  readonly capacity: number;
  readonly inodes: number;
  readonly has_inodes: boolean;
}

export interface Disk {
  readonly name: string;
  readonly major: number;
  readonly minor: number;
  /** Bytes. */
  readonly size: number;
  readonly scheduler: string;
}

const sectorBytes = 512;
/** Octal escapes stand for spaces and the like in tables of mounts. */
const unescaped = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, code) => String.fromCharCode(Number.parseInt(code, 8)));

/** Each device once, by its first mount. */
export async function fileSystems(procRoot: string, statOf = statfs): Promise<FileSystem[]> {
  const table = await readFile(join(procRoot, 'self/mounts'), 'utf8').catch(() => '');
  const first = new Map<string, readonly [path: string, type: string]>();
  for (const line of table.split('\n')) {
    const [device = '', path = '', type = ''] = line.split(' ').map(unescaped);
    if (device.startsWith('/dev/') && !first.has(device)) first.set(device, [path, type]);
  }
  const found = await Promise.all(
    [...first].map(async ([device, [path, type]]) => {
      const sizes = await statOf(path).catch(() => undefined);
      if (sizes === undefined) return [];
      const { blocks, bsize, files } = sizes;
      return [{ device, type, capacity: blocks * bsize, inodes: files, has_inodes: files > 0 }];
    }),
  );
  return found.flat();
}

/** Disks by their device number, without those that hold nothing. */
export async function disks(sysRoot: string): Promise<Record<string, Disk>> {
  const folder = join(sysRoot, 'block');
  const names = await readdir(folder).catch(() => []);
  const read = async (name: string, file: string) =>
    (await readFile(join(folder, name, file), 'utf8').catch(() => '')).trim();
  const rows = await Promise.all(
    names.sort().map(async (name) => {
      const [device, size, scheduler] = await Promise.all([
        read(name, 'dev'),
        read(name, 'size'),
        read(name, 'queue/scheduler'),
      ]);
      const [major = 0, minor = 0] = device.split(':').map(Number);
      const used = /\[(.+)\]/.exec(scheduler)?.[1] ?? 'none';
      return [device, { name, major, minor, size: Number(size) * sectorBytes, scheduler: used }] as const;
    }),
  );
  return Object.fromEntries(rows.filter(([device, { size }]) => device !== '' && size > 0));
}
