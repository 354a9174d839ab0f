import { constants } from 'node:fs';
import { access, mkdir, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type CgroupController,
  type CgroupHierarchy,
  type CgroupUsage,
  cgroupMembers,
  findHierarchies,
  hasCode,
  ranOutOfMemory,
  readCgroupUsage,
  signalProcess,
  systemCgroupFiles,
} from '@keelson/container-host';
import type { LinuxResources } from '@keelson/container-runtime';
import { newId } from '../state/state-directory.ts';

export interface CgroupOptions {
  /** Mount point of the cgroup hierarchies; default `/sys/fs/cgroup`. */
  readonly mountpoint?: string;
  /**
   * Parent of the containers whose sandbox specifies no parent, as a path from the root of every hierarchy; default
   * `/keelson`.
   */
  readonly parent?: string;
}

const removeAttempts = 50;
const removeRetryMs = 20;

/** Reasons for which a controller is not available in a cgroup; its limits are not applied then. */
const unavailable = ['EBUSY', 'ENOENT', 'EOPNOTSUPP'];

/**
 * Control groups of containers, of version 2, version 1 or both. Limits of controllers that this process cannot use are
 * not applied; `has` reports which controllers it can use.
 */
export class Cgroups {
  readonly #defaultParent: string;
  readonly #hierarchies: readonly CgroupHierarchy[];

  private constructor(options: CgroupOptions, hierarchies: readonly CgroupHierarchy[]) {
    this.#defaultParent = options.parent ?? '/keelson';
    this.#hierarchies = hierarchies;
  }

  /** The hierarchies in which this process can create groups; none without options. */
  static async find(options: CgroupOptions | undefined): Promise<Cgroups> {
    if (options === undefined) return new Cgroups({}, []);
    const { used } = await findHierarchies(options.mountpoint ?? '/sys/fs/cgroup', systemCgroupFiles);
    const writable: CgroupHierarchy[] = [];
    for (const hierarchy of used) if (await isWritable(hierarchy.root)) writable.push(hierarchy);
    return new Cgroups(options, writable);
  }

  has(controller: CgroupController): boolean {
    return this.#hierarchies.some(({ controllers }) => controllers.has(controller));
  }

  /** Creates the container's groups and sets its limits. Returns the folders that its processes must join. */
  async create(
    sandboxParent: string | undefined,
    sandboxId: string,
    containerId: string,
    resources: LinuxResources,
  ): Promise<string[]> {
    const path = join(sandboxParent ?? this.#defaultParent, sandboxId, containerId);
    for (const hierarchy of this.#hierarchies) await hierarchy.make(path, ...unavailable);
    const folders = this.foldersOf(path);
    await this.update(folders, resources);
    return folders;
  }

  /** The folders of a group, which another program may create, given as a path from the root of every hierarchy. */
  foldersOf(path: string): string[] {
    return this.#hierarchies.map(({ root }) => join(root, path));
  }

  /** Writes limits to the cgroups of a container. A limit of 0 is treated as absent. @throws CgroupError */
  async update(folders: readonly string[], { oomScoreAdjust, ...resources }: LinuxResources): Promise<void> {
    const given = Object.fromEntries(Object.entries(resources).filter(([, value]) => Boolean(value)));
    // With a memory limit, swap is forbidden: a container could exceed the limit by swapping.
    const { memoryLimitBytes = 0 } = resources;
    const swap = memoryLimitBytes === 0 ? {} : { swapLimitBytes: Math.min(memoryLimitBytes, 0) };
    const limits = { ...given, ...swap };
    for (const hierarchy of this.#hierarchies) {
      const folder = folders.find((name) => name.startsWith(`${hierarchy.root}/`));
      if (folder !== undefined) await hierarchy.limit(folder.slice(hierarchy.root.length), limits);
    }
  }

  /** Process ids in the container's groups. */
  members(folders: readonly string[]): Promise<number[]> {
    return cgroupMembers(folders);
  }

  /** Whether the out-of-memory killer of the kernel ended a process of the container. */
  ranOutOfMemory(folders: readonly string[]): Promise<boolean> {
    return ranOutOfMemory(folders);
  }

  /** What the container uses; values that no controller counts are absent. */
  usage(folders: readonly string[]): Promise<CgroupUsage> {
    return readCgroupUsage(folders);
  }

  /** Kills the remaining processes of the container's groups, and removes the groups and an empty sandbox group. */
  async remove(folders: readonly string[]): Promise<void> {
    for (const folder of folders) {
      // Not injected: the kernel takes real time.
      // Killed processes leave their group with a delay.
      for (let attempt = 0; attempt < removeAttempts && (await isBusy(folder)); attempt += 1) {
        for (const pid of await this.members([folder])) signalProcess(pid, 'SIGKILL');
        await delay(removeRetryMs);
      }
      await isBusy(dirname(folder));
    }
  }
}

/** Tries to remove a group; true when it still has processes. */
async function isBusy(folder: string): Promise<boolean> {
  try {
    await rmdir(folder);
    return false;
  } catch (error) {
    if (hasCode(error, 'EBUSY')) return true;
    if (hasCode(error, 'ENOENT', 'ENOTEMPTY', 'EACCES', 'EPERM')) return false;
    throw error;
  }
}

/**
 * Whether this process can create cgroups below `root`. This is tested by creating one, because the permission bits of
 * cgroup file systems are not reliable.
 */
async function isWritable(root: string): Promise<boolean> {
  // A unique name, because several runtimes may test at the same time.
  const probe = join(root, `keelson-probe-${newId()}`);
  try {
    await access(root, constants.X_OK);
    await mkdir(probe);
    await rmdir(probe);
    return true;
  } catch {
    return false;
  }
}
