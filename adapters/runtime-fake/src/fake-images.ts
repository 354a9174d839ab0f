import {
  type CallOptions,
  type FilesystemUsage,
  type Image,
  type ImageService,
  normalizeImageReference,
  type PullRequest,
  RuntimeError,
} from '@keelson/container-runtime';
import type { FakeWorld } from './fake-world.ts';

/** Capacity of the disk that fake images fill. */
const diskBytes = 100_000_000_000;

/** Images of a {@link FakeWorld}. Every pull succeeds unless the `pull` function of the world returns an error. */
export class FakeImages implements ImageService {
  readonly #world: FakeWorld;

  constructor(world: FakeWorld) {
    this.#world = world;
  }

  async listImages(reference?: string): Promise<readonly Image[]> {
    await this.#world.admit('listImages');
    if (reference === undefined) return [...this.#world.images.values()];
    const image = this.#world.findImage(reference);
    return image === undefined ? [] : [image];
  }

  async imageStatus(reference: string): Promise<Image | undefined> {
    await this.#world.admit('imageStatus');
    return this.#world.findImage(reference);
  }

  async pullImage(reference: string, request: PullRequest = {}, _options?: CallOptions): Promise<string> {
    await this.#world.admit('pullImage');
    const name = normalizeImageReference(reference);
    const pull = this.#world.pull(name);
    if (pull.delayMs !== undefined) await this.#world.wait(pull.delayMs);
    if (pull.error !== undefined) throw new RuntimeError(pull.error.code, pull.error.message);
    const image = this.#world.addImage(name, pull);
    request.onProgress?.({ receivedBytes: image.sizeBytes, totalBytes: image.sizeBytes });
    return image.id;
  }

  async removeImage(reference: string): Promise<void> {
    await this.#world.admit('removeImage');
    const image = this.#world.findImage(reference);
    for (const name of image?.repoTags ?? []) this.#world.images.delete(name);
  }

  async imageFsInfo(): Promise<readonly FilesystemUsage[]> {
    await this.#world.admit('imageFsInfo');
    let usedBytes = 0;
    for (const image of this.#world.images.values()) usedBytes += image.sizeBytes;
    const timestamp = this.#world.clock.now();
    return [
      { timestamp, mountpoint: '/fake', usedBytes, capacityBytes: diskBytes, availableBytes: diskBytes - usedBytes },
    ];
  }
}
