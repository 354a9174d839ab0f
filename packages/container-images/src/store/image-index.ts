import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Image, normalizeImageReference } from '@keelson/container-runtime';
import { isScratchName, scratchPath } from './scratch.ts';
import { Turns } from './turns.ts';

/** What is kept of an unpacked image, besides its names. */
export interface StoredImage extends Omit<Image, 'repoTags' | 'repoDigests'> {
  /** Blobs it was made of, where they are kept. */
  readonly blobs: readonly string[];
}

const recordName = 'image.json';
const namesName = 'names.json';

/** A `tar` that its store died on writes for some milliseconds more. */
const leftover = { recursive: true, force: true, maxRetries: 10, retryDelay: 20 };

/** Which images there are, and which reference is which: `ID/image.json` beside `ID/rootfs`, and `names.json`. */
export class ImageIndex {
  readonly #folder: string;
  readonly #images = new Map<string, StoredImage>();
  #names = new Map<string, string>();
  readonly #turns = new Turns();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Reads what is there, and clears away what a dead process left half done. */
  async load(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    for (const name of await readdir(this.#folder)) {
      const path = join(this.#folder, name);
      if (isScratchName(name) || name.startsWith(`.${namesName}-`)) await rm(path, leftover);
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

  /** The image of an id or a reference. @throws `InvalidArgument` for what is neither */
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

  /** Takes a folder with the `rootfs` of an image, unless the image is there. One call at a time per image. */
  async put(image: StoredImage, folder: string): Promise<void> {
    await writeAtomically(folder, recordName, JSON.stringify(image));
    await rename(folder, this.folderOf(image.id));
    this.#images.set(image.id, image);
  }

  /** Names an image that is there. */
  async name(id: string, names: readonly string[]): Promise<void> {
    for (const name of names) this.#names.set(name, id);
    await this.#writeNames();
  }

  /** One call at a time per image. */
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
      writeAtomically(this.#folder, namesName, JSON.stringify(Object.fromEntries(this.#names))),
    );
  }
}

/** Undefined also for what a failing disk made of it. */
function parse<T>(text: string | undefined): T | undefined {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as T);
  } catch {
    return undefined;
  }
}

let counter = 0;

/** Readers see the old contents or the new, never a part. What a dead writer leaves begins with a dot. */
async function writeAtomically(folder: string, name: string, contents: string): Promise<void> {
  counter += 1;
  const temporary = `${folder}/.${name}-${process.pid}-${counter}`;
  await writeFile(temporary, contents, { mode: 0o600 });
  await rename(temporary, `${folder}/${name}`);
}

/** Undefined when there is no such file. */
async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
