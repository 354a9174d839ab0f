import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** An open log file. The handle remains readable when the file is renamed or deleted. */
export interface LogFile {
  readonly handle: FileHandle;
  readonly inode: bigint;
  /** True for a file that was already rotated when it was opened: it is not appended to any more. */
  readonly rotated: boolean;
}

const rotatedSuffix = /\.(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)$/;

/** The name of a log that is rotated at a time (epoch milliseconds), as kubelet forms it; the time is UTC. */
export function rotatedName(path: string, atMs: number): string {
  return `${path}.${new Date(atMs).toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '-')}`;
}

/** The time in the name of a rotated log, epoch milliseconds. */
export function rotatedAt(name: string): number {
  return Date.parse(name.replace(rotatedSuffix, '.$1-$2-$3T$4:$5:$6Z').slice(-20));
}

/** The rotated files of a log, oldest first. */
export async function rotatedLogs(path: string): Promise<string[]> {
  const name = basename(path);
  const names = await readdir(dirname(path)).catch(emptyIfMissing<string[]>([]));
  return names
    .filter((other) => other.replace(rotatedSuffix, '') === name && other !== name)
    .sort()
    .map((other) => join(dirname(path), other));
}

/** True when the log has at least one file. */
export async function logExists(path: string): Promise<boolean> {
  return (await inodeOf(path)) !== undefined || (await rotatedLogs(path)).length > 0;
}

/** The file that the runtime appends to, or, during a rotation, the last rotated file. Undefined when there is none. */
export async function openNewest(path: string): Promise<LogFile | undefined> {
  const current = await openLog(path, false);
  if (current !== undefined) return current;
  const last = (await rotatedLogs(path)).at(-1);
  return last === undefined ? undefined : openLog(last, true);
}

/** The files that were rotated before a file of the log, newest first. */
export async function rotatedBefore(path: string, inode: bigint): Promise<string[]> {
  const names = await rotatedLogs(path);
  const index = (await Promise.all(names.map(inodeOf))).indexOf(inode);
  return names.slice(0, index < 0 ? names.length : index).reverse();
}

/**
 * The next file of the log; undefined when the given file is still appended to. Every existing file is later than a
 * deleted one.
 */
export async function openAfter(path: string, inode: bigint): Promise<LogFile | undefined> {
  if ((await inodeOf(path)) === inode) return undefined;
  const names = [...(await rotatedLogs(path)), path];
  const inodes = await Promise.all(names.map(inodeOf));
  for (const name of names.slice(inodes.indexOf(inode) + 1)) {
    const file = await openLog(name, name !== path);
    if (file?.inode === inode) await file.handle.close();
    else if (file !== undefined) return file;
  }
  return undefined;
}

/** Undefined when the file does not exist. */
export async function openLog(path: string, rotated: boolean): Promise<LogFile | undefined> {
  const handle = await open(path, 'r').catch(emptyIfMissing(undefined));
  return handle && { handle, inode: (await handle.stat({ bigint: true })).ino, rotated };
}

async function inodeOf(path: string): Promise<bigint | undefined> {
  return stat(path, { bigint: true }).then(
    ({ ino }) => ino,
    () => undefined,
  );
}

function emptyIfMissing<T>(value: T): (error: unknown) => T {
  return (error) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return value;
    throw error;
  };
}
