import { access, readdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode } from '@keelson/container-monitor';

/** Root directories of the cgroup hierarchies. */
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
 * Removes an empty cgroup from every hierarchy. A cgroup that has processes or child cgroups is not removed.
 */
export async function removeCgroup(mountpoint: string, path: string): Promise<void> {
  for (const root of await hierarchiesAt(mountpoint)) {
    await rmdir(join(root, path)).catch((error: unknown) => {
      if (!hasCode(error, 'ENOENT', 'EBUSY', 'ENOTEMPTY')) throw error;
    });
  }
}
