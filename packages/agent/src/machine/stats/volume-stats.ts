import { type Clock, type Logger, pause } from '@keelson/core/runtime';
import type { VolumeUsage } from '../../base/contracts/pod-queries.ts';
import type { HostFiles } from '../host/host-files.ts';
import type { MeasuredVolume } from '../volumes/pod-volumes.ts';

export interface VolumeStatsOptions {
  readonly files: HostFiles;
  /** Volumes of pods, by their UID. */
  readonly volumes: () => ReadonlyMap<string, readonly MeasuredVolume[]>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** 0 = nothing is measured. */
  readonly periodMs: number;
  /** Returns 0..1; spreads the load when many nodes share a disk. */
  readonly random: () => number;
}

/**
 * Measures the volumes of pods periodically, one after the other. Queries return the last result, because walking a
 * directory tree takes long.
 */
export class VolumeStats {
  readonly #options: VolumeStatsOptions;
  readonly #stop = new AbortController();
  #usage: ReadonlyMap<string, readonly VolumeUsage[]> = new Map();
  #running: Promise<void> = Promise.resolve();

  constructor(options: VolumeStatsOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#options.periodMs > 0) this.#running = this.#repeat();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /** Undefined when the volumes of the pod are not measured, or not yet. */
  of(uid: string): readonly VolumeUsage[] | undefined {
    return this.#usage.get(uid);
  }

  /** The first round starts after a random part of a period; later rounds follow after 1 to 1.5 periods. */
  async #repeat(): Promise<void> {
    const { clock, periodMs, random } = this.#options;
    const { signal } = this.#stop;
    await pause(clock, periodMs * random(), signal);
    while (!signal.aborted) {
      await this.#round(signal);
      await pause(clock, periodMs * (1 + random() / 2), signal);
    }
  }

  async #round(signal: AbortSignal): Promise<void> {
    const found = new Map<string, VolumeUsage[]>();
    for (const [uid, volumes] of this.#options.volumes()) {
      const usages: VolumeUsage[] = [];
      for (const volume of volumes) {
        const usage = await this.#measure(volume, signal);
        if (signal.aborted) return;
        if (usage !== undefined) usages.push(usage);
      }
      found.set(uid, usages);
    }
    this.#usage = found;
  }

  async #measure({ name, path, measure }: MeasuredVolume, signal: AbortSignal): Promise<VolumeUsage | undefined> {
    const { files, clock, logger } = this.#options;
    try {
      const disk = await files.diskUsage(path);
      const { bytes, inodes } =
        measure === 'files'
          ? await files.treeUsage(path, signal)
          : { bytes: disk.capacityBytes - disk.availableBytes, inodes: disk.inodes - disk.inodesFree };
      return { name, timeMs: clock.now(), usedBytes: bytes, inodesUsed: inodes, ...disk };
    } catch (err) {
      // A pod may be removed while its volumes are measured.
      if (!signal.aborted) logger.debug('volume was not measured', { component: 'volume-stats', path, err });
      return undefined;
    }
  }
}
