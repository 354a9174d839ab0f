import { join } from 'node:path';
import { attempt } from './cgroup-error.ts';
import type { CgroupFiles } from './cgroup-files.ts';
import { type Hierarchy, makeFolders, writeLimits } from './hierarchy.ts';
import { version2Limits } from './limit-files.ts';

/** The hierarchy of version 2. A group has the controllers that the one above it hands down. */
export function version2Hierarchy(root: string, controllers: ReadonlySet<string>, files: CgroupFiles): Hierarchy {
  async function handDown(folder: string): Promise<void> {
    const file = join(folder, 'cgroup.subtree_control');
    const handed = new Set(((await files.read(file)) ?? '').split(/\s+/));
    for (const name of controllers) {
      if (handed.has(name)) continue;
      await attempt(`controller ${name} could not be handed down by ${file}`, () => files.write(file, `+${name}`));
    }
  }

  return {
    root,
    controllers,
    make: (path) => makeFolders(root, path, files, { before: handDown }),
    limit: (path, limits) => writeLimits(join(root, path), version2Limits(limits), controllers, files),
  };
}
