import type { FilesystemUsage, ImageService } from '@keelson/container-runtime';
import type { Logger } from '@keelson/core/runtime';
import type { Signal } from '../../base/config/eviction-signals.ts';
import type { Observation, Observations } from '../../base/config/eviction-threshold.ts';
import type { PodUsage } from '../../base/contracts/pod-queries.ts';
import type { NodeDisk, NodeUsage } from '../../machine/stats/node-usage.ts';

export interface ObserverOptions {
  /** The signals to read; others are ignored. */
  readonly signals: ReadonlySet<Signal>;
  readonly usage: NodeUsage;
  readonly images: Pick<ImageService, 'imageFsInfo'>;
  readonly pods: (signal: AbortSignal) => Promise<readonly PodUsage[]>;
  readonly rootDir: string;
  readonly memoryBytes: number;
  /** Allocatable memory, in bytes. */
  readonly allocatableMemory: () => number;
  readonly callTimeoutMs: number;
  readonly logger: Logger;
}

/** The result of one observation. */
export interface Findings {
  readonly observations: Observations;
  /** Images are on another file system than the agent's own files. */
  readonly ownImagefs: boolean;
}

/** Reads the signals of the host. A source that fails is logged and omitted; other signals are still read. */
export class Observer {
  readonly #options: ObserverOptions;

  constructor(options: ObserverOptions) {
    this.#options = options;
  }

  async look(signal: AbortSignal): Promise<Findings> {
    const { usage, rootDir, images, callTimeoutMs } = this.#options;
    const [memory, allocatable, nodefs, imagefs] = await Promise.all([
      this.#ask(['memory.available'], () => this.#memory()),
      this.#ask(['allocatableMemory.available'], () => this.#allocatable(signal)),
      this.#ask(['nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree'], () =>
        usage.disk(rootDir),
      ),
      this.#ask(['nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree'], async () => {
        const [found] = await images.imageFsInfo({ signal, timeoutMs: callTimeoutMs });
        return found;
      }),
    ]);
    // The agent cannot read the image file system of a runtime on another host or in another mount namespace.
    const imageDisk = imagefs && (await usage.disk(imagefs.mountpoint).catch(() => undefined));
    const ownImagefs = imagefs !== undefined && imageDisk?.device !== nodefs?.device;
    const observations = new Map<Signal, Observation>();
    const note = (signal: Signal, found: Observation | undefined) => {
      if (found !== undefined && this.#options.signals.has(signal)) observations.set(signal, found);
    };
    note('memory.available', memory);
    note('allocatableMemory.available', allocatable);
    note('nodefs.available', nodefs && bytesOf(nodefs));
    note('nodefs.inodesFree', nodefs && inodesOf(nodefs));
    note('imagefs.available', imagefs && bytesOf(imagefs));
    note('imagefs.inodesFree', imageDisk && inodesOf(imageDisk));
    return { observations, ownImagefs };
  }

  async #memory(): Promise<Observation> {
    const { usage, memoryBytes: capacity } = this.#options;
    return { available: capacity - (await usage.workingSetBytes()), capacity };
  }

  async #allocatable(signal: AbortSignal): Promise<Observation> {
    const { pods, allocatableMemory } = this.#options;
    const capacity = allocatableMemory();
    const used = (await pods(signal)).flatMap(({ containers }) =>
      containers.map(({ memoryWorkingSetBytes }) => memoryWorkingSetBytes),
    );
    return { available: used.reduce((left, bytes) => left - bytes, capacity), capacity };
  }

  /** Calls the function if one of the signals is requested. */
  async #ask<T>(wanted: readonly Signal[], question: () => Promise<T>): Promise<T | undefined> {
    const { signals, logger } = this.#options;
    if (!wanted.some((signal) => signals.has(signal))) return undefined;
    try {
      return await question();
    } catch (err) {
      logger.warn('reading eviction signals failed', { component: 'eviction', signals: wanted.join(','), err });
      return undefined;
    }
  }
}

/** Undefined for a file system without a size. */
function bytesOf({
  availableBytes,
  capacityBytes,
}: Pick<FilesystemUsage, 'availableBytes' | 'capacityBytes'>): Observation | undefined {
  return capacityBytes > 0 ? { available: availableBytes, capacity: capacityBytes } : undefined;
}

/** Undefined for a file system without a fixed number of inodes, which reports 0. */
function inodesOf({ inodesFree, inodes }: NodeDisk): Observation | undefined {
  return inodes > 0 ? { available: inodesFree, capacity: inodes } : undefined;
}
