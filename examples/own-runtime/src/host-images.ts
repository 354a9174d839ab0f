import { statfs } from 'node:fs/promises';
import {
  type FilesystemUsage,
  type Image,
  type ImageService,
  normalizeImageReference,
  RuntimeError,
} from '@keelson/container-runtime';
import type { Clock } from '@keelson/core/runtime';

/** The files of the machine, as an image. */
const host: Image = {
  id: 'host',
  repoTags: ['host:latest'],
  repoDigests: [],
  sizeBytes: 0,
  pinned: true,
  config: {},
};

/** The image store of a runtime whose containers use the files of the machine: it has the image `host` alone. */
export class HostImages implements ImageService {
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The image of a reference; undefined when it is not `host`. @throws RuntimeError `InvalidArgument` */
  find(reference: string): Image | undefined {
    return normalizeImageReference(reference) === 'host:latest' ? host : undefined;
  }

  async listImages(reference?: string): Promise<readonly Image[]> {
    return reference === undefined || this.find(reference) !== undefined ? [host] : [];
  }

  async imageStatus(reference: string): Promise<Image | undefined> {
    return this.find(reference);
  }

  async pullImage(reference: string): Promise<string> {
    const image = this.find(reference);
    if (image === undefined)
      throw new RuntimeError('ImageNotFound', `the child runtime has the image "host" only, not "${reference}"`);
    return image.id;
  }

  async removeImage(): Promise<void> {}

  async imageFsInfo(): Promise<readonly FilesystemUsage[]> {
    const { blocks, bavail, bsize } = await statfs('/');
    return [
      {
        timestamp: this.#clock.now(),
        mountpoint: '/',
        usedBytes: 0,
        capacityBytes: blocks * bsize,
        availableBytes: bavail * bsize,
      },
    ];
  }
}
