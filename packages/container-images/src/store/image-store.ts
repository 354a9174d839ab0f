import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type CallOptions,
  type FilesystemUsage,
  type Image,
  type ImageAuth,
  type ImageService,
  isRuntimeError,
  normalizeImageReference,
  type PullProgress,
  type PullRequest,
  RuntimeError,
} from '@keelson/container-runtime';
import type { Clock } from '@keelson/core/runtime';
import { RegistryClient } from '../distribution/registry-client.ts';
import type { RegistryOptions } from '../distribution/registry-options.ts';
import type { FoundImage } from '../images/found-image.ts';
import { findInSources } from '../sources/image-source.ts';
import { ContentStore } from './content-store.ts';
import { fetchImage } from './fetch-image.ts';
import { ImageIndex } from './image-index.ts';
import { withScratch } from './scratch.ts';
import { SharedJobs } from './shared-jobs.ts';
import { Turns } from './turns.ts';
import { unpackImage } from './unpack-image.ts';

/** An image that always exists and cannot be removed. */
export interface BuiltinImage {
  readonly image: Image;
  /** Folder with the files of the image. */
  readonly root: string;
}

export interface ImageStoreOptions {
  /** Folder of the store, created if necessary. No other store may use it at the same time. */
  readonly folder: string;
  readonly clock: Clock;
  /** OCI layouts (folders) and docker archives (tar files), or folders that contain them. */
  readonly sources?: readonly string[];
  /** Access to registries for images that no source has; absent: registries are not used. */
  readonly registries?: RegistryOptions;
  readonly builtin?: readonly BuiltinImage[];
  /**
   * Returns why an image other than a builtin one cannot be used on this machine; undefined when it can. A reason makes
   * pulls fail with `Unsupported`.
   */
  readonly refusal?: (reference: string) => string | undefined;
  /** Maximum bytes of one image, compressed and unpacked; default 64 GiB. */
  readonly maxImageBytes?: number;
}

const defaultMaxImageBytes = 64 * 1024 ** 3;
const defaultParallelDownloads = 3;
/** Time for which blobs of a failed pull are retained. The agent retries within five minutes. */
const leftoverMs = 600_000;

/** Context of a pull that several callers share: signal and progress. */
interface PullContext {
  readonly signal: AbortSignal;
  readonly report: (progress: PullProgress) => void;
}

/** Images from registries, OCI layouts and docker archives, unpacked into one folder each. */
export class ImageStore implements ImageService {
  readonly #options: ImageStoreOptions;
  readonly #builtin: readonly BuiltinImage[];
  readonly #index: ImageIndex;
  readonly #content: ContentStore;
  readonly #registries: RegistryClient | undefined;
  readonly #pulls = new SharedJobs<string, PullProgress>();
  readonly #unpacks = new SharedJobs<void, number>();
  /** Serializes unpacking and removal of an image. */
  readonly #turns = new Turns();

  constructor(options: ImageStoreOptions) {
    const { folder, registries, clock } = options;
    this.#options = options;
    this.#builtin = options.builtin ?? [];
    this.#index = new ImageIndex(folder);
    this.#content = new ContentStore(join(folder, 'blobs'));
    this.#registries = registries && new RegistryClient(registries, clock);
  }

  /** Reads the folder, and removes incomplete work that a crash has left. */
  async load(): Promise<void> {
    await this.#index.load();
    await this.#content.load(this.#index.blobs);
  }

  async listImages(reference?: string): Promise<readonly Image[]> {
    if (reference === undefined) {
      return [
        ...this.#builtin.map(({ image }) => image),
        ...this.#index.ids.flatMap((id) => this.#index.find(id) ?? []),
      ];
    }
    const image = this.find(reference);
    return image === undefined ? [] : [image];
  }

  async imageStatus(reference: string): Promise<Image | undefined> {
    return this.find(reference);
  }

  /** The image of a reference or id. @throws `InvalidArgument` for a malformed reference */
  find(reference: string): Image | undefined {
    return this.#findBuiltin(reference) ?? this.#index.find(reference);
  }

  /** Folder with the root file system of an image. It must not be modified. */
  rootOf({ id }: Image): string {
    return this.#builtin.find(({ image }) => image.id === id)?.root ?? join(this.#index.folderOf(id), 'rootfs');
  }

