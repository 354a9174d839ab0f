import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Tests that run as root start servers as another user, who cannot enter the home of root. */
const cacheFolder =
  process.getuid?.() === 0
    ? '/var/cache/keelson-test'
    : join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'keelson-test');

/**
 * A folder that is created once per machine.
 *
 * @param create fills the folder of the given path, which exists and is empty; returns false where that is not possible
 * @returns the folder; undefined where it cannot be created
 */
export function cachedFolder(name: string, create: (folder: string) => boolean): string | undefined {
  const target = join(cacheFolder, name);
  if (existsSync(target)) return target;
  // Test files may create the same folder at the same time: the first that is complete gets the name.
  const unfinished = `${target}.${process.pid}-${Date.now()}`;
  mkdirSync(unfinished, { recursive: true });
  try {
    if (!create(unfinished)) return undefined;
    renameSync(unfinished, target);
    return target;
  } catch (error) {
    if (existsSync(target)) return target;
    throw error;
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}
