import { readFile } from 'node:fs/promises';
import type { PullProgress } from '@keelson/container-runtime';
import type { RemoteImage } from '../distribution/registry-client.ts';
import { RegistryError } from '../distribution/registry-error.ts';
import type { FoundImage } from '../images/found-image.ts';
import { readImageDocument } from '../images/image-document.ts';
import { type Descriptor, maxDocumentBytes } from '../images/manifest.ts';
import type { ContentStore } from './content-store.ts';

export interface FetchOptions {
  readonly signal: AbortSignal;
  readonly parallel: number;
  /** Maximum compressed bytes of all layers together. */
  readonly maxBytes: number;
  readonly onProgress: (progress: PullProgress) => void;
}

/** Downloads the missing blobs of an image to the content store. @throws RegistryError, `PullFailed` */
export async function fetchImage(
  remote: RemoteImage,
  content: ContentStore,
  options: FetchOptions,
): Promise<FoundImage> {
  const { config, layers } = remote.manifest;
  const { signal, maxBytes } = options;
  const missing = uniqueBlobs([config, ...layers]).filter(({ digest }) => !content.has(digest));
  const totalBytes = missing.reduce((sum, { size }) => sum + size, 0);
  if (config.size > maxDocumentBytes)
    throw new RegistryError('invalid', `the configuration is too large: ${config.size} bytes`);
  if (totalBytes > maxBytes)
    throw new RegistryError('invalid', `the image is larger than ${maxBytes} bytes: ${totalBytes}`);

  let receivedBytes = 0;
  const received = (count: number) => {
    receivedBytes += count;
    options.onProgress({ receivedBytes, totalBytes });
  };
  const queue = [...missing];
  const failed = new AbortController();
  const within = AbortSignal.any([signal, failed.signal]);
  const work = async () => {
    for (let blob = queue.shift(); blob !== undefined; blob = queue.shift()) {
      within.throwIfAborted();
      await fetchBlob(blob, remote, content, within, received);
    }
  };
  let failure: unknown;
  const workers = Array.from({ length: Math.min(options.parallel, missing.length) }, () =>
    work().catch((error: unknown) => {
      // The first failure is thrown. The other downloads are canceled because of it.
      failure ??= error;
      failed.abort(error);
    }),
  );
  await Promise.all(workers);
  if (failure !== undefined) throw failure;

  const document = readImageDocument(await readFile(content.pathOf(config.digest)), layers.length);
  const found = layers.map(({ digest, mediaType }, position) => ({
    path: content.pathOf(digest),
    diffId: document.diffIds[position] ?? '',
    mediaType,
  }));
  return { id: config.digest, config: document.config, layers: found, digest: remote.digest };
}

async function fetchBlob(
  blob: Descriptor,
  remote: RemoteImage,
  content: ContentStore,
  signal: AbortSignal,
  received: (count: number) => void,
): Promise<void> {
  let counted = 0;
  const onBytes = (count: number) => {
    counted += count;
    received(count);
  };
  await content.ensure(
    blob.digest,
    remote.place,
    (path, within, report) => remote.download(blob, path, { signal: within, onBytes: report }),
    { signal, onBytes },
  );
  // Bytes that were downloaded before this pull joined the download count as well.
  if (counted < blob.size) received(blob.size - counted);
}

function uniqueBlobs(blobs: readonly Descriptor[]): Descriptor[] {
  return [...new Map(blobs.map((blob) => [blob.digest, blob])).values()];
}