  async pullImage(reference: string, request: PullRequest = {}, options: CallOptions = {}): Promise<string> {
    const builtin = this.#findBuiltin(reference);
    if (builtin !== undefined) return builtin.id;
    const name = normalizeImageReference(reference);
    const refusal = this.#options.refusal?.(name);
    if (refusal !== undefined) throw new RuntimeError('Unsupported', refusal);
    const { auth, onProgress } = request;
    return this.#pulls.run(
      JSON.stringify([name, auth]),
      (signal, report) => this.#pull(name, auth, { signal, report }),
      {
        ...(options.signal && { signal: options.signal }),
        ...(onProgress && { onProgress }),
      },
    );
  }

  async removeImage(reference: string): Promise<void> {
    const image = this.find(reference);
    if (image === undefined || this.#findBuiltin(image.id) !== undefined) return;
    await this.#turns.run(image.id, () => this.#index.remove(image.id));
    await this.#content.collect(this.#index.blobs);
  }

  async imageFsInfo(): Promise<readonly FilesystemUsage[]> {
    const { folder, clock } = this.#options;
    const { bsize, blocks, bavail } = await statfs(folder);
    const usedBytes = this.#index.sizeBytes + this.#content.usedBytes;
    const capacityBytes = blocks * bsize;
    return [{ timestamp: clock.now(), mountpoint: folder, usedBytes, capacityBytes, availableBytes: bavail * bsize }];
  }

  async #pull(name: string, auth: ImageAuth | undefined, context: PullContext): Promise<string> {
    try {
      return await withScratch(this.#options.folder, async (scratch) => {
        const found = await findInSources(this.#options.sources ?? [], name, scratch);
        if (found !== undefined) return this.#keep(found, [name], [], context);
        if (this.#registries === undefined) throw new RuntimeError('ImageNotFound', `no image source has "${name}"`);
        return await this.#pullFrom(this.#registries, name, auth, context);
      });
    } catch (error) {
      if (isRuntimeError(error)) throw error;
      if (context.signal.aborted)
        throw new RuntimeError('Aborted', `the pull of "${name}" was canceled`, { cause: error });
      throw new RuntimeError('PullFailed', `cannot pull "${name}"`, { cause: error });
    }
  }

  #pullFrom(
    registries: RegistryClient,
    name: string,
    auth: ImageAuth | undefined,
    context: PullContext,
  ): Promise<string> {
    const { registries: { parallelDownloads = defaultParallelDownloads } = {} } = this.#options;
    return registries.withImage(name, auth, context.signal, async (remote) => {
      const { config, layers } = remote.manifest;
      const blobs = [config, ...layers].map(({ digest }) => digest);
      const lease = this.#content.lease(blobs);
      let last: PullProgress | undefined;
      const onProgress = (progress: PullProgress) => {
        last = progress;
        context.report(progress);
      };
      try {
        const found = await fetchImage(remote, this.#content, {
          ...{ signal: context.signal, parallel: parallelDownloads, maxBytes: this.#maxBytes, onProgress },
        });
        const names = [name, `${name.replace(/@.*|:[^:/]*$/, '')}@${remote.digest}`];
        // Reports progress while the image is unpacked, so that a progress deadline does not cancel the pull.
        const report = (progress: PullProgress) => context.report(last ?? progress);
        return await this.#keep(found, names, blobs, { ...context, report });
      } finally {
        lease.release();
        this.#collectLater();
      }
    });
  }

  /** Unpacks an image unless it is stored, and adds references to it. */
  async #keep(
    found: FoundImage,
    names: readonly string[],
    blobs: readonly string[],
    context: PullContext,
  ): Promise<string> {
    const { id } = found;
    if (!/^sha256:[0-9a-f]{64}$/.test(id))
      throw new RuntimeError('PullFailed', `invalid image id "${id.slice(0, 150)}"`);
    let unpacked = 0;
    const onProgress = (count: number) => {
      unpacked += count;
      context.report({ receivedBytes: unpacked });
    };
    // A concurrent removal may delete the image between two steps.
    while (!this.#index.has(id)) {
      await this.#unpacks.run(
        id,
        (signal, report) => this.#turns.run(id, () => this.#unpack(found, blobs, signal, report)),
        {
          signal: context.signal,
          onProgress,
        },
      );
    }
    await this.#index.name(id, names);
    return id;
  }

  async #unpack(
    found: FoundImage,
    blobs: readonly string[],
    signal: AbortSignal,
    onBytes: (count: number) => void,
  ): Promise<void> {
    if (this.#index.has(found.id)) return;
    await withScratch(this.#options.folder, async (scratch) => {
      const place = join(scratch, 'image');
      const image = await unpackImage(found, place, { scratch, maxBytes: this.#maxBytes, signal, onBytes });
      await this.#index.put({ ...image, blobs }, place);
    });
  }

  get #maxBytes(): number {
    return this.#options.maxImageBytes ?? defaultMaxImageBytes;
  }

  #collectLater(): void {
    const { clock } = this.#options;
    // Errors are ignored: the folder of the store may have been removed by then.
    clock.after(leftoverMs, () => void this.#content.collect(this.#index.blobs).catch(() => {}));
  }

  #findBuiltin(reference: string): Image | undefined {
    const found = this.#builtin.find(({ image }) => image.id === reference);
    if (found !== undefined || this.#index.has(reference)) return found?.image;
    const name = normalizeImageReference(reference);
    return this.#builtin.find(({ image }) => image.repoTags.includes(name))?.image;
  }
}
