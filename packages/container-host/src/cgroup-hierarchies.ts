import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { LinuxResources } from '@keelson/container-runtime';
import { attempt, type CgroupFiles, systemCgroupFiles } from './cgroup-files.ts';
import { hasCode } from './files.ts';

/** Limits of a cgroup. An absent limit is not changed; -1 removes a quota or a memory or process limit. */
export interface CgroupLimits extends Omit<LinuxResources, 'oomScoreAdjust'> {
  /** Limit of swap in bytes, not including memory. Only cgroups of version 2 use it. */
  readonly swapLimitBytes?: number;
}

/** The controllers under which pods and containers are placed. */
const ourControllers = ['cpu', 'cpuacct', 'cpuset', 'memory', 'pids'] as const;

export type CgroupController = (typeof ourControllers)[number];

/** A cgroup file of a controller, and the text to be written to it. */
type LimitFile = readonly [controller: CgroupController, file: string, text: string];

const defaultPeriodUs = 100_000;
/** The range of `cpuShares` that the kernel accepts. */
export const leastShares = 2;
export const mostShares = 262_144;

const orMax = (value: number): string => (value < 0 ? 'max' : String(value));

/** Files and values of limits for version 1, in the order of writing: the kernel checks a quota against the period. */
function* version1Limits(limits: CgroupLimits): Iterable<LimitFile> {
  const { cpuShares, cpuQuotaUs, cpuPeriodUs, cpusetCpus, cpusetMems, memoryLimitBytes, pidsLimit } = limits;
  if (cpuShares !== undefined) yield ['cpu', 'cpu.shares', String(cpuShares)];
  if (cpuPeriodUs !== undefined) yield ['cpu', 'cpu.cfs_period_us', String(cpuPeriodUs)];
  if (cpuQuotaUs !== undefined) yield ['cpu', 'cpu.cfs_quota_us', String(cpuQuotaUs)];
  if (cpusetMems !== undefined) yield ['cpuset', 'cpuset.mems', cpusetMems];
  if (cpusetCpus !== undefined) yield ['cpuset', 'cpuset.cpus', cpusetCpus];
  if (memoryLimitBytes !== undefined) yield ['memory', 'memory.limit_in_bytes', String(memoryLimitBytes)];
  if (pidsLimit !== undefined) yield ['pids', 'pids.max', orMax(pidsLimit)];
}

/** Files and values of limits for version 2. */
function* version2Limits(limits: CgroupLimits): Iterable<LimitFile> {
  const { cpuShares, cpuQuotaUs, cpuPeriodUs, cpusetCpus, cpusetMems, memoryLimitBytes, swapLimitBytes } = limits;
  const { pidsLimit } = limits;
  if (cpuShares !== undefined) yield ['cpu', 'cpu.weight', String(weightOf(cpuShares))];
  if (cpuQuotaUs !== undefined) yield ['cpu', 'cpu.max', `${orMax(cpuQuotaUs)} ${cpuPeriodUs ?? defaultPeriodUs}`];
  if (cpusetMems !== undefined) yield ['cpuset', 'cpuset.mems', cpusetMems];
  if (cpusetCpus !== undefined) yield ['cpuset', 'cpuset.cpus', cpusetCpus];
  if (memoryLimitBytes !== undefined) yield ['memory', 'memory.max', orMax(memoryLimitBytes)];
  if (swapLimitBytes !== undefined) yield ['memory', 'memory.swap.max', orMax(swapLimitBytes)];
  if (pidsLimit !== undefined) yield ['pids', 'pids.max', orMax(pidsLimit)];
}

/** Maps shares (2..262144) to a weight (1..10000), like container runtimes. */
export function weightOf(shares: number): number {
  const clamped = Math.min(Math.max(shares, leastShares), mostShares);
  return 1 + Math.trunc(((clamped - leastShares) * 9_999) / (mostShares - leastShares));
}

/** A mounted hierarchy. Cgroups are paths from its root, which is `/`. */
export interface CgroupHierarchy {
  /** Mount point. */
  readonly root: string;
  readonly version: 1 | 2;
  /** The controllers of pods and containers that the hierarchy has. */
  readonly controllers: ReadonlySet<CgroupController>;
  /**
   * Creates the cgroup and its parents.
   *
   * @param tolerated codes of errors of enabling a controller of version 2, after which it is missing in the cgroup
   * @throws CgroupError
   */
  make(path: string, ...tolerated: string[]): Promise<void>;
  /** Writes the limits whose controllers the hierarchy has. @throws CgroupError */
  limit(path: string, limits: CgroupLimits): Promise<void>;
}

