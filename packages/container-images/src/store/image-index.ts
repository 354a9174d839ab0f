import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { readIfPresent, removeUnfinished, writeAtomically } from '@keelson/container-host';
import { type Image, normalizeImageReference } from '@keelson/container-runtime';
import { isScratchName, scratchPath } from './scratch.ts';
import { Turns } from './turns.ts';

/** Metadata of an unpacked image, without its names. */
export interface StoredImage extends Omit<Image, 'repoTags' | 'repoDigests'> {
  /** Digests of its blobs, if the blobs are stored. */
  readonly blobs: readonly string[];
}

const recordName = 'image.json';
const namesName = 'names.json';

/** Retries, because a `tar` whose parent process was killed continues to write for some milliseconds. */
const leftover = { recursive: true, force: true, maxRetries: 10, retryDelay: 20 };

/** The stored images and their references: `ID/image.json` beside `ID/rootfs`, and `names.json`. */
export class ImageIndex {
  readonly #folder: string;
  readonly #images = new Map<string, StoredImage>();
  #names = new Map<string, string>();
  readonly #turns = new Turns();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Reads the folder, and removes incomplete images that a crash has left. */
  async load(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await removeUnfinished(this.#folder);
    for (const name of await readdir(this.#folder)) {
      const path = join(this.#folder, name);
      if (isScratchName(name)) await rm(path, leftover);
      if (!/^[0-9a-f]{64}$/.test(name)) continue;
      const image = parse<StoredImage>(await readIfPresent(join(path, recordName)));
      if (image === undefined) await rm(path, leftover);
      else this.#images.set(image.id, { ...image, blobs: image.blobs ?? [] });
    }
    const names = parse<Record<string, string>>(await readIfPresent(join(this.#folder, namesName))) ?? {};
    this.#names = new Map(Object.entries(names).filter(([, id]) => this.#images.has(id)));
  }

  get ids(): readonly string[] {
    return [...this.#images.keys()];
  }

  /** Blobs of all images. */
  get blobs(): ReadonlySet<string> {
    return new Set([...this.#images.values()].flatMap(({ blobs }) => blobs));
  }

  get sizeBytes(): number {
    let sum = 0;
    for (const image of this.#images.values()) sum += image.sizeBytes;
    return sum;
  }

  has(id: string): boolean {
    return this.#images.has(id);
  }

  /** The image of an id or a reference. @throws `InvalidArgument` for a malformed reference */
  find(reference: string): Image | undefined {
    const id = this.#images.has(reference) ? reference : this.#names.get(normalizeImageReference(reference));
    const stored = id === undefined ? undefined : this.#images.get(id);
    if (stored === undefined) return undefined;
    const { blobs: _, ...image } = stored;
    const names = [...this.#names].flatMap(([name, named]) => (named === id ? [name] : []));
    return {
      ...image,
      repoTags: names.filter((name) => !name.includes('@')),
      repoDigests: names.filter((name) => name.includes('@')),
    };
  }

  folderOf(id: string): string {
    return join(this.#folder, id.replace(/^sha256:/, ''));
  }

  /** Moves a folder with the `rootfs` of an image to the store, unless it has the image. Not concurrent per image. */
  async put(image: StoredImage, folder: string): Promise<void> {
    await writeAtomically(join(folder, recordName), JSON.stringify(image));
    await rename(folder, this.folderOf(image.id));
    this.#images.set(image.id, image);
  }

  /** Adds references to a stored image. */
  async name(id: string, names: readonly string[]): Promise<void> {
    for (const name of names) this.#names.set(name, id);
    await this.#writeNames();
  }

  /** Removes an image. Not concurrent per image. */
  async remove(id: string): Promise<void> {
    if (!this.#images.delete(id)) return;
    for (const [name, named] of this.#names) if (named === id) this.#names.delete(name);
    await this.#writeNames();
    const trash = scratchPath(this.#folder);
    await rename(this.folderOf(id), trash);
    await rm(trash, { recursive: true, force: true });
  }

  #writeNames(): Promise<void> {
    return this.#turns.run(namesName, () =>
      writeAtomically(join(this.#folder, namesName), JSON.stringify(Object.fromEntries(this.#names))),
    );
  }
}

/** Parses JSON; undefined for a corrupt file. */
function parse<T>(text: string | undefined): T | undefined {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as T);
  } catch {
    return undefined;
  }
}
