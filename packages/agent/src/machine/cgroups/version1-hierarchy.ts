import { join } from 'node:path';
import { attempt } from './cgroup-error.ts';
import type { CgroupFiles } from './cgroup-files.ts';
import { type Hierarchy, makeFolders, writeLimits } from './hierarchy.ts';
import { version1Limits } from './limit-files.ts';

/** A hierarchy of version 1: one controller, or a few that are mounted together. */
export function version1Hierarchy(root: string, controllers: ReadonlySet<string>, files: CgroupFiles): Hierarchy {
  /** A new cpuset takes no process ("no space left on device") before it has processors and memory nodes. */
  async function inheritCpuset(folder: string, above: string): Promise<void> {
    for (const name of ['cpuset.cpus', 'cpuset.mems']) {
      const own = join(folder, name);
      if ((await files.read(own))?.trim() !== '') continue;
      const text = (await files.read(join(above, name))) ?? '';
      await attempt(`${own} could not be copied from the cgroup above`, () => files.write(own, text.trim()));
    }
  }

  return {
    root,
    controllers,
    make: (path) => makeFolders(root, path, files, controllers.has('cpuset') ? { after: inheritCpuset } : {}),
    limit: (path, limits) => writeLimits(join(root, path), version1Limits(limits), controllers, files),
  };
}
