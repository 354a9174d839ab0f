import { readdir } from 'node:fs/promises';
import { pause } from '@keelson/client';
import type { Clock, Logger } from '@keelson/core/runtime';
import type { AgentPaths } from '../base/agent-paths.ts';
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
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(options: HousekeepingOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running = this.#repeat();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #repeat(): Promise<void> {
    const { clock, periodMs, logger } = this.#options;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await pause(clock, periodMs, signal);
      if (signal.aborted) return;
      try {
        await this.#round();
      } catch (err) {
        logger.warn('housekeeping failed', { component: 'housekeeping', err });
      }
    }
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
