import type { DaemonlessRuntimeOptions } from '@keelson/container-images';
import type { CgroupOptions } from '@keelson/container-monitor';

export interface ProcessRuntimeOptions extends DaemonlessRuntimeOptions {
  /** Location of cgroups. Absent: the runtime uses no cgroups, and limits of resources have no effect. */
  readonly cgroups?: CgroupOptions;
}
