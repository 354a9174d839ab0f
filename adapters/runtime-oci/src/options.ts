import type { RegistryOptions } from '@keelson/container-images';
import type { CgroupOptions } from '@keelson/container-monitor';
import type { NetworkPlugin } from '@keelson/container-network';
import type { Clock, Logger } from '@keelson/core/runtime';

export interface OciRuntimeOptions {
  /** Absolute path or name of the OCI binary. Default: the first of `runc` and `crun` that is installed. */
  readonly binary?: string;
  /**
   * Directory that only the runtime uses; it is created with mode 0700 if it does not exist. Containers are adopted
   * after a restart only when the directory is the same.
   */
  readonly stateDirectory: string;
  /** OCI layouts (directories), docker archives (tar files), or directories of these. Images are pulled from them. */
  readonly imageSources?: readonly string[];
  /** Registries that provide images which no source contains. Absent: registries are not used. */
  readonly registries?: RegistryOptions;
  /**
   * Address of the node, which is also that of pods on the machine's network. Default: the address of the first
   * interface that is not loopback.
   */
  readonly nodeIp?: string | (() => string);
  /** Provides separate networks for pods. Absent: all pods use the network of the machine. */
  readonly network?: NetworkPlugin;
  /** Location of cgroups, which the OCI binary creates in any case. */
  readonly cgroups?: CgroupOptions;
  readonly clock?: Clock;
  readonly logger?: Logger;
  /** Interval in milliseconds at which state is read again without a file event. Default 10 s. */
  readonly relistPeriodMs?: number;
}
