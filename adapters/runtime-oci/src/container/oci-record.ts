import type { ContainerRecord } from '@keelson/container-monitor';

/** What is written when a container is made, besides its bundle. */
export interface OciRecord extends ContainerRecord {
  /** Path of its cgroup in every hierarchy. */
  readonly cgroup: string;
  /** Folder that is the lower layer of its root; absent: the root is a copy. */
  readonly lower?: string;
  /** Number. */
  readonly stopSignal: number;
  /** Processes that its first one leaves behind end by themselves: it has a process id namespace of its own. */
  readonly ownPids: boolean;
  /** Flags of the binary for a container with a terminal. */
  readonly runFlags: readonly string[];
}
