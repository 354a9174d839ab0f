import type { DaemonlessRuntimeOptions } from '@keelson/container-images';
import type { CgroupOptions } from '@keelson/container-monitor';
import type { NetworkPlugin } from '@keelson/container-network';

export interface OciRuntimeOptions extends DaemonlessRuntimeOptions {
  /** Absolute path or name of the OCI binary. Default: the first of `runc` and `crun` that is installed. */
  readonly binary?: string;
  /** Provides separate networks for pods. Absent: all pods use the network of the machine. */
  readonly network?: NetworkPlugin;
  /** Location of cgroups, which the OCI binary creates in any case. */
  readonly cgroups?: CgroupOptions;
}
