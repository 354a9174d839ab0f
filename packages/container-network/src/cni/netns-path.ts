import { stat, statfs } from 'node:fs/promises';

/** Types of file systems with namespace files: nsfs, and proc in old kernels. */
const types = new Set([0x6e736673, 0x9fa0]);

/** Identity of the namespace at a path; undefined without a namespace. */
export async function netnsIdentity(path: string): Promise<string | undefined> {
  if (path === '') return undefined;
  try {
    if (!types.has((await statfs(path)).type)) return undefined;
    const { dev, ino } = await stat(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}

/**
 * The path when the namespace at it has this identity; otherwise an empty text, which means to plugins that the
 * namespace no longer exists. A path below /proc refers to another namespace, possibly that of the machine, after the
 * process id was reused.
 */
export async function liveNetns(path: string, identity: string | undefined): Promise<string> {
  return identity !== undefined && (await netnsIdentity(path)) === identity ? path : '';
}
