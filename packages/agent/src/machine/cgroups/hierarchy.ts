import { join } from 'node:path';
import { attempt, type CgroupFiles } from './cgroup-files.ts';

/** What a cgroup may use. Absent: as it is. */
export interface CgroupLimits {
  /** Relative weight, 2..262144; 1024 is one CPU. */
  readonly cpuShares?: number;
  /** Microseconds of CPU time in every period of `cpuPeriodUs`; -1 = without limit. */
  readonly cpuQuotaUs?: number;
  /** Default 100 000. */
  readonly cpuPeriodUs?: number;
  /** Bytes; -1 = without limit. */
  readonly memoryBytes?: number;
}

/** A file of a controller, and what is written to it. */
export type LimitFile = readonly [controller: 'cpu' | 'memory', file: string, text: string];

const defaultPeriodUs = 100_000;
/** The range of `cpuShares` that the kernel accepts. */
export const leastShares = 2;
export const mostShares = 262_144;

/** In the words of version 1, in the order in which they are written: a quota is measured by its period. */
export function* version1Limits({
  cpuShares,
  cpuQuotaUs,
  cpuPeriodUs,
  memoryBytes,
}: CgroupLimits): Iterable<LimitFile> {
  if (cpuShares !== undefined) yield ['cpu', 'cpu.shares', String(cpuShares)];
  if (cpuPeriodUs !== undefined) yield ['cpu', 'cpu.cfs_period_us', String(cpuPeriodUs)];
  if (cpuQuotaUs !== undefined) yield ['cpu', 'cpu.cfs_quota_us', String(cpuQuotaUs)];
  if (memoryBytes !== undefined) yield ['memory', 'memory.limit_in_bytes', String(memoryBytes)];
}

/** In the words of version 2. */
export function* version2Limits({
  cpuShares,
  cpuQuotaUs,
  cpuPeriodUs = defaultPeriodUs,
  memoryBytes,
}: CgroupLimits): Iterable<LimitFile> {
  if (cpuShares !== undefined) yield ['cpu', 'cpu.weight', String(weightOf(cpuShares))];
  if (cpuQuotaUs !== undefined) yield ['cpu', 'cpu.max', `${cpuQuotaUs < 0 ? 'max' : cpuQuotaUs} ${cpuPeriodUs}`];
  if (memoryBytes !== undefined) yield ['memory', 'memory.max', memoryBytes < 0 ? 'max' : String(memoryBytes)];
}

/** The mapping that runtimes use too: 2..262144 to 1..10000. */
export function weightOf(shares: number): number {
  const clamped = Math.min(Math.max(shares, leastShares), mostShares);
  return 1 + Math.trunc(((clamped - leastShares) * 9_999) / (mostShares - leastShares));
}

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
