import type { Clock, Logger } from '@keelson/core/runtime';
import { Repeater } from '../../base/repeater.ts';
import { ContainerGarbage, type ContainerGarbageOptions } from './container-garbage.ts';
import { ImageGarbage, type ImageGarbageOptions } from './image-garbage.ts';

export interface GarbageOptions extends ContainerGarbageOptions, ImageGarbageOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly imagePeriodMs: number;
  readonly containerPeriodMs: number;
}

/** Runs both collectors, each with its own period. */
export class Garbage {
  readonly #loops: readonly Repeater[];
  readonly #images: ImageGarbage;
  readonly #containers: ContainerGarbage;

  constructor(options: GarbageOptions) {
    const { clock, logger, imagePeriodMs, containerPeriodMs } = options;
    const images = new ImageGarbage(options);
    const containers = new ContainerGarbage(options);
    this.#images = images;
    this.#containers = containers;
    const loop = (what: string, periodMs: number, run: (signal: AbortSignal) => Promise<void>) =>
      new Repeater({ clock, logger, what, periodMs, run });
    this.#loops = [
      loop('collection of images', imagePeriodMs, (signal) => images.round(signal)),
      loop('collection of containers', containerPeriodMs, (signal) => containers.round(signal)),
    ];
  }

  /** Deletes every container that may be deleted. Failures are logged. */
  reclaimContainers(signal: AbortSignal): Promise<void> {
    return this.#containers.reclaim(signal);
  }

  /** Deletes every unused image. Failures are logged. */
  reclaimImages(signal: AbortSignal): Promise<void> {
    return this.#images.reclaim(signal);
  }

  start(): void {
    for (const loop of this.#loops) loop.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#loops.map((loop) => loop.stop()));
  }
}
