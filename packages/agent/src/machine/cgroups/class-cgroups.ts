import type { Logger } from '@keelson/core';
import type { CgroupNames } from './cgroup-names.ts';
import type { CgroupTree } from './cgroup-tree.ts';
import { type ClassMember, classLimits, type MemoryReserve } from './class-limits.ts';
import type { CgroupLimits } from './limit-files.ts';

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
