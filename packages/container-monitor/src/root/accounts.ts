import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RuntimeError } from '@keelson/container-runtime';
import { resolveInside } from './resolve-inside.ts';

export interface Account {
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
}

/**
 * Resolves a user and a group with the passwd and group files below `root`. Numbers are valid without an entry.
 * @throws `StartFailed` when a name has no entry.
 */
export async function findAccount(root: string, user: string, group?: string): Promise<Account> {
  const lines = await linesOf(root, '/etc/passwd');
  const numeric = /^\d+$/.test(user);
  const entry = lines.find((fields) => (numeric ? fields[2] === user : fields[0] === user));
  if (entry === undefined && !numeric) throw new RuntimeError('StartFailed', `no user "${user}" in /etc/passwd`);
  const gid = group === undefined ? Number(entry?.[3] ?? 0) : await findGroup(root, group);
  return { uid: entry === undefined ? Number(user) : Number(entry[2]), gid, home: entry?.[5] || '/' };
}

async function findGroup(root: string, group: string): Promise<number> {
  if (/^\d+$/.test(group)) return Number(group);
  const entry = (await linesOf(root, '/etc/group')).find((fields) => fields[0] === group);
  if (entry === undefined) throw new RuntimeError('StartFailed', `no group "${group}" in /etc/group`);
  return Number(entry[2]);
}

async function linesOf(root: string, path: string): Promise<string[][]> {
  try {
    const text = await readFile(join(root, await resolveInside(root, path)), 'utf8');
    return text.split('\n').map((line) => line.split(':'));
  } catch {
    return []; // The file is optional in images.
  }
}
