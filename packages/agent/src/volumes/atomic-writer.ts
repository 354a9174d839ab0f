import {
  chmod,
  chown,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';

export interface PayloadFile {
  readonly content: Buffer;
  /** Permission bits. */
  readonly mode: number;
}

/** Files by their path in the volume. */
export type Payload = ReadonlyMap<string, PayloadFile>;

const dataLink = '..data';

/**
 * Makes a directory show exactly these files, all at once: they are written into a directory of their own, to which the link `..data` is
 * then moved; what readers see are links through it. Nothing happens when the files are as they should be. Returns whether it changed.
 */
export async function writeAtomically(dir: string, payload: Payload, groupId?: number): Promise<boolean> {
  await mkdir(dir, { recursive: true, mode: 0o755 });
  const old = await readlink(join(dir, dataLink)).catch(() => undefined);
  if (old !== undefined && (await isSame(join(dir, old), payload))) return false;
  const fresh = await mkdtemp(`${dir}/..`);
  await chmod(fresh, 0o755);
  for (const [path, { content, mode }] of payload) {
    const file = join(fresh, path);
    await mkdir(dirname(file), { recursive: true, mode: 0o755 });
    await writeFile(file, content);
    await chmod(file, groupId === undefined ? mode : mode | 0o440);
    if (groupId !== undefined) await chown(file, -1, groupId);
  }
  const next = join(dir, `${dataLink}_tmp`);
  await rm(next, { force: true });
  await symlink(fresh.slice(dir.length + 1), next);
  await rename(next, join(dir, dataLink));
  await linkVisible(dir, payload);
  if (old !== undefined) await rm(join(dir, old), { recursive: true, force: true });
  return true;
}

async function linkVisible(dir: string, payload: Payload): Promise<void> {
  const wanted = new Set([...payload.keys()].map((path) => path.split('/')[0] ?? ''));
  for (const name of await readdir(dir)) {
    if (!name.startsWith('..') && !wanted.has(name)) await rm(join(dir, name), { recursive: true, force: true });
  }
  for (const name of wanted) {
    const link = join(dir, name);
    const target = `${dataLink}/${name}`;
    if ((await readlink(link).catch(() => undefined)) === target) continue;
    await rm(link, { recursive: true, force: true });
    await symlink(target, link);
  }
}

async function isSame(dir: string, payload: Payload): Promise<boolean> {
  const found = await filesBelow(dir, '').catch(() => undefined);
  if (found === undefined || found.length !== payload.size) return false;
  for (const path of found) {
    const wanted = payload.get(path);
    if (wanted === undefined || !wanted.content.equals(await readFile(join(dir, path)))) return false;
    const { mode } = await lstat(join(dir, path));
    if ((mode & wanted.mode) !== wanted.mode) return false;
  }
  return true;
}

async function filesBelow(dir: string, prefix: string): Promise<string[]> {
  const found: string[] = [];
  for (const entry of await readdir(join(dir, prefix), { withFileTypes: true })) {
    const path = prefix === '' ? entry.name : `${prefix}/${entry.name}`;
    if (entry.isDirectory()) found.push(...(await filesBelow(dir, path)));
    else found.push(path);
  }
  return found;
}
