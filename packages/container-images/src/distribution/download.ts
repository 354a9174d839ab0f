import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { Clock } from '@keelson/core/runtime';
import { digestCheck } from '../images/digest.ts';
import type { Descriptor } from '../images/manifest.ts';
import { RegistryError } from './registry-error.ts';
import type { RegistrySession } from './registry-session.ts';

export interface DownloadOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Maximum time without received data, in milliseconds. */
  readonly stallTimeoutMs: number;
  readonly onBytes: (count: number) => void;
}

/** Writes a blob to a file. Resolves when the content was verified and synced. @throws RegistryError, `PullFailed` */
export async function download(
  session: RegistrySession,
  { digest, size }: Descriptor,
  path: string,
  options: DownloadOptions,
): Promise<void> {
  const { clock, stallTimeoutMs, onBytes } = options;
  const stalled = new AbortController();
  const signal = AbortSignal.any([options.signal, stalled.signal]);
  const { hash, finish } = digestCheck(digest);
  const answer = await session.blob(digest, signal).catch((error: unknown) => {
    // The manifest exists, so a missing blob is an error of the registry, not a missing image.
    if (error instanceof RegistryError && error.reason === 'notFound')
      throw new RegistryError('invalid', error.message, { cause: error });
    throw error;
  });
  const late = () =>
    stalled.abort(new RegistryError('unreachable', `received no data of ${digest} within ${stallTimeoutMs / 1000} s`));
  let cancel = clock.after(stallTimeoutMs, late);
  let received = 0;
  const counted = async function* (source: AsyncIterable<Buffer>) {
    for await (const chunk of source) {
      cancel();
      cancel = clock.after(stallTimeoutMs, late);
      received += chunk.length;
      if (received > size)
        throw new RegistryError('invalid', `${digest} is longer than the ${size} bytes of its manifest`);
      hash.update(chunk);
      onBytes(chunk.length);
      yield chunk;
    }
  };
  try {
    await pipeline(answer.body, counted, createWriteStream(path, { mode: 0o600, flush: true }), { signal });
  } catch (error) {
    if (stalled.signal.aborted) throw stalled.signal.reason;
    if (options.signal.aborted || error instanceof RegistryError) throw error;
    throw new RegistryError('unreachable', `the transfer of ${digest} was interrupted: ${String(error)}`, {
      cause: error,
    });
  } finally {
    cancel();
  }
  if (received !== size) throw new RegistryError('unreachable', `${digest} ended after ${received} of ${size} bytes`);
  finish();
}
