import type { ContainerId, ContainerMetadata } from './container.ts';
import type { SandboxId } from './sandbox.ts';

/** What a container uses right now. A value that the runtime cannot know is absent, never zero. */
export interface ContainerStats {
  readonly id: ContainerId;
  readonly sandboxId: SandboxId;
  readonly metadata: ContainerMetadata;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Epoch milliseconds. */
  readonly timestamp: number;
  readonly cpu?: {
    /** CPU time since the container was started, nanoseconds. */
    readonly usageCoreNanoseconds: bigint;
  };
  readonly memory?: {
    /** Usage that cannot be given up without harm. */
    readonly workingSetBytes: number;
    readonly rssBytes?: number;
    readonly usageBytes?: number;
    readonly pageFaults?: bigint;
    readonly majorPageFaults?: bigint;
  };
  /** Number of processes. */
  readonly processes?: number;
  /** What the container wrote into its own layer, outside of volumes. */
  readonly writableLayer?: { readonly usedBytes: number; readonly inodesUsed?: number };
}
