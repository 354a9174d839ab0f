import { lstat, mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { FoundImage } from '../images/found-image.ts';
import { fromText, onDisk } from '../layers/inside-root.ts';
import { unpackLayer } from '../layers/unpack-layer.ts';
import type { StoredImage } from './image-index.ts';

export interface UnpackImageOptions {
  /** Folder for unpacked layers, on the same file system. */
  readonly scratch: string;
  /** Maximum unpacked bytes. */
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  readonly onBytes: (count: number) => void;
}

/** Unpacks all layers to `PLACE/rootfs`. @throws `PullFailed`, `Unsupported` */
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

/** Bytes on disk below a folder; a file with several hard links counts once. */
async function folderSize(folder: string): Promise<number> {
  const counted = new Set<bigint>();
  const pending = [fromText(folder)];
  let total = 0;
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    for (const name of await readdir(onDisk(path), { encoding: 'latin1' })) {
      const child = `${path}/${name}`;
      const entry = await lstat(onDisk(child), { bigint: true });
      if (entry.isDirectory()) pending.push(child);
      else if (entry.nlink > 1n && counted.has(entry.ino)) continue;
      if (entry.nlink > 1n) counted.add(entry.ino);
      total += Number(entry.blocks) * 512;
    }
  }
  return total;
}
