import type { ImageConfig } from '@keelson/container-runtime';
import type { Layer } from '../layers/unpack-layer.ts';

/** An image in a source or a registry. */
export interface FoundImage {
  /** Digest of the configuration. */
  readonly id: string;
  readonly config: ImageConfig;
  /** Layers, the lowest first. */
  readonly layers: readonly Layer[];
  /** Digest of the manifest or index that the reference names. Docker archives have none. */
  readonly digest?: string;
}
