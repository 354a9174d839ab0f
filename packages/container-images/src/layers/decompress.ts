import { PassThrough, type Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import { RuntimeError } from '@keelson/container-runtime';

const zstdMagic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

/** What undoes the compression of a layer, told by its first bytes. @throws `Unsupported` */
export function decompressor(start: Buffer, mediaType = 'application/zstd'): Transform {
  if (start[0] === 0x1f && start[1] === 0x8b) return zlib.createGunzip();
  if (!start.subarray(0, 4).equals(zstdMagic)) return new PassThrough();
  // Later versions of Node than the oldest supported one have it.
  const create: unknown = Reflect.get(zlib, 'createZstdDecompress');
  if (typeof create === 'function') return create() as Transform;
  throw new RuntimeError(
    'Unsupported',
    `layers of type "${mediaType}" are not supported: Node ${process.version} cannot unpack zstd`,
  );
}
