import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

/** A layer: path of a tar file, which is gzipped, or bytes that are served as they are. */
export type RegistryLayer = string | { readonly mediaType: string; readonly bytes: Buffer; readonly diffId: string };

export interface RegistryImage {
  /** Layers of the image, the lowest first. */
  readonly layers: readonly RegistryLayer[];
  /** The field `config` of the image's configuration: `Env`, `Cmd`, `User` and so on. */
  readonly config?: object;
  /** The format of the manifest; default `oci`. */
  readonly format?: ImageFormat;
  /** Default `amd64`. */
  readonly architecture?: string;
}

export type ImageFormat = 'oci' | 'docker';

export interface Blob {
  readonly mediaType: string;
  readonly bytes: Buffer;
}

const mediaTypes = {
  oci: {
    index: 'application/vnd.oci.image.index.v1+json',
    manifest: 'application/vnd.oci.image.manifest.v1+json',
    config: 'application/vnd.oci.image.config.v1+json',
    layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
  },
  docker: {
    index: 'application/vnd.docker.distribution.manifest.list.v2+json',
    manifest: 'application/vnd.docker.distribution.manifest.v2+json',
    config: 'application/vnd.docker.container.image.v1+json',
    layer: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
  },
} as const;

export function digestOf(bytes: Buffer | string): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

const describe = ({ mediaType, bytes }: Blob) => ({ mediaType, digest: digestOf(bytes), size: bytes.length });

/** The documents of an image: its blobs, the configuration among them, and its manifest. */
export function makeImage({ layers, config = {}, format = 'oci', architecture = 'amd64' }: RegistryImage) {
  const types = mediaTypes[format];
  const packed = layers.map((layer) => {
    if (typeof layer !== 'string') return layer;
    const tar = readFileSync(layer);
    return { mediaType: types.layer, bytes: gzipSync(tar), diffId: digestOf(tar) };
  });
  const rootfs = { type: 'layers', diff_ids: packed.map(({ diffId }) => diffId) };
  const configuration: Blob = {
    mediaType: types.config,
    bytes: Buffer.from(JSON.stringify({ architecture, os: 'linux', config, rootfs })),
  };
  const document = {
    ...{ schemaVersion: 2, mediaType: types.manifest },
    ...{ config: describe(configuration), layers: packed.map(describe) },
  };
  const manifest: Blob = { mediaType: types.manifest, bytes: Buffer.from(JSON.stringify(document)) };
  return { id: digestOf(configuration.bytes), blobs: [configuration, ...packed], manifest, architecture };
}

/** An index of manifests for several architectures. */
export function makeIndex(images: readonly ReturnType<typeof makeImage>[], format: ImageFormat): Blob {
  const { index } = mediaTypes[format];
  const manifests = images.map(({ manifest, architecture }) => ({
    ...describe(manifest),
    platform: { os: 'linux', architecture },
  }));
  return { mediaType: index, bytes: Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: index, manifests })) };
}
