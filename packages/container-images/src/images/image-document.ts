import { type ImageConfig, RuntimeError } from '@keelson/container-runtime';
import { parseDocument } from './manifest.ts';

/** The parts of an image's configuration that are used. */
export interface ImageDocument {
  readonly config: ImageConfig;
  /** Digests of the uncompressed layers, the lowest first. */
  readonly diffIds: readonly string[];
}

interface RawDocument {
  readonly config?: {
    readonly User?: string;
    readonly Env?: readonly string[];
    readonly Entrypoint?: readonly string[];
    readonly Cmd?: readonly string[];
    readonly WorkingDir?: string;
    readonly StopSignal?: string;
    readonly Labels?: Readonly<Record<string, string>>;
    readonly Volumes?: Readonly<Record<string, unknown>>;
  } | null;
  readonly rootfs?: { readonly diff_ids?: readonly string[] };
}

/** Parses a configuration; `layers` is the expected number of layers. @throws `PullFailed` */
export function readImageDocument(bytes: Buffer, layers: number): ImageDocument {
  const raw: RawDocument = parseDocument(bytes, "the image's configuration");
  const { User, Env, Entrypoint, Cmd, WorkingDir, StopSignal, Labels, Volumes } = raw.config ?? {};
  const diffIds = raw.rootfs?.diff_ids ?? [];
  if (diffIds.length !== layers) {
    throw new RuntimeError('PullFailed', `the image has ${layers} layers, its configuration has ${diffIds.length}`);
  }
  const config = {
    ...(User && { user: User }),
    ...(Env && { env: Env }),
    ...(Entrypoint && { entrypoint: Entrypoint }),
    ...(Cmd && { cmd: Cmd }),
    ...(WorkingDir && { workingDir: WorkingDir }),
    ...(StopSignal && { stopSignal: StopSignal }),
    ...(Labels && { labels: Labels }),
    ...(Volumes && { volumes: Object.keys(Volumes) }),
  };
  return { config, diffIds };
}
