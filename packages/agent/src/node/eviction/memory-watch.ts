import type { Clock, Logger } from '@keelson/core';
import { isMet, type Threshold } from '../../base/config/eviction-threshold.ts';
import { Repeater } from '../../base/repeater.ts';
import type { NodeUsage } from '../../machine/stats/node-usage.ts';

export interface MemoryWatchOptions {
  readonly thresholds: readonly Threshold[];
  readonly usage: Pick<NodeUsage, 'workingSetBytes'>;
  readonly memoryBytes: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly periodMs: number;
  /** A threshold is met that was not at the look before. */
  readonly onMet: () => void;
}

/**
 * Looks at the memory of the machine alone, which costs two small files, and far more often than at everything. It
 * stands in for the notices that the kernel gives of cgroups: those of v1 come by eventfd, which Node cannot make, and
 * the topmost cgroup of v2 has none.
 */
export class MemoryWatch {
  readonly #options: MemoryWatchOptions;
  readonly #loop: Repeater;
  #met: ReadonlySet<Threshold> = new Set();

  constructor(options: MemoryWatchOptions) {
    const { clock, logger, periodMs } = options;
    this.#options = options;
    this.#loop = new Repeater({ clock, logger, what: 'look at memory', periodMs, run: () => this.#look() });
  }

  start(): void {
    this.#loop.start();
  }

  async stop(): Promise<void> {
    await this.#loop.stop();
  }

  async #look(): Promise<void> {
    const { thresholds, usage, memoryBytes: capacity, onMet } = this.#options;
    const observations = new Map([
      ['memory.available' as const, { available: capacity - (await usage.workingSetBytes()), capacity }],
    ]);
    const met = new Set(thresholds.filter((one) => isMet(one, observations)));
    const isNew = [...met].some((one) => !this.#met.has(one));
    this.#met = met;
    if (isNew) onMet();
  }
}
