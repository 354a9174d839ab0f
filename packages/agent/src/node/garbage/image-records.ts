import type { CallOptions, Container, ContainerRuntime, Image, ImageService } from '@keelson/container-runtime';

/** The record of an image in the image store. */
export interface ImageRecord {
  readonly image: Image;
  /** When the image was first observed, epoch milliseconds; 0 for images that existed at the start. */
  readonly seenMs: number;
  /** When a container was last observed to use the image, epoch milliseconds; 0 = never. */
  usedMs: number;
}

export interface ImageRecordsOptions {
  readonly runtime: ContainerRuntime;
  readonly images: ImageService;
  /** The image of sandboxes: it counts as used, since the next pod needs it. */
  readonly infraImage: string;
}

/** Records when images appeared and when they were last used, which the image store does not report. */
export class ImageRecords {
  readonly #options: ImageRecordsOptions;
  #records: Map<string, ImageRecord> | undefined;

  constructor(options: ImageRecordsOptions) {
    this.#options = options;
  }

  /**
   * Reads the image store and the containers. Returns the unused images, without pinned ones.
   * @throws when the runtime does not answer
   */
  async look(nowMs: number, call: CallOptions): Promise<ImageRecord[]> {
    const { runtime, images, infraImage } = this.#options;
    const [found, containers, infra] = await Promise.all([
      images.listImages(undefined, call),
      runtime.listContainers(undefined, call),
      images.imageStatus(infraImage, call).catch(() => undefined),
    ]);
    const used = usedNames(containers);
    if (infra !== undefined) used.add(infra.id);
    const before = this.#records;
    const records = new Map<string, ImageRecord>();
    const unused: ImageRecord[] = [];
    for (const image of found) {
      const known = before?.get(image.id);
      const record = { image, seenMs: known?.seenMs ?? (before === undefined ? 0 : nowMs), usedMs: known?.usedMs ?? 0 };
      records.set(image.id, record);
      if (isUsed(image, used)) record.usedMs = nowMs;
      else if (!image.pinned) unused.push(record);
    }
    this.#records = records;
    return unused;
  }

  forget(id: string): void {
    this.#records?.delete(id);
  }
}

/** Images of ended containers count as used: the containers may be restarted, and their status names the image. */
function usedNames(containers: readonly Container[]): Set<string> {
  return new Set(containers.flatMap(({ image, imageId }) => [image, imageId]));
}

function isUsed({ id, repoTags, repoDigests }: Image, used: ReadonlySet<string>): boolean {
  return used.has(id) || [...repoTags, ...repoDigests].some((name) => used.has(name));
}
