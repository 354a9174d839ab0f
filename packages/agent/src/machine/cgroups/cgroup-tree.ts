import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { pause } from '@keelson/client';
import type { Clock } from '@keelson/core/runtime';
import { attempt, CgroupError, type CgroupFiles } from './cgroup-files.ts';
import {
  type CgroupLimits,
  type Hierarchy,
  ourControllers,
  version1Hierarchy,
  version2Hierarchy,
} from './hierarchy.ts';

export interface CgroupTreeOptions {
  /** Mount point of the hierarchies. */
  readonly mountpoint: string;
  /** Hierarchies in which the agent creates cgroups. */
  readonly used: readonly Hierarchy[];
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
      if (from !== undefined && !(await this.#processes(join(root, from))).includes(pid)) continue;
      const file = join(root, path, 'cgroup.procs');
      await attempt(`process ${pid} could not be put into ${file}`, async () => {
        if (!(await files.write(file, String(pid)))) throw new Error('there is no such cgroup');
      });
    }
  }

  /** Processes in the cgroup itself, in any hierarchy in which the agent creates cgroups. */
  async members(path: string): Promise<readonly number[]> {
    const all = await Promise.all(this.#options.used.map(({ root }) => this.#processes(join(root, path))));
    return [...new Set(all.flat())].sort((a, b) => a - b);
  }

  /** True when the process is in the cgroup in all of these hierarchies. */
  async isMember(path: string, pid: number): Promise<boolean> {
    const all = await Promise.all(this.#options.used.map(({ root }) => this.#processes(join(root, path))));
    return all.every((pids) => pids.includes(pid));
  }

  /** Memory usage of the cgroup and its children in bytes; undefined when no controller counts it. */
  async memoryBytes(path: string): Promise<number | undefined> {
    const { used, files } = this.#options;
    const root = used.find(({ controllers }) => controllers.has('memory'))?.root ?? '';
    const folder = join(root, path);
    const text =
      (await files.read(join(folder, 'memory.usage_in_bytes'))) ?? (await files.read(join(folder, 'memory.current')));
    return text === undefined ? undefined : Number(text);
  }

  /**
   * Removes the cgroup and its children from every hierarchy. Processes that are still in them after half a second are
   * killed.
   *
   * @throws CgroupError when the kernel has not released the cgroup after two more seconds
   */
  async remove(path: string): Promise<void> {
    const { used, others, clock } = this.#options;
    if (path === '/') throw new CgroupError('the root of the cgroups is not removed');
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
    for (const pid of kill ? await this.#processes(folder) : []) if (pid > 1) files.kill(pid);
    await files.remove(folder);
  }

  async #processes(folder: string): Promise<number[]> {
    const text = (await this.#options.files.read(join(folder, 'cgroup.procs'))) ?? '';
    // Processes of other PID namespaces are shown as 0.
    return text
      .split('\n')
      .map(Number)
      .filter((pid) => pid > 0);
  }
}

const indispensable = ['cpu', 'memory'];

const ours = (names: readonly string[]) => new Set(ourControllers.filter((name) => names.includes(name)));

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

/**
 * Detects the cgroup hierarchies of a machine: version 2 at the mount point, or one directory for each hierarchy of
 * version 1 or 2. The version is detected for each controller.
 *
 * @throws CgroupError when no hierarchy has the cpu or memory controller
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
