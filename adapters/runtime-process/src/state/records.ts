import type { ContainerRecord } from '@keelson/container-monitor';

/**
 * How a container's process is started; worked out once, at creation, and the same for every command run in it later.
 */
export interface LaunchPlan {
  /** Absolute path in the container, then the arguments. */
  readonly command: readonly string[];
  /** `NAME=value`, complete. */
  readonly env: readonly string[];
  readonly workingDir: string;
  /** Folder on the machine that is the container's root; absent: the machine's own. */
  readonly root?: string;
  /** Lower layer of an overlay that is mounted at `root` when the container starts. */
  readonly overlayLower?: string;
  /**
   * In order. Targets are paths in the container with all links resolved, so that a link in an image cannot lead out of
   * its root.
   */
  readonly mounts: readonly {
    readonly source: string;
    readonly target: string;
    readonly readonly: boolean;
    readonly file: boolean;
    /** See `Mount`; absent in records of earlier versions. */
    readonly exact?: boolean;
  }[];
  readonly mountNamespace: boolean;
  readonly uid?: number;
  readonly gid?: number;
  /** Undefined: those of the runtime. */
  readonly groups?: readonly number[];
  readonly noNewPrivileges: boolean;
  /** Folders of cgroup hierarchies that the process joins. */
  readonly cgroups: readonly string[];
  readonly oomScoreAdjust?: number;
  readonly stopSignal: string;
}

/** What is written when a container is made. */
export interface ProcessRecord extends ContainerRecord {
  readonly plan: LaunchPlan;
}
