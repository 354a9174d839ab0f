import type { CallOptions, ContainerRuntime, FilesystemUsage, ImageService } from '@keelson/container-runtime';
import type { Clock, Logger } from '@keelson/core/runtime';
import type { ImageConfig } from '../../base/config/agent-config.ts';
import type { EventRecorder, EventSubject } from '../../base/events/event-recorder.ts';
import { type ImageRecord, ImageRecords } from './image-records.ts';

/** Images could not be brought below the threshold. */
class ImageGarbageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ImageGarbageError';
  }
}

export interface ImageGarbageOptions {
  readonly runtime: ContainerRuntime;
  readonly images: ImageService;
  readonly config: ImageConfig;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly events: EventRecorder;
  /** The node, as the subject of events. */
  readonly node: EventSubject;
  readonly callTimeoutMs: number;
}

/**
 * Deletes unused images when their file system is too full, the least recently used first: see
 * docs/reference/agent-rules.md#image-garbage.
 */
export class ImageGarbage {
  readonly #options: ImageGarbageOptions;
  readonly #records: ImageRecords;
  #begun = false;
  #failedBefore = false;

  constructor(options: ImageGarbageOptions) {
    this.#options = options;
    const { runtime, images, config } = options;
    this.#records = new ImageRecords({ runtime, images, infraImage: config.infraImage });
  }

  /**
   * One round; the first only records the existing images. Failures are logged, and repeated ones recorded as events.
   */
  async round(signal: AbortSignal): Promise<void> {
    const { callTimeoutMs, clock, logger, events, node } = this.#options;
    const call = { signal, timeoutMs: callTimeoutMs };
    try {
      if (this.#begun) await this.#collect(call);
      else await this.#records.look(clock.now(), call);
      this.#begun = true;
      this.#failedBefore = false;
    } catch (err) {
      if (signal.aborted) return;
      logger.warn('collecting images failed', { component: 'image-garbage', err });
      // A single failure may be temporary, such as a restart of the runtime.
      if (this.#failedBefore) events.record(node, 'Warning', 'ImageGCFailed', textOf(err));
      this.#failedBefore = true;
    }
  }

  /** For a full disk: deletes all unused images except recently pulled ones. Failures are logged. */
  async reclaim(signal: AbortSignal): Promise<void> {
    const { callTimeoutMs, clock, logger } = this.#options;
    const call = { signal, timeoutMs: callTimeoutMs };
    try {
      const nowMs = clock.now();
      const unused = await this.#records.look(nowMs, call);
      await this.#free(unused, Number.POSITIVE_INFINITY, nowMs, call);
    } catch (err) {
      if (!signal.aborted) logger.warn('collecting images failed', { component: 'image-garbage', err });
    }
  }

  async #collect(call: CallOptions): Promise<void> {
    const { images, config, clock, logger, events, node } = this.#options;
    const { gcHighPercent: high, gcLowPercent: low } = config;
    const nowMs = clock.now();
    const unused = await this.#records.look(nowMs, call);
    // Usage cannot exceed 100 %.
    if (high >= 100) return;
    const [disk] = await images.imageFsInfo(call);
    if (disk === undefined || disk.capacityBytes <= 0) {
      const problem = `invalid capacity ${disk?.capacityBytes ?? 0} on image filesystem`;
      events.record(node, 'Warning', 'InvalidDiskCapacity', problem);
      throw new ImageGarbageError(problem);
    }
    const usedPercent = usagePercent(disk);
    if (usedPercent < high) return;
    const wanted = Math.floor((disk.capacityBytes * (100 - low)) / 100) - disk.availableBytes;
    logger.info('collecting images', {
      component: 'image-garbage',
      mountpoint: disk.mountpoint,
      usedPercent,
      bytes: wanted,
    });
    const freed = await this.#free(unused, wanted, nowMs, call);
    if (freed >= wanted) return;
    const problem = `failed to garbage collect required amount of images. Wanted to free ${wanted} bytes, but freed ${freed} bytes`;
    events.record(node, 'Warning', 'FreeDiskSpaceFailed', problem);
    throw new ImageGarbageError(problem);
  }

  /** Deletes images until so many bytes are free; a failure to delete one image does not stop the others. */
  async #free(unused: readonly ImageRecord[], bytes: number, nowMs: number, call: CallOptions): Promise<number> {
    const { images, config, logger } = this.#options;
    const candidates = unused
      .filter(({ seenMs }) => nowMs - seenMs >= config.minimumTtlMs)
      .sort((a, b) => a.usedMs - b.usedMs || a.seenMs - b.seenMs);
    let freed = 0;
    for (const { image } of candidates) {
      if (freed >= bytes) break;
      try {
        await images.removeImage(image.id, call);
        this.#records.forget(image.id);
        freed += image.sizeBytes;
      } catch (err) {
        if (call.signal?.aborted) throw err;
        logger.warn('deleting an image failed', {
          component: 'image-garbage',
          image: image.repoTags[0] ?? image.id,
          err,
        });
      }
    }
    return freed;
  }
}

/**
 * The usage in whole percent, rounded up; blocks that the file system reserves count as used. Exact for disks of any
 * size.
 */
export function usagePercent({
  capacityBytes,
  availableBytes,
}: Pick<FilesystemUsage, 'capacityBytes' | 'availableBytes'>): number {
  const available = Math.min(availableBytes, capacityBytes);
  return 100 - Number((BigInt(Math.floor(available)) * 100n) / BigInt(Math.floor(capacityBytes)));
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
