import { lstat, readlink } from 'node:fs/promises';

/**
 * File system paths here are bytes as Latin-1 text, since names in images need not be UTF-8; this is the form in which
 * the system takes them.
 */
export function onDisk(path: string): Buffer {
  return Buffer.from(path, 'latin1');
}

/** The form of `onDisk` for a path of this process. */
export function fromText(path: string): string {
  return Buffer.from(path, 'utf8').toString('latin1');
}

const maxLinks = 255;

export interface InsideOptions {
  /** Links at these places are not followed: what they lead to is not there for the caller. */
  readonly hidden?: ReadonlySet<string>;
}

/**
 * Where a path is when links are followed as if `root` were the root directory, the last part included. Parts that do
 * not exist are taken as they are. Undefined when a link is hidden. @throws Error for too many links
 */
export async function insideRoot(
  root: string,
  path: string,
  { hidden }: InsideOptions = {},
): Promise<string | undefined> {
  const pending = path.split('/').reverse();
  const found: string[] = [];
  let links = 0;
  for (let part = pending.pop(); part !== undefined; part = pending.pop()) {
    if (part === '' || part === '.') continue;
    if (part === '..') {
      found.pop();
      continue;
    }
    found.push(part);
    const here = [root, ...found].join('/');
    const entry = await lstat(onDisk(here)).catch(() => undefined);
    if (!entry?.isSymbolicLink()) continue;
    if (hidden?.has(found.join('/'))) return undefined;
    links += 1;
    if (links > maxLinks) throw new Error(`too many links at "${path.slice(0, 200)}"`);
    const target = (await readlink(onDisk(here), { encoding: 'buffer' })).toString('latin1');
    if (target.startsWith('/')) found.length = 0;
    else found.pop();
    pending.push(...target.split('/').reverse());
  }
  return [root, ...found].join('/');
}
