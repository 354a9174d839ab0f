import type { RegistryOptions } from '@keelson/container-images';
import type { CgroupOptions } from '@keelson/container-monitor';
import type { Clock, Logger } from '@keelson/core/runtime';

export interface ProcessRuntimeOptions {
  /**
   * Directory that only the runtime uses; it is created with mode 0700 if it does not exist. Containers are adopted
   * after a restart only when the directory is the same.
   */
  readonly stateDirectory: string;
  /**
   * Address of the node, which is also that of every pod. Default: the address of the first interface that is not
   * loopback, otherwise 127.0.0.1.
   */
  readonly nodeIp?: string | (() => string);
  /**
   * OCI layouts (directories), docker archives (tar files), or directories of these. Images other than `host` are
   * pulled from them.
   */
  readonly imageSources?: readonly string[];
  /**
   * Registries that provide images which no source contains; `{}` for the defaults. Absent: registries are not used.
   */
  readonly registries?: RegistryOptions;
  /** Absent: cgroups are not changed, and limits have no effect. */
  readonly cgroups?: CgroupOptions;
  readonly clock?: Clock;
  readonly logger?: Logger;
  /** Interval in milliseconds at which state is read again without a file event. Default 10 s. */
  readonly relistPeriodMs?: number;
}
