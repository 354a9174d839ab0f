import { readdir } from 'node:fs/promises';
import type { Clock, Logger } from '@keelson/core/runtime';
import type { AgentPaths } from '../base/agent-paths.ts';
import { Repeater } from '../base/repeater.ts';
import type { PodCgroups } from '../machine/cgroups/pod-cgroups.ts';
import type { PodVolumes } from '../machine/volumes/pod-volumes.ts';
import type { RuntimePods } from '../runtime-view/runtime-pods.ts';
import { removePodLogs } from './containers/container-files.ts';
import type { PodWorkers } from './pod-workers.ts';

export interface HousekeepingOptions {
  readonly workers: PodWorkers;
  readonly states: RuntimePods;
  readonly volumes: PodVolumes;
  readonly cgroups: PodCgroups;
  readonly paths: AgentPaths;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly periodMs: number;
  /** True when every source has reported its pods: pods that none of them has are orphans. */
  readonly seenAllSources: () => boolean;
}

/** Periodically ends orphaned pods and removes orphaned directories. */
export class Housekeeping {
  readonly #options: HousekeepingOptions;
  readonly #loop: Repeater;

  constructor(options: HousekeepingOptions) {
    this.#options = options;
    const { clock, periodMs } = options;
    const logger = options.logger.child({ component: 'housekeeping' });
    this.#loop = new Repeater({ clock, periodMs, logger, what: 'housekeeping', run: () => this.#round() });
  }

  start(): void {
    this.#loop.startLater();
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  async #round(): Promise<void> {
    const { workers, states, seenAllSources, paths } = this.#options;
    if (!seenAllSources() || !states.complete) return;
    for (const uid of states.uids()) if (workers.get(uid) === undefined) workers.removeOrphan(uid);
    const unknown = (await readdir(paths.pods()).catch(() => [])).filter((dir) => !this.#isUsed(dir));
    if (unknown.length === 0) return;
    // A UID that is not a valid directory name has a different one.
    const used = new Set([...workers.uids(), ...states.uids()].map((uid) => paths.podDirectory(uid)));
    for (const dir of unknown) if (!used.has(dir)) await this.#removeLeftovers(dir);
  }

  #isUsed(uid: string): boolean {
    const { workers, states } = this.#options;
    return workers.get(uid) !== undefined || states.get(uid) !== undefined;
  }

  /** A directory that cannot be removed, such as a busy volume, does not prevent the removal of others. */
  async #removeLeftovers(dir: string): Promise<void> {
    const { paths, volumes, cgroups, logger } = this.#options;
    try {
      await cgroups.remove(dir);
      await removePodLogs(dir, paths);
      await volumes.remove(dir);
    } catch (err) {
      logger.warn('removing an orphaned pod directory failed', { component: 'housekeeping', dir, err });
    }
  }
}
