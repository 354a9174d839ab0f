import { RuntimeError } from '@keelson/container-runtime';
import { isJsonObject } from '@keelson/core/internal';
import { parseDigest } from './digest.ts';
import { choosePlatform, type Platform } from './platform.ts';

/** Reference to content: digest, size and media type. */
export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  /** Size of the content in bytes. */
  readonly size: number;
  readonly annotations: Readonly<Record<string, string>>;
  readonly platform?: Platform;
}

export interface Manifest {
  readonly config: Descriptor;
  /** Layers, the lowest first. */
  readonly layers: readonly Descriptor[];
}

/** Maximum bytes of a manifest, index or configuration. */
export const maxDocumentBytes = 4 << 20;

/** Media types of manifests and indexes, for the `Accept` header. */
export const manifestTypes = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.docker.distribution.manifest.v2+json',
].join(', ');

type Json = Readonly<Record<string, unknown>>;

/** Parses a JSON object. @throws `PullFailed` */
export function parseDocument(bytes: Buffer, what: string): Json {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    if (isJsonObject(value)) return value;
  } catch (error) {
    throw new RuntimeError('PullFailed', `${what} is not JSON`, { cause: error });
  }
  throw new RuntimeError('PullFailed', `${what} is not an object`);
}

/** The manifests of an index; undefined for other documents. @throws `PullFailed` */
export function indexEntries(document: Json): readonly Descriptor[] | undefined {
  const { manifests } = document;
  return Array.isArray(manifests) ? manifests.map(parseDescriptor) : undefined;
}

/**
 * Parses a manifest; for an index, returns the descriptor of the manifest for this machine.
 * @throws `ImageNotFound` without a manifest for this machine, `PullFailed` for other documents
 */
export function readManifest(document: Json): Manifest | { readonly next: Descriptor } {
  const entries = indexEntries(document);
  if (entries !== undefined) return { next: choosePlatform(entries) };
  if (document['schemaVersion'] === 1) {
    throw new RuntimeError(
      'Unsupported',
      'the image has a manifest of schema 1, which is not supported; push it again with a newer client',
    );
  }
  const { config, layers } = document;
  if (config === undefined || !Array.isArray(layers))
    throw new RuntimeError('PullFailed', 'the manifest has no layers');
  return { config: parseDescriptor(config), layers: layers.map(parseDescriptor) };
}

function parseDescriptor(value: unknown): Descriptor {
  const { mediaType, digest, size, annotations, platform } = isJsonObject(value) ? value : {};
  if (typeof digest !== 'string') throw new RuntimeError('PullFailed', 'a descriptor of the manifest has no digest');
  parseDigest(digest);
  return {
    digest,
    mediaType: typeof mediaType === 'string' ? mediaType : '',
    size: typeof size === 'number' && Number.isSafeInteger(size) && size >= 0 ? size : 0,
    annotations: isJsonObject(annotations)
      ? Object.fromEntries(Object.entries(annotations).map(([key, text]) => [key, String(text)]))
      : {},
    ...(isJsonObject(platform) && { platform: parsePlatform(platform) }),
  };
}

function parsePlatform({ os, architecture, variant }: Json): Platform {
  return { os: String(os), architecture: String(architecture), ...(typeof variant === 'string' && { variant }) };
}
