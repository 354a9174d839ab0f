import { lstat, readlink } from 'node:fs/promises';
import { posix } from 'node:path';
import { RuntimeError } from '@keelson/container-runtime';

const maxLinks = 40;

/**
 * Resolves symbolic links as a process with the root directory `root` does: `..` stops at the root, and absolute links
 * start there. Missing components are kept as they are. The result is absolute and contains no links.
 * @throws `InvalidArgument` for a loop of links.
 */
export async function resolveInside(root: string, path: string): Promise<string> {
  const pending = path.split('/').reverse();
  let resolved = '/';
  let links = 0;
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    if (name === '' || name === '.') continue;
    if (name === '..') {
      resolved = posix.dirname(resolved);
      continue;
    }
    const next = posix.join(resolved, name);
    const link = await readlinkIfLink(root + next);
    if (link === undefined) {
      resolved = next;
      continue;
    }
    links += 1;
    if (links > maxLinks) throw new RuntimeError('InvalidArgument', `too many levels of symbolic links in "${path}"`);
    if (link.startsWith('/')) resolved = '/';
    pending.push(...link.split('/').reverse());
  }
  return resolved;
}

async function readlinkIfLink(path: string): Promise<string | undefined> {
  try {
    return (await lstat(path)).isSymbolicLink() ? await readlink(path) : undefined;
  } catch {
    return undefined;
  }
}
