import { createHash, type Hash } from 'node:crypto';
import { RuntimeError } from '@keelson/container-runtime';

/** The parts of `ALGORITHM:HEX`. */
export interface Digest {
  readonly algorithm: 'sha256' | 'sha512';
  readonly hex: string;
}

/** @throws `PullFailed` */
export function parseDigest(text: string): Digest {
  const [, algorithm, hex] = /^(sha256|sha512):([0-9a-f]+)$/.exec(text) ?? [];
  if ((algorithm === 'sha256' && hex?.length === 64) || (algorithm === 'sha512' && hex?.length === 128))
    return { algorithm, hex };
  throw new RuntimeError('PullFailed', `not a digest: "${text.slice(0, 150)}"`);
}

/** A running check of contents against a digest. @throws `PullFailed` when it is none */
export function digestCheck(digest: string): { readonly hash: Hash; readonly finish: () => void } {
  const { algorithm } = parseDigest(digest);
  const hash = createHash(algorithm);
  const finish = () => {
    const actual = `${algorithm}:${hash.digest('hex')}`;
    if (actual !== digest)
      throw new RuntimeError('PullFailed', `the contents of ${digest} are damaged: they are ${actual}`);
  };
  return { hash, finish };
}

/** @throws `PullFailed` when the contents are others */
export function checkBytes(bytes: Buffer, digest: string): void {
  const { hash, finish } = digestCheck(digest);
  hash.update(bytes);
  finish();
}
