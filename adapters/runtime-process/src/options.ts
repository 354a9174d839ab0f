import type { RegistryOptions } from '@keelson/container-images';
import type { CgroupOptions } from '@keelson/container-monitor';
import type { Clock, Logger } from '@keelson/core';

export interface ProcessRuntimeOptions {
  /**
   * Folder that is the runtime's alone; created with mode 0700 if needed. It must stay the same for containers to be
   * found again.
   */
  readonly stateDirectory: string;
  /**
   * Address of the node, which every pod has; absent: that of the first interface that is not loopback, else 127.0.0.1.
   */
  readonly nodeIp?: string | (() => string);
  /**
   * OCI layouts (folders) and docker archives (tar files), or folders that hold such; images other than `host` are
   * pulled from them.
   */
  readonly imageSources?: readonly string[];
  /** How registries are asked for images that no source has, `{}` for the usual way; absent: they are not asked. */
  readonly registries?: RegistryOptions;
  /** Absent: no cgroups are touched, and limits have no effect. */
  readonly cgroups?: CgroupOptions;
  readonly clock?: Clock;
  readonly logger?: Logger;
  /** How often state is read again although no file event came, milliseconds; default 10 s. */
  readonly relistPeriodMs?: number;
}
