import { mkdir, readdir, readFile, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { type ImageConfig, normalizeImageReference, RuntimeError } from '@keelson/container-runtime';
import { tryTool } from '../machine/run-tool.ts';
import { checkDigest, digestOfFile } from './digest.ts';

/** An image as a source offers it: checked, and with its layers as tar files, the lowest first. */
export interface FoundImage {
  /** Digest of the configuration. */
  readonly id: string;
  readonly config: ImageConfig;
  readonly layers: readonly string[];
}

interface Descriptor {
  readonly mediaType?: string;
  readonly digest: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly platform?: { readonly os?: string; readonly architecture?: string };
}

interface RawConfig {
  readonly config?: {
    readonly User?: string;
    readonly Env?: readonly string[];
    readonly Entrypoint?: readonly string[];
    readonly Cmd?: readonly string[];
    readonly WorkingDir?: string;
    readonly StopSignal?: string;
    readonly Labels?: Readonly<Record<string, string>>;
    readonly Volumes?: Readonly<Record<string, unknown>>;
  };
  readonly rootfs?: { readonly diff_ids?: readonly string[] };
}

const nameAnnotations = ['io.containerd.image.name', 'org.opencontainers.image.ref.name'];
const architectures: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386', arm: 'arm', arm64: 'arm64' };

/**
 * Looks for a reference in OCI layouts and docker archives. `scratch` is an empty folder for what must be taken out of archives; the
 * layers of the answer may be in it. Undefined: no source has it. @throws `PullFailed` for a damaged source that has it.
 */
export async function findInSources(
  sources: readonly string[],
  reference: string,
  scratch: string,
): Promise<FoundImage | undefined> {
  let number = 0;
  for (const path of await candidates(sources)) {
    let folder = path;
    if ((await stat(path)).isFile()) {
      number += 1;
      folder = join(scratch, `source-${number}`);
      await mkdir(folder);
      if ((await tryTool('tar', ['-xf', path, '-C', folder, '--no-same-owner'])) !== undefined) continue; // no archive
    }
    const found = (await fromLayout(folder, reference)) ?? (await fromDockerArchive(folder, reference));
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The sources themselves, and what is in those that are folders of sources. */
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

async function fromLayout(folder: string, reference: string): Promise<FoundImage | undefined> {
  if (!(await isFile(join(folder, 'oci-layout')))) return undefined;
  const index = await readJson<{ manifests?: readonly Descriptor[] }>(folder, 'index.json');
  const descriptor = (index.manifests ?? []).find((entry) => names(entry, reference));
  if (descriptor === undefined) return undefined;
  const manifest = await readManifest(folder, descriptor);
  const bytes = await readBlob(folder, manifest.config.digest);
  const layers: string[] = [];
  for (const { digest } of manifest.layers) {
    const path = await inside(folder, blobPath(digest));
    await checkDigest(path, digest, false);
    layers.push(path);
  }
  return { id: manifest.config.digest, config: imageConfig(JSON.parse(bytes.toString('utf8'))), layers };
}

/** A name may be a whole reference or, in a layout of one image, only its tag. */
function names({ annotations = {}, digest }: Descriptor, reference: string): boolean {
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

interface Manifest {
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
}

/** Follows an index of several platforms to this machine's. */
async function readManifest(folder: string, descriptor: Descriptor): Promise<Manifest> {
  const document = JSON.parse((await readBlob(folder, descriptor.digest)).toString('utf8')) as Partial<Manifest> & {
    manifests?: Descriptor[];
  };
  if (document.manifests !== undefined) {
    const architecture = architectures[process.arch] ?? process.arch;
    const mine = document.manifests.find(({ platform }) => platform?.os === 'linux' && platform.architecture === architecture);
    if (mine === undefined) throw new RuntimeError('ImageNotFound', `the image has no variant for linux/${architecture}`);
    return readManifest(folder, mine);
  }
  if (document.config === undefined || document.layers === undefined)
    throw new RuntimeError('PullFailed', 'the manifest has no layers');
  return { config: document.config, layers: document.layers };
}

async function fromDockerArchive(folder: string, reference: string): Promise<FoundImage | undefined> {
  if (!(await isFile(join(folder, 'manifest.json')))) return undefined;
  type Entry = { Config: string; RepoTags?: readonly string[] | null; Layers: readonly string[] };
  const entries = await readJson<readonly Entry[]>(folder, 'manifest.json');
  const entry = entries.find(({ RepoTags }) => (RepoTags ?? []).some((tag) => normalizeImageReference(tag) === reference));
  if (entry === undefined) return undefined;
  const configPath = await inside(folder, entry.Config);
  const raw = JSON.parse(await readFile(configPath, 'utf8')) as RawConfig;
  const layers: string[] = [];
  for (const [position, name] of entry.Layers.entries()) {
    const path = await inside(folder, name);
    const digest = raw.rootfs?.diff_ids?.[position];
    if (digest === undefined) throw new RuntimeError('PullFailed', 'the archive has more layers than its configuration names');
    await checkDigest(path, digest, true);
    layers.push(path);
  }
  return { id: await digestOfFile(configPath, false), config: imageConfig(raw), layers };
}

function imageConfig({ config = {} }: RawConfig): ImageConfig {
  const { User, Env, Entrypoint, Cmd, WorkingDir, StopSignal, Labels, Volumes } = config;
  return {
    ...(User && { user: User }),
    ...(Env && { env: Env }),
    ...(Entrypoint && { entrypoint: Entrypoint }),
    ...(Cmd && { cmd: Cmd }),
    ...(WorkingDir && { workingDir: WorkingDir }),
    ...(StopSignal && { stopSignal: StopSignal }),
    ...(Labels && { labels: Labels }),
    ...(Volumes && { volumes: Object.keys(Volumes) }),
  };
}

function blobPath(digest: string): string {
  const [, algorithm, hex] = /^(sha256|sha512):([0-9a-f]{64,128})$/.exec(digest) ?? [];
  if (algorithm === undefined || hex === undefined)
    throw new RuntimeError('PullFailed', `not a digest: "${digest.slice(0, 100)}"`);
  return `blobs/${algorithm}/${hex}`;
}

async function readBlob(folder: string, digest: string): Promise<Buffer> {
  const path = await inside(folder, blobPath(digest));
  await checkDigest(path, digest, false);
  return readFile(path);
}

async function readJson<T>(folder: string, name: string): Promise<T> {
  return JSON.parse(await readFile(await inside(folder, name), 'utf8')) as T;
}

/** A source may hold links, but only to itself. */
async function inside(folder: string, name: string): Promise<string> {
  const base = await realpath(folder);
  const path = await realpath(join(base, name)).catch((error: unknown) => {
    throw new RuntimeError('PullFailed', `the source has no "${name}"`, { cause: error });
  });
  if (!path.startsWith(base + sep)) throw new RuntimeError('PullFailed', `the source leads out of itself: "${name}"`);
  return path;
}
