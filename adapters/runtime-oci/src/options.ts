import type { RegistryOptions } from '@keelson/container-images';
import type { CgroupOptions } from '@keelson/container-monitor';
import type { NetworkPlugin } from '@keelson/container-network';
import type { Clock, Logger } from '@keelson/core';

export interface OciRuntimeOptions {
  /** Absolute path or name of the OCI binary; absent: the first of `runc` and `crun` that this machine has. */
  readonly binary?: string;
  /**
   * Folder that is the runtime's alone; created with mode 0700 if needed. It must stay the same for containers to be
   * found again.
   */
  readonly stateDirectory: string;
  /** OCI layouts (folders) and docker archives (tar files), or folders that hold such; images are pulled from them. */
  readonly imageSources?: readonly string[];
  /** Registries are asked for what no source has; absent: they are not. */
  readonly registries?: RegistryOptions;
  /**
   * Address of the node, which pods on the machine's network have; absent: that of the first interface that is not
   * loopback.
   */
  readonly nodeIp?: string | (() => string);
  /** Gives pods a network of their own; absent: all pods have that of the machine. */
  readonly network?: NetworkPlugin;
  /** Where cgroups are; the binary makes them in any case. */
  readonly cgroups?: CgroupOptions;
  readonly clock?: Clock;
  readonly logger?: Logger;
  /** How often state is read again although no file event came, milliseconds; default 10 s. */
  readonly relistPeriodMs?: number;
}
