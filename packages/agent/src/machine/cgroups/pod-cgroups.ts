import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import type { CgroupLimits } from '@keelson/container-host';
import type { Logger } from '@keelson/core/runtime';
import { type Pod, qosClassOf } from '@keelson/kinds';
import type { AgentPaths } from '../../base/agent-paths.ts';
import { uidOf } from '../../base/pod/pod-spec.ts';
import { type ClassMember, classLimits, type MemoryReserve, podAmounts, podLimits } from './cgroup-limits.ts';
import type { CgroupNames } from './cgroup-names.ts';
import type { CgroupTree } from './cgroup-tree.ts';

/** Cgroups of pods. All methods are idempotent. */
export interface PodCgroups {
  /** The parent cgroup of the pod in the runtime; undefined = the default of the runtime. */
  parentOf(pod: Pod): string | undefined;
  /** Creates the cgroup of the pod. @throws CgroupError */
  ensure(pod: Pod): Promise<void>;
  /**
   * Kills the processes in the cgroup of the pod, and removes the cgroup.
   *
   * @param uid the UID of the pod, or the name of its directory
   * @throws CgroupError
   */
  remove(uid: string): Promise<void>;
}

/** Pods without cgroups of their own. `root` is the parent cgroup in the runtime. */
export function noPodCgroups(root?: string): PodCgroups {
  return { parentOf: () => root, ensure: () => Promise.resolve(), remove: () => Promise.resolve() };
}

export interface PodCgroupsOptions {
  readonly tree: CgroupTree;
  readonly names: CgroupNames;
  readonly paths: AgentPaths;
  readonly reserve: MemoryReserve;
  readonly cpuCfsQuota: boolean;
  readonly logger: Logger;
}

interface PodCgroup extends ClassMember {
  readonly path: string;
  readonly limits: CgroupLimits;
}

/** Only paths of this form are read from the record and removed. */
const podPath = /^(\/[^/]+)*\/[^/]*pod[^/]+$/;

/**
 * A cgroup for each pod, below that of its quality-of-service class. The path is recorded in the directory of the pod:
 * an agent removes only cgroups that an agent with the same directory has created, even after the options were changed.
 */
export class QosPodCgroups implements PodCgroups {
  readonly #options: PodCgroupsOptions;
  readonly #cgroups = new Map<string, PodCgroup>();
  readonly #classes: ClassCgroups;
  #round: Promise<void> = Promise.resolve();

  constructor(options: PodCgroupsOptions) {
    this.#options = options;
    this.#classes = new ClassCgroups({ ...options, pods: () => this.#cgroups.values() });
  }

  parentOf(pod: Pod): string {
    return this.#options.names.pod(qosClassOf(pod.spec), uidOf(pod));
  }

  async ensure(pod: Pod): Promise<void> {
    const { paths, cpuCfsQuota } = this.#options;
    const uid = uidOf(pod);
    if (this.#cgroups.has(uid)) return;
    const qos = qosClassOf(pod.spec);
    const amounts = podAmounts(pod);
    const cgroup = { qos, ...amounts, path: this.parentOf(pod), limits: podLimits(qos, amounts, cpuCfsQuota) };
    await mkdir(paths.pod(uid), { recursive: true, mode: 0o750 });
    await writeFile(paths.cgroupNote(uid), cgroup.path);
    await this.#make(cgroup);
    this.#cgroups.set(uid, cgroup);
    await this.#classes.update();
  }

  async remove(uid: string): Promise<void> {
    const { tree, paths } = this.#options;
    const note = paths.cgroupNote(uid);
    const wasKnown = this.#cgroups.delete(uid);
    // Otherwise a running reconciliation could create the cgroup again.
    await this.#round;
    const path = await readFile(note, 'utf8').catch(() => '');
    if (podPath.test(path) && !path.split('/').includes('..')) await tree.remove(path);
    await rm(note, { force: true });
    if (wasKnown) await this.#classes.update();
  }

  /** Reconciles cgroups that other programs have changed. @throws CgroupError */
  async restore(): Promise<void> {
    // `remove` waits for the round, but its errors belong to the caller of this method.
    const round = this.#restore();
    this.#round = round.catch(() => undefined);
    await round;
  }

  async #restore(): Promise<void> {
    for (const [uid, cgroup] of this.#cgroups) {
      const missing = !(await this.#options.tree.exists(cgroup.path));
      if (missing && this.#cgroups.has(uid)) await this.#make(cgroup);
    }
    await this.#classes.update();
  }

  async #make({ path, limits }: PodCgroup): Promise<void> {
    const { tree, logger } = this.#options;
    const before = await tree.exists(path);
    await tree.create(path);
    try {
      await tree.limit(path, limits);
    } catch (error) {
      // For a running pod this is not an error: it may already use more than the new limit.
      if (!before) throw error;
      logger.warn('limits of the cgroup of a running pod could not be updated', {
        component: 'cgroups',
        path,
        err: error,
      });
    }
  }
}

export interface ClassCgroupsOptions {
  readonly tree: CgroupTree;
  readonly names: CgroupNames;
  readonly reserve: MemoryReserve;
  /** The pods with cgroups. */
  readonly pods: () => Iterable<ClassMember>;
  readonly logger: Logger;
}

const limitedClasses = ['Burstable', 'BestEffort'] as const;

/** Keeps the limits of the cgroups of quality-of-service classes in step with the requests of their pods. */
export class ClassCgroups {
  readonly #options: ClassCgroupsOptions;
  #last: Promise<void> = Promise.resolve();

  constructor(options: ClassCgroupsOptions) {
    this.#options = options;
  }

  /**
   * Writes the limits for the current pods. Calls run one after the other, so that the latest limits are written last.
   * Errors are logged, because pods run without these limits as well.
   */
  update(): Promise<void> {
    this.#last = this.#last.then(() => this.#write());
    return this.#last;
  }

  async #write(): Promise<void> {
    const { tree, names, pods, reserve, logger } = this.#options;
    const limits = classLimits(pods(), reserve);
    for (const qos of limitedClasses) {
      const path = names.ofClass(qos);
      try {
        await tree.create(path);
        await this.#limit(path, limits[qos]);
      } catch (err) {
        logger.warn('limits of the cgroup of a quality-of-service class could not be set', {
          component: 'cgroups',
          path,
          err,
        });
      }
    }
  }

  /** The kernel does not reclaim memory that a class already uses, so the limit is at least the present usage. */
  async #limit(path: string, { memoryLimitBytes = -1, ...cpu }: CgroupLimits): Promise<void> {
    const { tree } = this.#options;
    await tree.limit(path, cpu);
    const used = memoryLimitBytes < 0 ? 0 : ((await tree.memoryBytes(path)) ?? 0);
    await tree.limit(path, {
      memoryLimitBytes: memoryLimitBytes < 0 ? memoryLimitBytes : Math.max(memoryLimitBytes, used),
    });
  }
}
