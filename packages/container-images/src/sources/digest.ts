import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { RuntimeError } from '@keelson/container-runtime';

/** `ALGORITHM:HEX` of a file; of what it unpacks to, if asked for and it is compressed with gzip. */
export async function digestOfFile(path: string, unpacked: boolean, algorithm = 'sha256'): Promise<string> {
  const hash = createHash(algorithm);
  if (unpacked && (await isGzip(path))) await pipeline(createReadStream(path), createGunzip(), hash);
  else await pipeline(createReadStream(path), hash);
  return `${algorithm}:${hash.digest('hex')}`;
}

/** @throws `PullFailed` when the file is another. */
export async function checkDigest(path: string, digest: string, unpacked: boolean): Promise<void> {
  const algorithm = digest.split(':', 1)[0] ?? '';
  if (algorithm !== 'sha256' && algorithm !== 'sha512')
    throw new RuntimeError('PullFailed', `unknown digest "${digest.slice(0, 100)}"`);
  const actual = await digestOfFile(path, unpacked, algorithm).catch((error: unknown) => {
    throw new RuntimeError('PullFailed', `cannot read the contents of ${digest}`, { cause: error });
  });
  if (actual !== digest) throw new RuntimeError('PullFailed', `the contents of ${digest} are damaged: they are ${actual}`);
}

async function isGzip(path: string): Promise<boolean> {
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(2), 0, 2, 0);
    return bytesRead === 2 && buffer[0] === 0x1f && buffer[1] === 0x8b;
  } finally {
    await file.close();
  }
}
