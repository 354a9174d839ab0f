import type { ContainerRecord } from '@keelson/container-monitor';

/**
 * How the process of a container is started. The plan is made when the container is created and also applies to
 * commands that are run in it later.
 */
export interface LaunchPlan {
  /** Absolute path of the program in the container, followed by its arguments. */
  readonly command: readonly string[];
  /** All environment variables as `NAME=value`. */
  readonly env: readonly string[];
  readonly workingDir: string;
  /** Directory on the machine that is the root of the container. Absent: the root of the machine. */
  readonly root?: string;
  /** Lower layer of an overlay that is mounted at `root` when the container starts. */
  readonly overlayLower?: string;
  /** The root, but none of the mounts in it, is read-only. */
  readonly readonlyRoot?: boolean;
  /**
   * Mounts in the order in which they are made. Targets are paths in the container with all symbolic links resolved, so
   * that a link in an image cannot refer to a path outside its root.
   */
  readonly mounts: readonly {
    readonly source: string;
    readonly target: string;
    readonly readonly: boolean;
    readonly file: boolean;
    /** Whether the start fails if `source` contains a symbolic link by then; absent in records of earlier versions. */
    readonly exact?: boolean;
  }[];
  readonly mountNamespace: boolean;
  readonly uid?: number;
  readonly gid?: number;
  /** Supplementary groups. Undefined: those of the runtime. */
  readonly groups?: readonly number[];
  readonly noNewPrivileges: boolean;
  /** Directories of the cgroups that the process joins. */
  readonly cgroups: readonly string[];
  readonly oomScoreAdjust?: number;
  readonly stopSignal: string;
}

/** The record that is written when a container is created. */
export interface ProcessRecord extends ContainerRecord {
  readonly plan: LaunchPlan;
}
