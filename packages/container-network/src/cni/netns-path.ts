import { stat, statfs } from 'node:fs/promises';

/** File systems that namespaces are files of: nsfs, and proc of old kernels. */
const types = new Set([0x6e736673, 0x9fa0]);

/** Which namespace a path leads to now; undefined when it leads to none. */
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
 * The path when it still leads to this namespace; else empty, which tells plugins that it is gone. Paths below /proc
 * lead elsewhere when the number of a process is given again, in the worst case to the machine's own network.
 */
export async function liveNetns(path: string, identity: string | undefined): Promise<string> {
  return identity !== undefined && (await netnsIdentity(path)) === identity ? path : '';
}
