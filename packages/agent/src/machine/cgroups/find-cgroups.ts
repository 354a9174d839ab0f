import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '@keelson/core';
import { CgroupError } from './cgroup-error.ts';
import type { CgroupFiles } from './cgroup-files.ts';
import { CgroupTree } from './cgroup-tree.ts';
import { type Hierarchy, ourControllers } from './hierarchy.ts';
import { version1Hierarchy } from './version1-hierarchy.ts';
import { version2Hierarchy } from './version2-hierarchy.ts';

const indispensable = ['cpu', 'memory'];

const ours = (names: readonly string[]) => new Set(ourControllers.filter((name) => names.includes(name)));

/** The folders in which version 1 is mounted, each once: names such as `cpu` may be links to `cpu,cpuacct`. */
async function mountsBelow(mountpoint: string, files: CgroupFiles): Promise<string[]> {
  const names = [...(await files.folders(mountpoint)), ...ourControllers];
  const found = new Set<string>();
  for (const name of names) {
    const folder = await realpath(join(mountpoint, name)).catch(() => undefined);
    if (folder !== undefined && (await files.read(join(folder, 'cgroup.procs'))) !== undefined) found.add(folder);
  }
  return [...found];
}

/**
 * Finds the cgroups of a machine: version 2 at the mount point itself, or a folder for each hierarchy, with version 2
 * perhaps among them. Which version has a controller is found out for each on its own.
 *
 * @throws CgroupError when cpu or memory is in none
 */
export async function findCgroups(mountpoint: string, files: CgroupFiles, clock: Clock): Promise<CgroupTree> {
  const used: Hierarchy[] = [];
  const others: string[] = [];
  const unified = (await files.read(join(mountpoint, 'cgroup.controllers'))) !== undefined;
  for (const folder of unified ? [mountpoint] : await mountsBelow(mountpoint, files)) {
    const listed = await files.read(join(folder, 'cgroup.controllers'));
    const names =
      listed === undefined ? folder.slice(folder.lastIndexOf('/') + 1).split(',') : listed.trim().split(/\s+/);
    const controllers = ours(names);
    if (controllers.size === 0) others.push(folder);
    else used.push((listed === undefined ? version1Hierarchy : version2Hierarchy)(folder, controllers, files));
  }
  const missing = indispensable.filter((name) => !used.some(({ controllers }) => controllers.has(name)));
  if (missing.length > 0)
    throw new CgroupError(`there is no cgroup hierarchy with ${missing.join(' and ')} at ${mountpoint}`);
  return new CgroupTree({ mountpoint, used, others, files, clock });
}
