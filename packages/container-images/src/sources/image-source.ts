import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { tryTool } from '@keelson/container-host';
import { normalizeImageReference, RuntimeError } from '@keelson/container-runtime';
import { checkBytes, parseDigest } from '../images/digest.ts';
import type { FoundImage } from '../images/found-image.ts';
import { readImageDocument } from '../images/image-document.ts';
import {
  type Descriptor,
  indexEntries,
  type Manifest,
  maxDocumentBytes,
  parseDocument,
  readManifest,
} from '../images/manifest.ts';
import type { Layer } from '../layers/unpack-layer.ts';

const nameAnnotations = ['io.containerd.image.name', 'org.opencontainers.image.ref.name'];

/**
 * Finds an image in OCI layouts and docker archives; undefined when no source has it. `scratch` is an empty folder for
 * files that are extracted from archives, which may contain the layers of the result.
 * @throws `PullFailed` for a corrupt source that has the image
 */
export async function findInSources(
  sources: readonly string[],
  reference: string,
  scratch: string,
): Promise<FoundImage | undefined> {
  let number = 0;
  for (const path of await candidates(sources)) {
    number += 1;
    const source = (await stat(path)).isFile() ? archiveAt(path, join(scratch, `source-${number}`)) : folderAt(path);
    await source.prepare();
    const found = (await fromLayout(source, reference)) ?? (await fromDockerArchive(source, reference));
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A source as a folder. An archive is extracted completely only when it has the image. */
interface Source {
  readonly folder: string;
  /** Extracts the files that list the images. */
  readonly prepare: () => Promise<void>;
  readonly complete: () => Promise<void>;
}

const tablesOfContents = ['oci-layout', 'index.json', 'manifest.json'];

function folderAt(folder: string): Source {
  return { folder, prepare: async () => {}, complete: async () => {} };
}

/** The source for an archive, which is extracted to `folder`. */
function archiveAt(path: string, folder: string): Source {
  const unpack = (...names: string[]) => tryTool('tar', ['-xf', path, '-C', folder, '--no-same-owner', ...names]);
  return {
    folder,
    prepare: async () => {
      await mkdir(folder, { recursive: true });
      // Errors are ignored here: a missing file is detected when it is read.
      await unpack(...tablesOfContents.flatMap((name) => [name, `./${name}`]));
    },
    complete: async () => {
      const problem = await unpack();
      if (problem !== undefined) throw new RuntimeError('PullFailed', `cannot read "${path}": ${problem}`);
    },
  };
}

/** Lists the paths of all sources. A folder that is not an OCI layout is replaced by its entries. */
async function candidates(sources: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const source of sources) {
    const file = await stat(source).catch(() => undefined);
    if (file === undefined) continue;
    if (file.isFile() || (await isFile(join(source, 'oci-layout')))) found.push(source);
    else for (const name of (await readdir(source)).sort()) if (!name.startsWith('.')) found.push(join(source, name));
  }
  return found;
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isFile() ?? false;
}

async function fromLayout({ folder, complete }: Source, reference: string): Promise<FoundImage | undefined> {
  if (!(await isFile(join(folder, 'oci-layout')))) return undefined;
  const index = parseDocument(await readSmall(folder, 'index.json'), 'the index of the layout');
  const descriptor = (indexEntries(index) ?? []).find((entry) => names(entry, reference));
  if (descriptor === undefined) return undefined;
  await complete();
  const manifest = await manifestAt(folder, descriptor);
  const document = readImageDocument(await readBlob(folder, manifest.config.digest), manifest.layers.length);
  const layers: Layer[] = [];
  for (const [position, { digest, mediaType }] of manifest.layers.entries()) {
    layers.push({ path: await inside(folder, blobPath(digest)), diffId: document.diffIds[position] ?? '', mediaType });
  }
  return { id: manifest.config.digest, config: document.config, layers };
}

/** Whether an entry of a layout has this reference. Its name is a complete reference or only the tag. */
function names({ annotations, digest }: Descriptor, reference: string): boolean {
  if (reference.endsWith(`@${digest}`)) return true;
  return nameAnnotations.some((key) => {
    const name = annotations[key];
    if (name === undefined) return false;
    if (name === reference) return true;
    try {
      return name.includes('/') || name.includes(':') ? normalizeImageReference(name) === reference : false;
    } catch {
      return false;
    }
  });
}

/** Reads a manifest; for an index, that of this machine. */
async function manifestAt(folder: string, descriptor: Descriptor): Promise<Manifest> {
  const manifest = readManifest(parseDocument(await readBlob(folder, descriptor.digest), 'the manifest'));
  return 'next' in manifest ? manifestAt(folder, manifest.next) : manifest;
}

async function fromDockerArchive({ folder, complete }: Source, reference: string): Promise<FoundImage | undefined> {
  if (!(await isFile(join(folder, 'manifest.json')))) return undefined;
  type Entry = { Config: string; RepoTags?: readonly string[] | null; Layers: readonly string[] };
  const entries = JSON.parse((await readSmall(folder, 'manifest.json')).toString('utf8')) as readonly Entry[];
  const entry = entries.find(({ RepoTags }) =>
    (RepoTags ?? []).some((tag) => normalizeImageReference(tag) === reference),
  );
  if (entry === undefined) return undefined;
  await complete();
  const bytes = await readSmall(folder, entry.Config);
  const document = readImageDocument(bytes, entry.Layers.length);
  const layers: Layer[] = [];
  for (const [position, name] of entry.Layers.entries()) {
    layers.push({ path: await inside(folder, name), diffId: document.diffIds[position] ?? '' });
  }
  return { id: `sha256:${createHash('sha256').update(bytes).digest('hex')}`, config: document.config, layers };
}

function blobPath(digest: string): string {
  const { algorithm, hex } = parseDigest(digest);
  return `blobs/${algorithm}/${hex}`;
}

async function readBlob(folder: string, digest: string): Promise<Buffer> {
  const bytes = await readSmall(folder, blobPath(digest));
  checkBytes(bytes, digest);
  return bytes;
}

async function readSmall(folder: string, name: string): Promise<Buffer> {
  const path = await inside(folder, name);
  if ((await stat(path)).size > maxDocumentBytes)
    throw new RuntimeError('PullFailed', `the source's "${name}" is too large`);
  return readFile(path);
}

/** The path of a file in a source. Links are followed within the source only. */
async function inside(folder: string, name: string): Promise<string> {
  const base = await realpath(folder);
  const path = await realpath(join(base, name)).catch((error: unknown) => {
    throw new RuntimeError('PullFailed', `the source has no "${name}"`, { cause: error });
  });
  if (!path.startsWith(base + sep))
    throw new RuntimeError('PullFailed', `a link of the source refers to a path outside of it: "${name}"`);
  return path;
}
