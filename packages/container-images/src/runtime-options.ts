import type { RuntimeContext } from '@keelson/container-runtime';
import { optional, s } from '@keelson/core';
import type { Clock, Logger } from '@keelson/core/runtime';
import type { RegistryOptions } from './distribution/registry-options.ts';

/** Options of every runtime without a daemon. */
export interface DaemonlessRuntimeOptions {
  /**
   * Directory that only the runtime uses; it is created with mode 0700 if it does not exist. Containers are adopted
   * after a restart only when the directory is the same.
   */
  readonly stateDirectory: string;
  /** OCI layouts (directories), docker archives (tar files), or directories of these. Images are pulled from them. */
  readonly imageSources?: readonly string[];
  /**
   * Registries that provide images which no source contains; `{}` for the defaults. Absent: registries are not used.
   */
  readonly registries?: RegistryOptions;
  /**
   * Address of the node, which is also that of pods on the machine's network. Default: the address of the first
   * interface that is not loopback, otherwise 127.0.0.1.
   */
  readonly nodeIp?: string | (() => string);
  readonly clock?: Clock;
  readonly logger?: Logger;
  /** Interval in milliseconds at which state is read again without a file event. Default 10 s. */
  readonly relistPeriodMs?: number;
}

/** Declarations of the options that an operator of such a runtime can set, for the schema of its adapter. */
export const daemonlessOptionFields = {
  imageSources: optional(
    undefined,
    s.list(s.string({ minLength: 1 })),
    'Image archives and OCI layouts, or directories of them, besides those of the node.',
  ),
  relistPeriodMs: optional(
    undefined,
    s.int64({ minimum: 1 }),
    'Longest time between two complete inspections of the containers, in milliseconds; default 10000.',
  ),
};

/** The options of a runtime from those of its operator and the context that its adapter is opened with. */
export function daemonlessOptions(
  {
    imageSources = [],
    relistPeriodMs,
  }: { readonly imageSources?: readonly string[] | undefined; readonly relistPeriodMs?: number | undefined },
  { stateDirectory, imageDirectories, nodeIp, clock, logger }: RuntimeContext,
): DaemonlessRuntimeOptions {
  return {
    ...{ stateDirectory, clock, logger },
    imageSources: [...imageDirectories, ...imageSources],
    registries: {},
    ...(nodeIp !== undefined && { nodeIp }),
    ...(relistPeriodMs !== undefined && { relistPeriodMs }),
  };
}
