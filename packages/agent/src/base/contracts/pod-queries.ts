import type { Pod } from '@keelson/kinds';

/** Which part of a container's log somebody wants. */
export interface LogRequest {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  /** Goes on until `signal` aborts or the container ends. */
  readonly follow: boolean;
  /** The log of the instance before the current one. */
  readonly previous: boolean;
  /** Each line begins with its RFC 3339 time. */
  readonly timestamps: boolean;
  /** Undefined = all. */
  readonly tailLines: number | undefined;
  /** Lines of this time and later, epoch milliseconds. */
  readonly sinceMs: number | undefined;
  readonly limitBytes: number | undefined;
  readonly signal: AbortSignal;
}

/** Why a question about a pod has no answer; the server maps it to 404, 400, 501 or 503. */
export class PodQueryError extends Error {
  readonly reason: 'NotFound' | 'Invalid' | 'Unsupported' | 'Unavailable';

  constructor(reason: PodQueryError['reason'], message: string) {
    super(message);
    this.name = 'PodQueryError';
    this.reason = reason;
  }
}

/** CPU and memory at one time, of a node, a pod or a container. */
export interface UsageStats {
  /** Epoch milliseconds. */
  readonly timeMs: number;
  /** Since its start. */
  readonly cpuNanoSeconds: number;
  readonly memoryWorkingSetBytes: number;
  readonly memoryUsageBytes?: number;
  readonly memoryRssBytes?: number;
}

export interface ContainerUsage extends UsageStats {
  readonly name: string;
  readonly startTimeMs: number;
  /** What it wrote outside of volumes; absent where the runtime does not tell. */
  readonly writableLayer?: { readonly usedBytes: number; readonly inodesUsed?: number };
}

/** Space of one volume of a pod. */
export interface VolumeUsage {
  readonly name: string;
  /** Epoch milliseconds. */
  readonly timeMs: number;
  readonly usedBytes: number;
  readonly inodesUsed: number;
  /** Of the file system that the volume is on. */
  readonly capacityBytes: number;
  readonly availableBytes: number;
  readonly inodes: number;
  readonly inodesFree: number;
}

export interface PodUsage {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly startTimeMs: number;
  readonly containers: readonly ContainerUsage[];
  /** Absent when volumes are not measured, or not yet. */
  readonly volumes?: readonly VolumeUsage[];
}

/** What the agent's servers read from the life cycle. */
export interface PodQueries {
  /**
   * Desired pods with the status that the agent has worked out; static pods under their own UID, mirror pods left out.
   */
  pods(): readonly Pod[];
  /** What the runtime has, as pods with names, UIDs and containers only. */
  runningPods(): Promise<readonly Pod[]>;
  /** @throws PodQueryError before the first byte, when there is nothing to read */
  logs(request: LogRequest): Promise<AsyncIterable<Buffer>>;
  /** Usage of the pods that run. */
  usage(signal?: AbortSignal): Promise<readonly PodUsage[]>;
  /** When the loop that looks after pods last went round, monotonic milliseconds; undefined before it started. */
  lastSyncLoopMs(): number | undefined;
}
