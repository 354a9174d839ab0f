import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { FoundImage } from '../images/found-image.ts';
import { unpackLayer } from '../layers/unpack-layer.ts';
import { folderSize } from './folder-size.ts';
import type { StoredImage } from './image-index.ts';

export interface UnpackImageOptions {
  /** Folder for layers, on the same file system. */
  readonly scratch: string;
  /** Unpacked bytes that are too many. */
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  readonly onBytes: (count: number) => void;
}

/** Makes `PLACE/rootfs` of all layers. @throws `PullFailed`, `Unsupported` */
export async function unpackImage(
  { id, config, layers }: FoundImage,
  place: string,
  { scratch, maxBytes, signal, onBytes }: UnpackImageOptions,
): Promise<Omit<StoredImage, 'blobs'>> {
  const root = join(place, 'rootfs');
  await mkdir(root, { recursive: true, mode: 0o755 });
  let left = maxBytes;
  for (const [position, layer] of layers.entries()) {
    signal.throwIfAborted();
    const count = (bytes: number) => {
      left -= bytes;
      onBytes(bytes);
    };
    await unpackLayer(layer, root, {
      scratch: join(scratch, `layer-${position}`),
      maxBytes: left,
      signal,
      onBytes: count,
    });
  }
  const user = config.user?.split(':', 1)[0] ?? '';
  return {
    ...{ id, config, sizeBytes: await folderSize(root), pinned: false },
    ...(/^\d+$/.test(user) && { uid: Number(user) }),
    ...(/^\D/.test(user) && { username: user }),
  };
}
