import { lstat, readlink } from 'node:fs/promises';

/**
 * The form of a path for system calls. Paths in this folder are bytes as Latin-1 text, because names in images need not
 * be UTF-8.
 */
export function onDisk(path: string): Buffer {
  return Buffer.from(path, 'latin1');
}

/** Converts a path of this process to Latin-1 text, the reverse of {@link onDisk}. */
export function fromText(path: string): string {
  return Buffer.from(path, 'utf8').toString('latin1');
}

const maxLinks = 255;

export interface InsideOptions {
  /** Paths at which symbolic links are not followed, because the caller replaces the links. */
  readonly hidden?: ReadonlySet<string>;
}

/**
 * Resolves all links of a path, including the last component, as if `root` were the root directory. Missing components
 * are kept as they are. Undefined when the path contains a link in `hidden`.
 * @throws Error for too many links
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
    if (links > maxLinks) throw new Error(`too many levels of symbolic links at "${path.slice(0, 200)}"`);
    const target = (await readlink(onDisk(here), { encoding: 'buffer' })).toString('latin1');
    if (target.startsWith('/')) found.length = 0;
    else found.pop();
    pending.push(...target.split('/').reverse());
  }
  return [root, ...found].join('/');
}
