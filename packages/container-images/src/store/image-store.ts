import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rename, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type CallOptions,
  type FilesystemUsage,
  type Image,
  type ImageService,
  normalizeImageReference,
  type PullRequest,
  RuntimeError,
} from '@keelson/container-runtime';
import type { Clock } from '@keelson/core';
import { applyLayer } from '../layers/apply-layer.ts';
import { type FoundImage, findInSources } from '../sources/image-source.ts';
import { readIfPresent, writeAtomically } from './atomic-file.ts';
import { folderSize } from './folder-size.ts';

/** An image that is always there, and is never removed. */
export interface BuiltinImage {
  readonly image: Image;
  /** Folder with its files. */
  readonly root: string;
}

export interface ImageStoreOptions {
  /** Folder that is the store's alone; one store at a time uses it. */
  readonly folder: string;
  readonly clock: Clock;
  /** OCI layouts (folders) and docker archives (tar files), or folders that hold such. */
  readonly sources?: readonly string[];
  readonly builtin?: readonly BuiltinImage[];
  /** Says why an image that is not built in can be of no use here; undefined when it can. Pulls then fail with `Unsupported`. */
  readonly refusal?: (reference: string) => string | undefined;
}

/** What is known of an unpacked image, besides its names. */
type StoredImage = Omit<Image, 'repoTags'>;

/**
 * Images unpacked into one folder each: `ID/rootfs` with `ID/image.json`, and `names.json` that says which reference is which image.
 */
export class ImageStore implements ImageService {
  readonly #options: ImageStoreOptions;
  readonly #builtin: readonly BuiltinImage[];
  readonly #images = new Map<string, StoredImage>();
  #names = new Map<string, string>();
  /** Pulls and removals one after the other. */
  #queue: Promise<unknown> = Promise.resolve();

  constructor(options: ImageStoreOptions) {
    this.#options = options;
    this.#builtin = options.builtin ?? [];
  }

  /** Reads what is there, and clears away what a dead process left half done. */
  async load(): Promise<void> {
    const { folder } = this.#options;
    for (const name of await readdir(folder)) {
      if (name.startsWith('.')) await rm(join(folder, name), { recursive: true, force: true });
      const text = await readIfPresent(join(folder, name, 'image.json')).catch(() => undefined);
      if (text !== undefined) this.#images.set(`sha256:${name}`, JSON.parse(text) as StoredImage);
    }
    const names = JSON.parse((await readIfPresent(join(folder, 'names.json'))) ?? '{}') as Record<string, string>;
    this.#names = new Map(Object.entries(names).filter(([, id]) => this.#images.has(id)));
  }

