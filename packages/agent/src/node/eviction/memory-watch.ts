import type { Clock, Logger } from '@keelson/core/runtime';
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
  /** Called when a threshold is met that was not met at the previous poll. */
  readonly onMet: () => void;
}

/**
 * Polls only the memory of the host, which reads two small files, and more often than all signals are evaluated. It
 * replaces the cgroup notifications of the kernel: those of version 1 use an eventfd, which Node cannot create, and the
 * root cgroup of version 2 has none.
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
