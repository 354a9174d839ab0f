import { createHash } from 'node:crypto';
import type { ImageAuth } from '@keelson/container-runtime';
import type { Clock } from '@keelson/core/runtime';
import { checkBytes } from '../images/digest.ts';
import { type Descriptor, type Manifest, manifestTypes, parseDocument, readManifest } from '../images/manifest.ts';
import { type DownloadOptions, download } from './download.ts';
import { repositoryOf } from './endpoints.ts';
import { Exchange } from './exchange.ts';
import { RegistryError } from './registry-error.ts';
import type { RegistryOptions } from './registry-options.ts';
import { RegistrySession } from './registry-session.ts';

/** The manifest of an image in a registry, and a function that downloads its blobs. */
export interface RemoteImage {
  readonly manifest: Manifest;
  /** Digest of the document that the reference names, which may be an index. */
  readonly digest: string;
  /** Server of the blobs: `SCHEME://HOST:PORT`. */
  readonly place: string;
  /** Writes a blob to a file. @throws RegistryError, `PullFailed` */
  readonly download: (blob: Descriptor, path: string, options: BlobOptions) => Promise<void>;
}

export type BlobOptions = Pick<DownloadOptions, 'signal' | 'onBytes'>;

const defaultRequestTimeoutMs = 30_000;
const defaultStallTimeoutMs = 300_000;
/** Maximum depth of indexes that refer to indexes. */
const maxDepth = 3;

/** A client of the OCI distribution protocol for pulls. */
export class RegistryClient {
  readonly #options: RegistryOptions;
  readonly #clock: Clock;
  readonly #exchange: Exchange;

  constructor(options: RegistryOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    const { ca, requestTimeoutMs = defaultRequestTimeoutMs } = options;
    this.#exchange = new Exchange({ clock, timeoutMs: requestTimeoutMs, ...(ca !== undefined && { ca }) });
  }

  /**
   * Calls a function with the manifest of a reference for this machine, from the first server where both succeed.
   * @throws RegistryError (`ImageNotFound` when the registry has no such image), `PullFailed`, `Unsupported`
   */
  async withImage<T>(
    reference: string,
    auth: ImageAuth | undefined,
    signal: AbortSignal,
    use: (image: RemoteImage) => Promise<T>,
  ): Promise<T> {
    const { path, version, endpoints } = repositoryOf(reference, this.#options);
    for (const endpoint of endpoints) {
      const session = new RegistrySession(this.#exchange, endpoint, path, auth);
      try {
        return await use(await this.#findAt(session, version, signal));
      } catch (error) {
        // Errors of mirrors are ignored. The result of the registry itself is final.
        if (endpoint.trusted || signal.aborted) throw error;
      }
    }
    throw new RegistryError('unreachable', `no server is configured for "${reference}"`);
  }

  async #findAt(session: RegistrySession, version: string, signal: AbortSignal): Promise<RemoteImage> {
    let bytes = await session.manifest(version, manifestTypes, signal);
    if (version.includes(':')) checkBytes(bytes, version);
    const digest = version.includes(':') ? version : `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
    for (let depth = 0; depth < maxDepth; depth += 1) {
      const manifest = readManifest(parseDocument(bytes, 'the manifest'));
      if (!('next' in manifest)) {
        const { place } = session;
        return {
          manifest,
          digest,
          place,
          download: (blob, path, options) => download(session, blob, path, this.#bounds(options)),
        };
      }
      bytes = await session.manifest(manifest.next.digest, manifestTypes, signal);
      checkBytes(bytes, manifest.next.digest);
    }
    throw new RegistryError('invalid', 'the image has too many nested indexes');
  }

  #bounds(options: BlobOptions): DownloadOptions {
    return { ...options, clock: this.#clock, stallTimeoutMs: this.#options.stallTimeoutMs ?? defaultStallTimeoutMs };
  }
}