  async listImages(reference?: string): Promise<readonly Image[]> {
    if (reference === undefined) {
      return [...this.#builtin.map(({ image }) => image), ...[...this.#images.keys()].flatMap((id) => this.find(id) ?? [])];
    }
    const image = this.find(reference);
    return image === undefined ? [] : [image];
  }

  async imageStatus(reference: string): Promise<Image | undefined> {
    return this.find(reference);
  }

  /** The image of a reference or id. @throws `InvalidArgument` for a malformed reference */
  find(reference: string): Image | undefined {
    const builtin = this.#findBuiltin(reference);
    if (builtin !== undefined) return builtin;
    const id = this.#images.has(reference) ? reference : this.#names.get(normalizeImageReference(reference));
    const stored = id === undefined ? undefined : this.#images.get(id);
    if (stored === undefined) return undefined;
    return {
      ...stored,
      repoTags: [...this.#names].flatMap(([name, image]) => (image === id && !name.includes('@') ? [name] : [])),
    };
  }

  /** Folder with the flattened files of an image of this store; nobody may write there. */
  rootOf({ id }: Image): string {
    return this.#builtin.find(({ image }) => image.id === id)?.root ?? join(this.#folderOf(id), 'rootfs');
  }

  async pullImage(reference: string, request: PullRequest = {}, options: CallOptions = {}): Promise<string> {
    const builtin = this.#findBuiltin(reference);
    if (builtin !== undefined) return builtin.id;
    const name = normalizeImageReference(reference);
    const refusal = this.#options.refusal?.(name);
    if (refusal !== undefined) throw new RuntimeError('Unsupported', refusal);
    return this.#inTurn(() => this.#pull(name, request, options));
  }

  async removeImage(reference: string): Promise<void> {
    const image = this.find(reference);
    if (image === undefined || this.#findBuiltin(image.id) !== undefined) return;
    await this.#inTurn(async () => {
      this.#images.delete(image.id);
      for (const [name, id] of this.#names) if (id === image.id) this.#names.delete(name);
      await this.#writeNames();
      const trash = join(this.#options.folder, `.${randomBytes(12).toString('hex')}`);
      await rename(this.#folderOf(image.id), trash);
      await rm(trash, { recursive: true, force: true });
    });
  }

  async imageFsInfo(): Promise<readonly FilesystemUsage[]> {
    const { folder, clock } = this.#options;
    const { bsize, blocks, bavail } = await statfs(folder);
    let usedBytes = 0;
    for (const { sizeBytes } of this.#images.values()) usedBytes += sizeBytes;
    return [
      { timestamp: clock.now(), mountpoint: folder, usedBytes, capacityBytes: blocks * bsize, availableBytes: bavail * bsize },
    ];
  }

  async #pull(name: string, request: PullRequest, options: CallOptions): Promise<string> {
    const { folder, sources = [] } = this.#options;
    const scratch = join(folder, `.${randomBytes(12).toString('hex')}`);
    await mkdir(scratch, { mode: 0o700 });
    try {
      const found = await findInSources(sources, name, scratch);
      if (found === undefined) throw new RuntimeError('ImageNotFound', `no image source has "${name}"`);
      if (!this.#images.has(found.id)) await this.#unpack(found, scratch, request, options.signal);
      this.#names.set(name, found.id);
      await this.#writeNames();
      return found.id;
    } catch (error) {
      if (error instanceof RuntimeError) throw error;
      throw new RuntimeError('PullFailed', `cannot unpack "${name}"`, { cause: error });
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
  }

  async #unpack(found: FoundImage, scratch: string, request: PullRequest, signal: AbortSignal | undefined): Promise<void> {
    const place = join(scratch, 'image');
    const root = join(place, 'rootfs');
    await mkdir(root, { recursive: true });
    for (const [position, layer] of found.layers.entries()) {
      signal?.throwIfAborted();
      await applyLayer(layer, root, join(scratch, `layer-${position}`), signal);
      request.onProgress?.({ receivedBytes: await folderSize(root) });
    }
    const user = found.config.user?.split(':', 1)[0] ?? '';
    const image: StoredImage = {
      id: found.id,
      repoDigests: [],
      sizeBytes: await folderSize(root),
      pinned: false,
      config: found.config,
      ...(/^\d+$/.test(user) && { uid: Number(user) }),
      ...(/^\D/.test(user) && { username: user }),
    };
    await writeAtomically(place, 'image.json', JSON.stringify(image));
    await rename(place, this.#folderOf(found.id));
    this.#images.set(found.id, image);
  }

  #findBuiltin(reference: string): Image | undefined {
    const found = this.#builtin.find(({ image }) => image.id === reference);
    if (found !== undefined || this.#images.has(reference)) return found?.image;
    const name = normalizeImageReference(reference);
    return this.#builtin.find(({ image }) => image.repoTags.includes(name))?.image;
  }

  #folderOf(id: string): string {
    return join(this.#options.folder, id.replace(/^sha256:/, ''));
  }

  async #writeNames(): Promise<void> {
    await writeAtomically(this.#options.folder, 'names.json', JSON.stringify(Object.fromEntries(this.#names)));
  }

  #inTurn<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(task);
    this.#queue = result.catch(() => {});
    return result;
  }
}
