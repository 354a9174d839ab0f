import type { Clock, Logger } from '@keelson/core/runtime';
import { uidOf } from '../../base/pod/pod-spec.ts';
import { Repeater } from '../../base/repeater.ts';
import type { Evictions } from './evictions.ts';
import { exceededLimit, limitsStorage } from './storage-limits.ts';
import { activePods, type VictimsOptions } from './victims.ts';

export interface LimitKeeperOptions {
  readonly victims: VictimsOptions;
  readonly evictions: Evictions;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly periodMs: number;
}

/**
 * Evicts pods that exceed their own limits of local storage, independent of the free space of the node (the gate
 * LocalStorageCapacityIsolation).
 */
export class LimitKeeper {
  readonly #options: LimitKeeperOptions;
  readonly #loop: Repeater;

  constructor(options: LimitKeeperOptions) {
    const { clock, logger, periodMs } = options;
    this.#options = options;
    const run = (signal: AbortSignal) => this.#round(signal);
    this.#loop = new Repeater({ clock, logger, what: 'look for pods above their limits of disk', periodMs, run });
  }

  start(): void {
    this.#loop.start();
  }

  async stop(): Promise<void> {
    await this.#loop.stop();
  }

  async #round(signal: AbortSignal): Promise<void> {
    const { victims, evictions } = this.#options;
    const limited = activePods(victims).filter(({ pod }) => limitsStorage(pod));
    const active = new Map(limited.map((one) => [uidOf(one.pod), one]));
    if (active.size === 0) return;
    for (const usage of await victims.usage(signal)) {
      const one = active.get(usage.uid);
      if (one === undefined) continue;
      const exceeded = exceededLimit(one.pod, usage, await victims.disk.logs(usage.uid, signal));
      if (signal.aborted) return;
      if (exceeded !== undefined) evictions.evictForLimit(one, exceeded);
    }
  }
}