function hierarchyAt(
  root: string,
  version: 1 | 2,
  controllers: ReadonlySet<CgroupController>,
  files: CgroupFiles,
): CgroupHierarchy {
  /** A new cpuset of version 1 accepts no process ("no space left on device") before it has CPUs and memory nodes. */
  async function inheritCpuset(folder: string, above: string): Promise<void> {
    for (const name of ['cpuset.cpus', 'cpuset.mems']) {
      const own = join(folder, name);
      if ((await files.read(own))?.trim() !== '') continue;
      const text = (await files.read(join(above, name))) ?? '';
      await attempt(`${own} could not be copied from the cgroup above`, () => files.write(own, text.trim()));
    }
  }

  /** A cgroup of version 2 has the controllers that its parent enables for its children. */
  async function enableControllers(folder: string, tolerated: readonly string[]): Promise<void> {
    const file = join(folder, 'cgroup.subtree_control');
    const enabled = new Set(((await files.read(file)) ?? '').split(/\s+/));
    for (const name of controllers) {
      if (enabled.has(name)) continue;
      await attempt(`controller ${name} could not be enabled in ${file}`, () =>
        files.write(file, `+${name}`).catch((error: unknown) => {
          if (!hasCode(error, ...tolerated)) throw error;
        }),
      );
    }
  }

  return {
    ...{ root, version, controllers },
    async make(path, ...tolerated) {
      let folder = root;
      for (const name of path.split('/').filter(Boolean)) {
        if (version === 2) await enableControllers(folder, tolerated);
        const above = folder;
        folder = join(folder, name);
        await attempt(`cgroup ${folder} could not be made`, () => files.make(folder));
        if (version === 1 && controllers.has('cpuset')) await inheritCpuset(folder, above);
      }
    },
    async limit(path, limits) {
      for (const [controller, name, text] of (version === 1 ? version1Limits : version2Limits)(limits)) {
        const file = join(root, path, name);
        if (controllers.has(controller))
          await attempt(`${text} could not be written to ${file}`, () => files.write(file, text));
      }
    },
  };
}

/** The cgroup hierarchies of a machine. */
export interface CgroupHierarchies {
  /** The hierarchies with controllers of pods and containers. */
  readonly used: readonly CgroupHierarchy[];
  /** Mount points of hierarchies without controllers of containers. Container runtimes may leave cgroups in them. */
  readonly others: readonly string[];
}

/**
 * Detects the hierarchies of a machine. The mount point is either a hierarchy of version 2, or a directory with one
 * subdirectory for each hierarchy of version 1 or 2.
 */
export async function findHierarchies(mountpoint: string, files: CgroupFiles): Promise<CgroupHierarchies> {
  const used: CgroupHierarchy[] = [];
  const others: string[] = [];
  const unified = (await files.read(join(mountpoint, 'cgroup.controllers'))) !== undefined;
  for (const folder of unified ? [mountpoint] : await mountsBelow(mountpoint, files)) {
    const listed = await files.read(join(folder, 'cgroup.controllers'));
    const names =
      listed === undefined ? folder.slice(folder.lastIndexOf('/') + 1).split(',') : listed.trim().split(/\s+/);
    const controllers = new Set(ourControllers.filter((name) => names.includes(name)));
    if (controllers.size === 0) others.push(folder);
    else used.push(hierarchyAt(folder, listed === undefined ? 1 : 2, controllers, files));
  }
  return { used, others };
}

/** Removes an empty cgroup from every hierarchy. One that has processes or child cgroups is not removed. */
export async function removeEmptyCgroup(mountpoint: string, path: string): Promise<void> {
  const { used, others } = await findHierarchies(mountpoint, systemCgroupFiles);
  for (const root of [...used.map((hierarchy) => hierarchy.root), ...others]) {
    await systemCgroupFiles.remove(join(root, path)).catch((error: unknown) => {
      if (!hasCode(error, 'EBUSY', 'ENOTEMPTY')) throw error;
    });
  }
}

/** The mount points of version 1, each once: a name such as `cpu` may be a link to `cpu,cpuacct`. */
async function mountsBelow(mountpoint: string, files: CgroupFiles): Promise<string[]> {
  const names = [...(await files.folders(mountpoint)), ...ourControllers];
  const found = new Set<string>();
  for (const name of names) {
    const folder = await realpath(join(mountpoint, name)).catch(() => undefined);
    if (folder !== undefined && (await files.read(join(folder, 'cgroup.procs'))) !== undefined) found.add(folder);
  }
  return [...found];
}
