import type { ContainerRecord } from '@keelson/container-monitor';

/** The record that is written, in addition to the bundle, when a container is created. */
export interface OciRecord extends ContainerRecord {
  /** Path of its cgroup in every hierarchy. */
  readonly cgroup: string;
  /** Directory that is the lower layer of its root. Absent: the root is a copy. */
  readonly lower?: string;
  /** Number of the signal. */
  readonly stopSignal: number;
  /**
   * True when the container has its own PID namespace, so that the kernel kills all its processes with the first one.
   */
  readonly ownPids: boolean;
  /** Flags of the binary for a container with a terminal. */
  readonly runFlags: readonly string[];
}
