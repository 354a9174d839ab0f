import type { RegistryAuth } from './registry-access.ts';

export interface RegistryRequest {
  readonly method: string;
  /** Path and query of the request. */
  readonly path: string;
  readonly authorization: string | undefined;
  /** True when the request arrives at the address to which blobs are redirected. */
  readonly storage: boolean;
}

/** Behaviour of a registry, which can be changed while it runs. */
export interface RegistryBehaviour {
  readonly auth?: RegistryAuth | undefined;
  /** Answers a request with another status, and an error code of the distribution specification. */
  readonly refuse?:
    | ((request: RegistryRequest) => { readonly status: number; readonly code?: string } | undefined)
    | undefined;
  /** Sending a blob pauses after this many bytes, with the connection open, until the behaviour is changed. */
  readonly stallAfter?: number | undefined;
  /** Blobs end after this many bytes, with the connection cut. */
  readonly cutAfter?: number | undefined;
  /** Blobs are sent in pieces with pauses between them. */
  readonly slow?: { readonly chunkBytes: number; readonly everyMs: number } | undefined;
  /** Blobs have the right length and wrong content. */
  readonly wrongDigest?: boolean | undefined;
  /** Blobs are redirected to another address, as of a storage service. */
  readonly redirect?: boolean | undefined;
  /** Everything is redirected to the same path of another registry, `http://HOST:PORT`. */
  readonly moved?: string | undefined;
}
