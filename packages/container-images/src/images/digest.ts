import { createHash, type Hash } from 'node:crypto';
import { RuntimeError } from '@keelson/container-runtime';

/** The parts of `ALGORITHM:HEX`. */
export interface Digest {
  readonly algorithm: 'sha256' | 'sha512';
  readonly hex: string;
}

/** Parses a digest. @throws `PullFailed` for an invalid one. */
export function parseDigest(text: string): Digest {
  const [, algorithm, hex] = /^(sha256|sha512):([0-9a-f]+)$/.exec(text) ?? [];
  if ((algorithm === 'sha256' && hex?.length === 64) || (algorithm === 'sha512' && hex?.length === 128))
    return { algorithm, hex };
  throw new RuntimeError('PullFailed', `invalid digest "${text.slice(0, 150)}"`);
}

/** An incremental check of content against a digest. @throws `PullFailed` for an invalid digest. */
export function digestCheck(digest: string): { readonly hash: Hash; readonly finish: () => void } {
  const { algorithm } = parseDigest(digest);
  const hash = createHash(algorithm);
  const finish = () => {
    const actual = `${algorithm}:${hash.digest('hex')}`;
    if (actual !== digest) throw new RuntimeError('PullFailed', `the content of ${digest} has the digest ${actual}`);
  };
  return { hash, finish };
}

/** Checks content against a digest. @throws `PullFailed` when it does not match. */
export function checkBytes(bytes: Buffer, digest: string): void {
  const { hash, finish } = digestCheck(digest);
  hash.update(bytes);
  finish();
}
