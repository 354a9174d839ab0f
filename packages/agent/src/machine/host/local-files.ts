import { constants, type Stats } from 'node:fs';
import {
  chmod,
  chown,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  stat,
  statfs,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import type { FileType, HostFiles } from './host-files.ts';

/** The files that this process sees. */
export const localFiles: HostFiles = {
  async info(path, links) {
    const found = await (links === 'follow' ? stat(path) : lstat(path)).catch(() => undefined);
    return found && { type: typeOf(found), mode: found.mode & 0o7777, gid: found.gid };
  },
  realPath: (path) => realpath(path),
  async list(directory) {
    const entries = await readdir(directory, { withFileTypes: true });
    return entries.map((entry) => ({ name: entry.name, isDirectory: entry.isDirectory() }));
  },
  read: (path) => readFile(path),
  async write(path, content, mode) {
    await writeFile(path, content);
    await chmod(path, mode);
  },
  makeDirectory: async (path, mode) => (await mkdir(path, { recursive: true, mode })) !== undefined,
  makeWithin,
  async makeFile(path, mode) {
    await (await open(path, 'a', mode)).close();
  },
  changeMode: (path, mode) => chmod(path, mode),
  changeGroup: (path, gid) => chown(path, -1, gid),
  readLink: (path) => readlink(path).catch(() => undefined),
  makeLink: (target, path) => symlink(target, path),
  rename: (from, to) => rename(from, to),
  remove: (path) => rm(path, { recursive: true, force: true }),
  giveToGroup,
  async treeUsage(path, signal) {
    const top = await lstat(path);
    const linked = new Set<number>();
    let bytes = 0;
    let inodes = 0;
    const pending = [path];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      signal.throwIfAborted();
      // Files that are deleted meanwhile are not counted.
      const found = await lstat(next).catch(() => undefined);
      if (found === undefined || found.dev !== top.dev || linked.has(found.ino)) continue;
      if (found.nlink > 1 && !found.isDirectory()) linked.add(found.ino);
      bytes += found.blocks * 512;
      inodes += 1;
      if (!found.isDirectory()) continue;
      for (const name of await readdir(next).catch(() => [])) pending.push(join(next, name));
    }
    return { bytes, inodes };
  },
  async diskUsage(path) {
    const { bsize, blocks, bavail, files, ffree } = await statfs(path);
    return { capacityBytes: blocks * bsize, availableBytes: bavail * bsize, inodes: files, inodesFree: ffree };
  },
  device: async (path) => String((await stat(path)).dev),
};

async function makeWithin(directory: string, name: string, mode: number): Promise<void> {
  const unlessThere = (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
    return 'there';
  };
  if (process.platform !== 'linux') {
    await mkdir(join(directory, name), mode).catch(unlessThere);
    return;
  }
  const kind = constants.O_DIRECTORY | constants.O_NOFOLLOW;
  const above = await open(directory, kind);
  try {
    // An open descriptor refers to the same directory, even when the directory is renamed.
    const held = `/proc/self/fd/${above.fd}`;
    if ((await realpath(held)) !== directory) throw new Error(`${directory} contains a symbolic link`);
    if ((await mkdir(join(held, name), 0o750).catch(unlessThere)) === 'there') return;
    const made = await open(join(held, name), kind);
    try {
      await made.chmod(mode);
    } finally {
      await made.close();
    }
  } finally {
    await above.close();
  }
}

async function giveToGroup(path: string, gid: number): Promise<void> {
  const found = await lstat(path);
  if (found.isSymbolicLink()) return;
  await chown(path, -1, gid);
  await chmod(path, (found.mode & 0o7777) | (found.isDirectory() ? 0o2770 : 0o660));
  if (!found.isDirectory()) return;
  for (const name of await readdir(path)) await giveToGroup(join(path, name), gid);
}

function typeOf(found: Stats): FileType {
  if (found.isDirectory()) return 'directory';
  if (found.isFile()) return 'file';
  if (found.isSymbolicLink()) return 'link';
  if (found.isSocket()) return 'socket';
  if (found.isCharacterDevice()) return 'charDevice';
  return found.isBlockDevice() ? 'blockDevice' : 'other';
}
