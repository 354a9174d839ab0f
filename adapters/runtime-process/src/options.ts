import type { DaemonlessRuntimeOptions } from '@keelson/container-images';
import type { CgroupOptions } from '@keelson/container-monitor';

export interface ProcessRuntimeOptions extends DaemonlessRuntimeOptions {
  /** Absent: cgroups are not changed, and limits have no effect. */
  readonly cgroups?: CgroupOptions;
}
