import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import type { Logger } from '@keelson/core';
import { type Pod, qosClassOf } from '@keelson/kinds';
import type { AgentPaths } from '../../base/agent-paths.ts';
import { uidOf } from '../../base/pod/pod-spec.ts';
import { type ClassMember, classLimits, type MemoryReserve, podAmounts, podLimits } from './cgroup-limits.ts';
import type { CgroupNames } from './cgroup-names.ts';
import type { CgroupTree } from './cgroup-tree.ts';
import type { CgroupLimits } from './hierarchy.ts';

/** The groups of pods. All methods may be repeated. */
export interface PodCgroups {
  /** The group below which the runtime places the pod; undefined: where it likes. */
  parentOf(pod: Pod): string | undefined;
  /** Makes the pod's group. @throws CgroupError */
  ensure(pod: Pod): Promise<void>;
  /**
   * Kills what is left in the group of the pod, and removes it. `uid` may be the name of the pod's directory.
   * @throws CgroupError
   */
  remove(uid: string): Promise<void>;
}

/** Pods have no groups of their own. `root`: where the runtime places them. */
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

interface Known extends ClassMember {
  readonly path: string;
  readonly limits: CgroupLimits;
}

/** Only this is taken out of a note and removed. */
const podPath = /^(\/[^/]+)*\/[^/]*pod[^/]+$/;

/**
 * A group for each pod. Which pod has which is noted in its directory, so that an agent removes the groups that an
 * agent of its directory made, also when options were changed meanwhile, and never those of somebody else.
 */
export class QosPodCgroups implements PodCgroups {
  readonly #options: PodCgroupsOptions;
  readonly #known = new Map<string, Known>();
  readonly #classes: ClassCgroups;
  #round: Promise<void> = Promise.resolve();

  constructor(options: PodCgroupsOptions) {
    this.#options = options;
    this.#classes = new ClassCgroups({ ...options, pods: () => this.#known.values() });
  }

  parentOf(pod: Pod): string {
    return this.#options.names.pod(qosClassOf(pod.spec), uidOf(pod));
  }

  async ensure(pod: Pod): Promise<void> {
    const { paths, cpuCfsQuota } = this.#options;
    const uid = uidOf(pod);
    if (this.#known.has(uid)) return;
    const qos = qosClassOf(pod.spec);
    const amounts = podAmounts(pod);
    const known = { qos, ...amounts, path: this.parentOf(pod), limits: podLimits(qos, amounts, cpuCfsQuota) };
    await mkdir(paths.pod(uid), { recursive: true, mode: 0o750 });
    await writeFile(paths.cgroupNote(uid), known.path);
    await this.#make(known);
    this.#known.set(uid, known);
    await this.#classes.update();
  }

  async remove(uid: string): Promise<void> {
    const { tree, paths } = this.#options;
    const note = paths.cgroupNote(uid);
    const wasKnown = this.#known.delete(uid);
    // Or it would be made again while it is removed.
    await this.#round;
    const path = await readFile(note, 'utf8').catch(() => '');
    if (podPath.test(path) && !path.split('/').includes('..')) await tree.remove(path);
    await rm(note, { force: true });
    if (wasKnown) await this.#classes.update();
  }

  /** Puts right what others changed. @throws CgroupError */
  async restore(): Promise<void> {
    // Whoever waits for the round does not hear of its failures.
    const round = this.#restore();
    this.#round = round.catch(() => undefined);
    await round;
  }

  async #restore(): Promise<void> {
    for (const [uid, known] of this.#known) {
      const missing = !(await this.#options.tree.exists(known.path));
      if (missing && this.#known.has(uid)) await this.#make(known);
    }
    await this.#classes.update();
  }

  async #make({ path, limits }: Known): Promise<void> {
    const { tree, logger } = this.#options;
    const before = await tree.exists(path);
    await tree.create(path);
    try {
      await tree.limit(path, limits);
    } catch (error) {
      // Of a pod that runs: it may use more than it was granted before.
      if (!before) throw error;
      logger.warn('the cgroup of a pod could not be limited anew', { component: 'cgroups', path, err: error });
    }
  }
}

export interface ClassCgroupsOptions {
  readonly tree: CgroupTree;
  readonly names: CgroupNames;
  readonly reserve: MemoryReserve;
  /** The pods that have groups. */
  readonly pods: () => Iterable<ClassMember>;
  readonly logger: Logger;
}

const limitedClasses = ['Burstable', 'BestEffort'] as const;

/** Keeps the limits of the groups of classes at what their pods ask for. */
export class ClassCgroups {
  readonly #options: ClassCgroupsOptions;
  #last: Promise<void> = Promise.resolve();

  constructor(options: ClassCgroupsOptions) {
    this.#options = options;
  }

  /**
   * Writes what the pods ask for now. One at a time, so that the latest wins. What cannot be written is logged: pods
   * run all the same.
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
        logger.warn('the cgroup of a class of pods could not be limited', { component: 'cgroups', path, err });
      }
    }
  }

  /**
   * A class may use more memory than it is granted now, which the kernel does not take back: it gets no more than that.
   */
  async #limit(path: string, { memoryBytes = -1, ...cpu }: CgroupLimits): Promise<void> {
    const { tree } = this.#options;
    await tree.limit(path, cpu);
    const used = memoryBytes < 0 ? 0 : ((await tree.memoryBytes(path)) ?? 0);
    await tree.limit(path, { memoryBytes: memoryBytes < 0 ? memoryBytes : Math.max(memoryBytes, used) });
  }
}
