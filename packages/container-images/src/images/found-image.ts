import type { ImageConfig } from '@keelson/container-runtime';
import type { Layer } from '../layers/unpack-layer.ts';

/** An image as a source or a registry has it. */
export interface FoundImage {
  /** Digest of the configuration. */
  readonly id: string;
  readonly config: ImageConfig;
  /** The lowest first. */
  readonly layers: readonly Layer[];
  /** Digest of the manifest or index that the reference names, where there is one. */
  readonly digest?: string;
}
