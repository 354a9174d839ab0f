import { access, readdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode } from '@keelson/container-monitor';

/** Folders at which the hierarchies begin. */
async function hierarchiesAt(mountpoint: string): Promise<string[]> {
  const unified = await access(join(mountpoint, 'cgroup.controllers')).then(
    () => true,
    () => false,
  );
  if (unified) return [mountpoint];
  const entries = await readdir(mountpoint, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(mountpoint, name));
}

/**
 * Removes a group, which must be empty, from every hierarchy; one that is not, or that has groups of somebody else in
 * it, stays.
 */
export async function removeCgroup(mountpoint: string, path: string): Promise<void> {
  for (const root of await hierarchiesAt(mountpoint)) {
    await rmdir(join(root, path)).catch((error: unknown) => {
      if (!hasCode(error, 'ENOENT', 'EBUSY', 'ENOTEMPTY')) throw error;
    });
  }
}
