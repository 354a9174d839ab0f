import type { ContainerId, ContainerMetadata } from './container.ts';
import type { SandboxId } from './sandbox.ts';

/** Current resource usage of a container. A value that the runtime cannot determine is absent, not zero. */
export interface ContainerStats {
  readonly id: ContainerId;
  readonly sandboxId: SandboxId;
  readonly metadata: ContainerMetadata;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Time of the measurement in epoch milliseconds. */
  readonly timestamp: number;
  readonly cpu?: {
    /** CPU time since the container was started, nanoseconds. */
    readonly usageCoreNanoseconds: bigint;
  };
  readonly memory?: {
    /** Used memory without the inactive page cache, which the kernel can reclaim. */
    readonly workingSetBytes: number;
    readonly rssBytes?: number;
    readonly usageBytes?: number;
    readonly pageFaults?: bigint;
    readonly majorPageFaults?: bigint;
  };
  /** Number of processes. */
  readonly processes?: number;
  /** Usage of the container's writable layer, which contains the files that it wrote outside of volumes. */
  readonly writableLayer?: { readonly usedBytes: number; readonly inodesUsed?: number };
}
