import { readdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';

const mountpoint = '/sys/fs/cgroup';

/** Removes a cgroup that Podman leaves behind, and those below it, in every hierarchy, as far as no process is in them. */
export function removeEmptyCgroups(path: string): void {
  const hierarchies = ['', ...folders(mountpoint)];
  for (const hierarchy of hierarchies) remove(join(mountpoint, hierarchy, path));
}

function remove(folder: string): void {
  for (const name of folders(folder)) remove(join(folder, name));
  try {
    rmdirSync(folder);
  } catch {
    // Not there, or another Podman is in it.
  }
}

function folders(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
  } catch {
    return [];
  }
}
