import { randomBytes } from 'node:crypto';
import { dirname, join } from 'node:path';
import type { HostFiles } from '../host/host-files.ts';
import { localFiles } from '../host/local-files.ts';

export interface PayloadFile {
  readonly content: Buffer;
  /** Permission bits. */
  readonly mode: number;
}

/** Files by their path in the volume. */
export type Payload = ReadonlyMap<string, PayloadFile>;

const dataLink = '..data';

/**
 * Changes the files of a directory atomically: they are written to a new directory, and the link `..data` is then
 * switched to it; readers access them through links. Returns whether something changed.
 */
export async function writeAtomically(
  dir: string,
  payload: Payload,
  groupId?: number,
  files: HostFiles = localFiles,
): Promise<boolean> {
  await files.makeDirectory(dir, 0o755);
  const old = await files.readLink(join(dir, dataLink));
  if (old !== undefined && (await isSame(files, join(dir, old), payload))) return false;
  const fresh = `..${randomBytes(6).toString('hex')}`;
  for (const path of new Set(['', ...[...payload.keys()].map(dirname)])) {
    await files.makeDirectory(join(dir, fresh, path), 0o755);
    await files.changeMode(join(dir, fresh, path), 0o755);
  }
  for (const [path, { content, mode }] of payload) {
    const file = join(dir, fresh, path);
    await files.write(file, content, groupId === undefined ? mode : mode | 0o440);
    if (groupId !== undefined) await files.changeGroup(file, groupId);
  }
  const next = join(dir, `${dataLink}_tmp`);
  await files.remove(next);
  await files.makeLink(fresh, next);
  await files.rename(next, join(dir, dataLink));
  await linkVisible(files, dir, payload);
  await removeOthers(files, dir, fresh);
  return true;
}

async function linkVisible(files: HostFiles, dir: string, payload: Payload): Promise<void> {
  const wanted = new Set([...payload.keys()].map((path) => path.split('/')[0] ?? ''));
  for (const { name } of await files.list(dir)) {
    if (!name.startsWith('..') && !wanted.has(name)) await files.remove(join(dir, name));
  }
  for (const name of wanted) {
    const link = join(dir, name);
    const target = `${dataLink}/${name}`;
    if ((await files.readLink(link)) === target) continue;
    await files.remove(link);
    await files.makeLink(target, link);
  }
}

/** Removes the previous version, and leftovers of interrupted writes. */
async function removeOthers(files: HostFiles, dir: string, fresh: string): Promise<void> {
  for (const { name } of await files.list(dir)) {
    if (name.startsWith('..') && name !== fresh && name !== dataLink) await files.remove(join(dir, name));
  }
}

async function isSame(files: HostFiles, dir: string, payload: Payload): Promise<boolean> {
  const found = await filesBelow(files, dir, '').catch(() => undefined);
  if (found === undefined || found.length !== payload.size) return false;
  for (const path of found) {
    const wanted = payload.get(path);
    if (wanted === undefined || !wanted.content.equals(await files.read(join(dir, path)))) return false;
    const mode = (await files.info(join(dir, path), 'show'))?.mode ?? 0;
    if ((mode & wanted.mode) !== wanted.mode) return false;
  }
  return true;
}

async function filesBelow(files: HostFiles, dir: string, prefix: string): Promise<string[]> {
  const found: string[] = [];
  for (const { name, isDirectory } of await files.list(join(dir, prefix))) {
    const path = prefix === '' ? name : `${prefix}/${name}`;
    if (isDirectory) found.push(...(await filesBelow(files, dir, path)));
    else found.push(path);
  }
  return found;
}
