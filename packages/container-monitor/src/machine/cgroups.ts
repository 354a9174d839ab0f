import { constants } from 'node:fs';
import { access, mkdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { LinuxResources } from '@keelson/container-runtime';
import { hasCode } from './atomic-file.ts';
import { newId } from './ids.ts';
import { signalProcess } from './proc.ts';

export interface CgroupOptions {
  /** Where the hierarchies are mounted; default `/sys/fs/cgroup`. */
  readonly mountpoint?: string;
  /**
   * Parent of the containers whose sandbox specifies no parent, as a path from the root of every hierarchy; default
   * `/keelson`.
   */
  readonly parent?: string;
}

const removeAttempts = 50;
const removeRetryMs = 20;

type Controller = 'memory' | 'cpu' | 'cpuset' | 'pids';
const controllers: readonly Controller[] = ['memory', 'cpu', 'cpuset', 'pids'];

/**
 * Control groups of containers, of version 2, version 1 or both; the version is detected for each controller. Limits of
 * controllers that this process cannot use are not applied; `has` reports which controllers it can use.
 */
export class Cgroups {
  readonly #defaultParent: string;
  /** Version 2 hierarchy with at least one of {@link controllers}. */
  readonly #unified: string | undefined;
  readonly #version1: ReadonlyMap<Controller, string>;
  readonly #usable: ReadonlySet<Controller>;

  private constructor(
    options: CgroupOptions,
    unified: string | undefined,
    version1: ReadonlyMap<Controller, string>,
    usable: ReadonlySet<Controller>,
  ) {
    this.#defaultParent = options.parent ?? '/keelson';
    this.#unified = unified;
    this.#version1 = version1;
    this.#usable = usable;
  }

  static async find(options: CgroupOptions | undefined): Promise<Cgroups> {
    const none = new Cgroups({}, undefined, new Map(), new Set());
    if (options === undefined) return none;
    const mountpoint = options.mountpoint ?? '/sys/fs/cgroup';
    const usable = new Set<Controller>();
    const version1 = new Map<Controller, string>();
    let unified: string | undefined;
    for (const root of [mountpoint, join(mountpoint, 'unified')]) {
      const listed = await readFile(join(root, 'cgroup.controllers'), 'utf8').catch(() => '');
      const ours = controllers.filter((name) => listed.trim().split(/\s+/).includes(name));
      if (ours.length === 0 || !(await isWritable(root))) continue;
      unified = root;
      for (const name of ours) usable.add(name);
    }
    for (const name of controllers) {
      const root = join(mountpoint, name);
      if (usable.has(name) || !(await exists(join(root, 'cgroup.procs'))) || !(await isWritable(root))) continue;
      version1.set(name, root);
      usable.add(name);
    }
    return new Cgroups(options, unified, version1, usable);
  }

  has(controller: Controller): boolean {
    return this.#usable.has(controller);
  }

  /** Creates the container's groups and sets its limits. Returns the folders that its processes must join. */
  async create(
    sandboxParent: string | undefined,
    sandboxId: string,
    containerId: string,
    resources: LinuxResources,
  ): Promise<string[]> {
    const path = join(sandboxParent ?? this.#defaultParent, sandboxId, containerId);
    const folders: string[] = [];
    for (const root of this.#roots()) {
      const folder = join(root, path);
      await this.#makeAll(root, folder);
      folders.push(folder);
    }
    await this.update(folders, resources);
    return folders;
  }

  /** Folders of a group that another program creates, given as a path from the root of every hierarchy. */
  foldersOf(path: string): string[] {
    return this.#roots().map((root) => join(root, path));
  }

  async update(folders: readonly string[], resources: LinuxResources): Promise<void> {
    for (const folder of folders) {
      const two = this.#unified !== undefined && folder.startsWith(`${this.#unified}/`) && !this.#isVersion1(folder);
      for (const [file, value] of two ? version2Limits(resources) : version1Limits(resources)) {
        const path = join(folder, file);
        if (await exists(path)) await writeFile(path, value);
      }
    }
  }

  /** Process ids in the container's groups. */
  async members(folders: readonly string[]): Promise<number[]> {
    const found = new Set<number>();
    for (const folder of folders) {
      const text = await readFile(join(folder, 'cgroup.procs'), 'utf8').catch(() => '');
      for (const line of text.split('\n')) if (line !== '') found.add(Number(line));
    }
    return [...found];
  }

  /** Whether the out-of-memory killer of the kernel ended a process of the container. */
  async ranOutOfMemory(folders: readonly string[]): Promise<boolean> {
    for (const folder of folders) {
      for (const file of ['memory.events', 'memory.oom_control']) {
        const text = await readFile(join(folder, file), 'utf8').catch(() => '');
        if (Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0) > 0) return true;
      }
    }
    return false;
  }

  /** Memory in bytes: the usage, and the working set, which excludes inactive file pages. */
  async memory(
    folders: readonly string[],
  ): Promise<{ readonly usageBytes: number; readonly workingSetBytes: number } | undefined> {
    for (const folder of folders) {
      const read = (file: string) => readFile(join(folder, file), 'utf8').catch(() => undefined);
      const usage = (await read('memory.current')) ?? (await read('memory.usage_in_bytes'));
      if (usage === undefined) continue;
      const statistics = (await read('memory.stat')) ?? '';
      const inactive = Number(/^(?:total_)?inactive_file (\d+)$/m.exec(statistics)?.[1] ?? 0);
      const usageBytes = Number(usage);
      return { usageBytes, workingSetBytes: Math.max(0, usageBytes - inactive) };
    }
    return undefined;
  }

  /** Kills the remaining processes of the container's groups, and removes the groups and an empty sandbox group. */
  async remove(folders: readonly string[]): Promise<void> {
    for (const folder of folders) {
      // Killed processes leave their group with a delay.
      for (let attempt = 0; attempt < removeAttempts && (await isBusy(folder)); attempt += 1) {
        for (const pid of await this.members([folder])) signalProcess(pid, 'SIGKILL');
        await delay(removeRetryMs);
      }
      await isBusy(dirname(folder));
    }
  }

  #roots(): string[] {
    return [...(this.#unified === undefined ? [] : [this.#unified]), ...this.#version1.values()];
  }

  #isVersion1(folder: string): boolean {
    return [...this.#version1.values()].some((root) => folder.startsWith(`${root}/`));
  }

  async #makeAll(root: string, folder: string): Promise<void> {
    let current = root;
    for (const name of folder.slice(root.length).split('/').filter(Boolean)) {
      if (root === this.#unified) await this.#delegate(current);
      const parent = current;
      current = join(current, name);
      await mkdir(current, { recursive: true });
      if (root === this.#version1.get('cpuset')) await inheritCpuset(parent, current);
    }
  }

  /** Enables the controllers for the children of a version 2 group. */
  async #delegate(folder: string): Promise<void> {
    const wanted = controllers.filter((name) => this.#usable.has(name) && !this.#version1.has(name));
    for (const name of wanted) {
      await writeFile(join(folder, 'cgroup.subtree_control'), `+${name}`).catch((error: unknown) => {
        if (!hasCode(error, 'EBUSY', 'ENOENT', 'EOPNOTSUPP')) throw error;
      });
    }
  }
}

/** Sets processors and memory nodes of a version 1 cpuset group, which accepts no process without them. */
async function inheritCpuset(parent: string, child: string): Promise<void> {
  for (const file of ['cpuset.mems', 'cpuset.cpus']) {
    const own = await readFile(join(child, file), 'utf8').catch(() => undefined);
    if (own?.trim() === '') await writeFile(join(child, file), await readFile(join(parent, file), 'utf8'));
  }
}

function* version2Limits(resources: LinuxResources): Iterable<readonly [string, string]> {
  const {
    cpuShares,
    cpuQuotaUs,
    cpuPeriodUs = 100_000,
    cpusetCpus,
    cpusetMems,
    memoryLimitBytes,
    pidsLimit,
  } = resources;
  // The mapping of 2..262144 to 1..10000 that the kernel uses.
  if (cpuShares)
    yield ['cpu.weight', String(1 + Math.trunc(((Math.min(Math.max(cpuShares, 2), 262_144) - 2) * 9999) / 262_142))];
  if (cpuQuotaUs) yield ['cpu.max', `${cpuQuotaUs < 0 ? 'max' : cpuQuotaUs} ${cpuPeriodUs}`];
  if (cpusetMems) yield ['cpuset.mems', cpusetMems];
  if (cpusetCpus) yield ['cpuset.cpus', cpusetCpus];
  if (memoryLimitBytes) yield ['memory.max', memoryLimitBytes < 0 ? 'max' : String(memoryLimitBytes)];
  if (memoryLimitBytes) yield ['memory.swap.max', memoryLimitBytes < 0 ? 'max' : '0'];
  if (pidsLimit) yield ['pids.max', pidsLimit < 0 ? 'max' : String(pidsLimit)];
}

function* version1Limits(resources: LinuxResources): Iterable<readonly [string, string]> {
  const { cpuShares, cpuQuotaUs, cpuPeriodUs, cpusetCpus, cpusetMems, memoryLimitBytes, pidsLimit } = resources;
  if (cpuShares) yield ['cpu.shares', String(cpuShares)];
  if (cpuPeriodUs) yield ['cpu.cfs_period_us', String(cpuPeriodUs)];
  if (cpuQuotaUs) yield ['cpu.cfs_quota_us', String(cpuQuotaUs)];
  if (cpusetMems) yield ['cpuset.mems', cpusetMems];
  if (cpusetCpus) yield ['cpuset.cpus', cpusetCpus];
  if (memoryLimitBytes) yield ['memory.limit_in_bytes', String(memoryLimitBytes)];
  if (pidsLimit) yield ['pids.max', pidsLimit < 0 ? 'max' : String(pidsLimit)];
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

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** Tested by creating a group, because the permission bits of these file systems are not reliable. */
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
