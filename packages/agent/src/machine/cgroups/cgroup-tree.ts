import { join } from 'node:path';
import {
  attempt,
  CgroupError,
  type CgroupFiles,
  type CgroupHierarchy,
  type CgroupLimits,
  cgroupMembers,
  findHierarchies,
  readCgroupUsage,
} from '@keelson/container-host';
import { type Clock, pause } from '@keelson/core/runtime';

export interface CgroupTreeOptions {
  /** Mount point of the hierarchies. */
  readonly mountpoint: string;
  /** Hierarchies in which the agent creates cgroups. */
  readonly used: readonly CgroupHierarchy[];
  /** Mount points of other hierarchies, in which runtimes may leave cgroups. */
  readonly others: readonly string[];
  readonly files: CgroupFiles;
  readonly clock: Clock;
}

const removeAttempts = 125;
const removeRetryMs = 20;
/**
 * Attempts before processes are killed: monitor processes of runtimes are in the same cgroups and finish shortly after
 * their container.
 */
const attemptsBeforeKill = 25;
/** Waiting for killed processes is not cancelled. */
const never = new AbortController().signal;

/**
 * All operations on the cgroups of a machine. A cgroup is a path from the root of every hierarchy, such as
 * `/kubepods/burstable`, and exists in all of them. All methods are idempotent.
 */
export class CgroupTree {
  readonly #options: CgroupTreeOptions;

  constructor(options: CgroupTreeOptions) {
    this.#options = options;
  }

  get mountpoint(): string {
    return this.#options.mountpoint;
  }

  /** True when the cgroup exists in every hierarchy in which the agent creates cgroups. */
  async exists(path: string): Promise<boolean> {
    const { used, files } = this.#options;
    const found = await Promise.all(used.map(({ root }) => files.isFolder(join(root, path))));
    return found.every(Boolean);
  }

  /** Creates the cgroup and its parents. @throws CgroupError */
  async create(path: string): Promise<void> {
    for (const hierarchy of this.#options.used) await hierarchy.make(path);
  }

  /** Sets limits of a cgroup. @throws CgroupError also when the cgroup does not exist */
  async limit(path: string, limits: CgroupLimits): Promise<void> {
    if (!(await this.exists(path))) throw new CgroupError(`there is no cgroup ${path} in every hierarchy`);
    for (const hierarchy of this.#options.used) await hierarchy.limit(path, limits);
  }

  /**
   * Moves a process into the cgroup. With `from`, only in hierarchies in which the process is in that cgroup.
   * @throws CgroupError
   */
  async attach(path: string, pid: number, from?: string): Promise<void> {
    const { used, files } = this.#options;
    for (const { root } of used) {
      if (from !== undefined && !(await cgroupMembers([join(root, from)], files)).includes(pid)) continue;
      const file = join(root, path, 'cgroup.procs');
      await attempt(`process ${pid} could not be put into ${file}`, async () => {
        if (!(await files.write(file, String(pid)))) throw new Error('there is no such cgroup');
      });
    }
  }

  /** Processes in the cgroup itself, in any hierarchy in which the agent creates cgroups. */
  async members(path: string): Promise<readonly number[]> {
    const { used, files } = this.#options;
    const all = await cgroupMembers(
      used.map(({ root }) => join(root, path)),
      files,
    );
    return all.sort((a, b) => a - b);
  }

  /** True when the process is in the cgroup in all of these hierarchies. */
  async isMember(path: string, pid: number): Promise<boolean> {
    const { used, files } = this.#options;
    const all = await Promise.all(used.map(({ root }) => cgroupMembers([join(root, path)], files)));
    return all.every((pids) => pids.includes(pid));
  }

  /** Memory usage of the cgroup and its children in bytes; undefined when no controller counts it. */
  async memoryBytes(path: string): Promise<number | undefined> {
    const { used, files } = this.#options;
    const root = used.find(({ controllers }) => controllers.has('memory'))?.root ?? '';
    return (await readCgroupUsage([join(root, path)], files)).memory?.usageBytes;
  }

  /**
   * Removes the cgroup and its children from every hierarchy. Processes that are still in them after half a second are
   * killed.
   *
   * @throws CgroupError when the kernel has not released the cgroup after two more seconds
   */
  async remove(path: string): Promise<void> {
    const { used, others, clock } = this.#options;
    if (path === '/') throw new CgroupError('the root cgroup must not be removed');
    const folders = [...used.map(({ root }) => root), ...others].map((root) => join(root, path));
    let problem: unknown;
    for (let attempts = 0; attempts < removeAttempts; attempts += 1) {
      problem = undefined;
      // The kernel removes killed processes from a cgroup with a delay.
      if (attempts > 0) await pause(clock, removeRetryMs, never);
      const kill = attempts >= attemptsBeforeKill;
      for (const folder of folders)
        await this.#removeBelow(folder, kill).catch((error: unknown) => (problem ??= error));
      if (problem === undefined) return;
    }
    await attempt(`cgroup ${path} could not be removed`, () => Promise.reject(problem));
  }

  async #removeBelow(folder: string, kill: boolean): Promise<void> {
    const { files } = this.#options;
    for (const name of await files.folders(folder)) await this.#removeBelow(join(folder, name), kill);
    for (const pid of kill ? await cgroupMembers([folder], files) : []) if (pid > 1) files.kill(pid);
    await files.remove(folder);
  }
}

const indispensable = ['cpu', 'memory'] as const;

/**
 * Detects the cgroups of a machine.
 *
 * @throws CgroupError when no hierarchy has the cpu or memory controller
 */
export async function findCgroups(mountpoint: string, files: CgroupFiles, clock: Clock): Promise<CgroupTree> {
  const { used, others } = await findHierarchies(mountpoint, files);
  const missing = indispensable.filter((name) => !used.some(({ controllers }) => controllers.has(name)));
  if (missing.length > 0)
    throw new CgroupError(`there is no cgroup hierarchy with ${missing.join(' and ')} at ${mountpoint}`);
  return new CgroupTree({ mountpoint, used, others, files, clock });
}
