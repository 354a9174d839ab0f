import { join } from 'node:path';
import { attempt } from './cgroup-error.ts';
import type { CgroupFiles } from './cgroup-files.ts';
import type { CgroupLimits, LimitFile } from './limit-files.ts';

/** Controllers that pods are placed under. */
export const ourControllers: readonly string[] = ['cpu', 'cpuacct', 'cpuset', 'memory', 'pids'];

/** One mounted hierarchy. Groups are paths from its root, which is `/`. */
export interface Hierarchy {
  /** Where it is mounted. */
  readonly root: string;
  /** Of ours, those that it has. */
  readonly controllers: ReadonlySet<string>;
  /** Makes the group and those above it. @throws CgroupError */
  make(path: string): Promise<void>;
  /** @throws CgroupError */
  limit(path: string, limits: CgroupLimits): Promise<void>;
}

/**
 * Makes the folders of a group one by one from the root down; `before` sees each folder ahead of what is made in it,
 * `after` what was made.
 */
export async function makeFolders(
  root: string,
  path: string,
  files: CgroupFiles,
  steps: {
    readonly before?: (folder: string) => Promise<void>;
    readonly after?: (folder: string, above: string) => Promise<void>;
  },
): Promise<void> {
  let folder = root;
  for (const name of path.split('/').filter(Boolean)) {
    await steps.before?.(folder);
    const above = folder;
    folder = join(folder, name);
    await attempt(`cgroup ${folder} could not be made`, () => files.make(folder));
    await steps.after?.(folder, above);
  }
}

/** Writes limits of controllers that the hierarchy has. */
export async function writeLimits(
  folder: string,
  limits: Iterable<LimitFile>,
  controllers: ReadonlySet<string>,
  files: CgroupFiles,
): Promise<void> {
  for (const [controller, name, text] of limits) {
    const file = join(folder, name);
    if (controllers.has(controller))
      await attempt(`${text} could not be written to ${file}`, () => files.write(file, text));
  }
}
