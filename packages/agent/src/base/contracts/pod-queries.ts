import type { Pod } from '@keelson/kinds';

/** Parameters of a request for a container log. */
export interface LogRequest {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  /** New output is sent until `signal` aborts or the container ends. */
  readonly follow: boolean;
  /** The log of the previous instance of the container is requested. */
  readonly previous: boolean;
  /** Each line begins with its RFC 3339 time. */
  readonly timestamps: boolean;
  /** Maximum number of lines, the last of the log. Undefined = no maximum. */
  readonly tailLines: number | undefined;
  /** Lines of this time and later, epoch milliseconds. */
  readonly sinceMs: number | undefined;
  readonly limitBytes: number | undefined;
  readonly signal: AbortSignal;
}

/** A query about a pod has no answer; the server maps `reason` to 404, 400, 501 or 503. */
export class PodQueryError extends Error {
  readonly reason: 'NotFound' | 'Invalid' | 'Unsupported' | 'Unavailable';

  constructor(reason: PodQueryError['reason'], message: string) {
    super(message);
    this.name = 'PodQueryError';
    this.reason = reason;
  }
}

/** CPU and memory usage of a node, a pod or a container at one point in time. */
export interface UsageStats {
  /** Epoch milliseconds. */
  readonly timeMs: number;
  /** Accumulated since the start of the container or machine. */
  readonly cpuNanoSeconds: number;
  readonly memoryWorkingSetBytes: number;
  readonly memoryUsageBytes?: number;
  readonly memoryRssBytes?: number;
}

export interface ContainerUsage extends UsageStats {
  readonly name: string;
  readonly startTimeMs: number;
  /** Data written outside of volumes; absent when the runtime does not report it. */
  readonly writableLayer?: { readonly usedBytes: number; readonly inodesUsed?: number };
}

/** Usage of one volume of a pod. */
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

/** Queries of the HTTP servers about the pods of the node. */
export interface PodQueries {
  /**
   * Desired pods with the status that the agent has computed; static pods have their own UID, mirror pods are left out.
   */
  pods(): readonly Pod[];
  /** The pods that the runtime has, with names, UIDs and containers only. */
  runningPods(): Promise<readonly Pod[]>;
  /** @throws PodQueryError before the first byte, when the log cannot be read */
  logs(request: LogRequest): Promise<AsyncIterable<Buffer>>;
  /** Usage of running pods. */
  usage(signal?: AbortSignal): Promise<readonly PodUsage[]>;
  /** Time of the last relist of the runtime, monotonic milliseconds; undefined before the first one. */
  lastSyncLoopMs(): number | undefined;
}
