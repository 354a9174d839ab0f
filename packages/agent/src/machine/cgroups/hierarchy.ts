import { join } from 'node:path';
import { attempt, type CgroupFiles } from './cgroup-files.ts';

/** Limits of a cgroup. An absent limit is not changed. */
export interface CgroupLimits {
  /** Relative weight, 2..262144; 1024 is one CPU. */
  readonly cpuShares?: number;
  /** CPU time in microseconds per period of `cpuPeriodUs`; -1 = unlimited. */
  readonly cpuQuotaUs?: number;
  /** Default 100 000. */
  readonly cpuPeriodUs?: number;
  /** Bytes; -1 = unlimited. */
  readonly memoryBytes?: number;
}

/** A file of a controller, and the text that is written to it. */
export type LimitFile = readonly [controller: 'cpu' | 'memory', file: string, text: string];

const defaultPeriodUs = 100_000;
/** The range of `cpuShares` that the kernel accepts. */
export const leastShares = 2;
export const mostShares = 262_144;

/** The files of version 1 in the order of writing: a quota is checked against the period. */
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

/** The files of version 2. */
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

/** Maps shares (2..262144) to a weight (1..10000), like container runtimes. */
export function weightOf(shares: number): number {
  const clamped = Math.min(Math.max(shares, leastShares), mostShares);
  return 1 + Math.trunc(((clamped - leastShares) * 9_999) / (mostShares - leastShares));
}

/** The controllers under which pods are placed. */
export const ourControllers: readonly string[] = ['cpu', 'cpuacct', 'cpuset', 'memory', 'pids'];

/** A mounted hierarchy. Cgroups are paths from its root, which is `/`. */
export interface Hierarchy {
  /** Mount point. */
  readonly root: string;
  /** The controllers of `ourControllers` that the hierarchy has. */
  readonly controllers: ReadonlySet<string>;
  /** Creates the cgroup and its parents. @throws CgroupError */
  make(path: string): Promise<void>;
  /** @throws CgroupError */
  limit(path: string, limits: CgroupLimits): Promise<void>;
}

/**
 * Creates the directories of a cgroup from the root down. `before` is called with the parent of each directory before
 * the directory is created, `after` with the directory and its parent.
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

/** Writes the limits whose controllers the hierarchy has. */
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

/** A hierarchy of version 1 with one or several controllers. */
export function version1Hierarchy(root: string, controllers: ReadonlySet<string>, files: CgroupFiles): Hierarchy {
  /** A new cpuset accepts no process ("no space left on device") before it has CPUs and memory nodes. */
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

/** The hierarchy of version 2. A cgroup has the controllers that its parent enables for its children. */
export function version2Hierarchy(root: string, controllers: ReadonlySet<string>, files: CgroupFiles): Hierarchy {
  async function enableControllers(folder: string): Promise<void> {
    const file = join(folder, 'cgroup.subtree_control');
    const enabled = new Set(((await files.read(file)) ?? '').split(/\s+/));
    for (const name of controllers) {
      if (enabled.has(name)) continue;
      await attempt(`controller ${name} could not be enabled in ${file}`, () => files.write(file, `+${name}`));
    }
  }

  return {
    root,
    controllers,
    make: (path) => makeFolders(root, path, files, { before: enableControllers }),
    limit: (path, limits) => writeLimits(join(root, path), version2Limits(limits), controllers, files),
  };
}
