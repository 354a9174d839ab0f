import type {
  ContainerConfig,
  ContainerMetadata,
  ExecSyncRequest,
  ExecSyncResult,
  PodSandboxConfig,
} from '@keelson/container-runtime';

/**
 * What a scripted container does. Times are milliseconds of the clock of the {@link FakeWorld}. An empty object is a
 * container that runs until it is stopped.
 */
export interface FakeBehaviour {
  /** Duration of `startContainer`; default 0. */
  readonly startDelayMs?: number;
  /** Message with which `startContainer` fails with `StartFailed`; absent: the start succeeds. */
  readonly startError?: string;
  /** Time from the start of the container to its exit without a stop; absent: it runs until it is stopped. */
  readonly exitAfterMs?: number;
  /** Exit code of a container that exits without a stop; default 0. */
  readonly exitCode?: number;
  /** Reason of an exit without a stop; default `Completed` for exit code 0, else `Error`. */
  readonly exitReason?: string;
  readonly exitMessage?: string;
  /** Time from the stop signal to the exit; with `never`, only SIGKILL ends the container. Default 0. */
  readonly stopAfterMs?: number | 'never';
  /** Exit code of a container that the stop signal ended; default 143. */
  readonly stopExitCode?: number;
  /** Executes commands; default: exit code 0, no output. May throw a `RuntimeError`. */
  readonly exec?: (request: ExecSyncRequest) => ExecSyncResult | Promise<ExecSyncResult>;
  readonly cpuMillicores?: number;
  readonly memoryBytes?: number;
  /** Bytes that the container has written outside of volumes; absent: the statistics do not contain this value. */
  readonly writableBytes?: number;
}

/** A container that is about to start. */
export interface FakeStart {
  readonly sandbox: PodSandboxConfig;
  readonly config: ContainerConfig;
  readonly metadata: ContainerMetadata;
}

/** Decides what a container does, once at each start. */
export type FakeScript = (start: FakeStart) => FakeBehaviour;

/** What a pull of one reference does. */
export interface FakePull {
  readonly delayMs?: number;
  readonly error?: {
    readonly code: 'ImageNotFound' | 'PullFailed' | 'Unavailable' | 'Unsupported';
    readonly message: string;
  };
  readonly sizeBytes?: number;
  /** Numeric user of the image. */
  readonly uid?: number;
}

/** Ready-made behaviours. */
export const behaviours = {
  runForever: {},
  exitAfter: (exitAfterMs: number, exitCode = 0): FakeBehaviour => ({ exitAfterMs, exitCode }),
  crashLoop: (exitAfterMs = 0, exitCode = 1): FakeBehaviour => ({ exitAfterMs, exitCode }),
  slowStart: (startDelayMs: number): FakeBehaviour => ({ startDelayMs }),
  cannotStart: (startError: string): FakeBehaviour => ({ startError }),
  outOfMemory: (exitAfterMs = 0): FakeBehaviour => ({ exitAfterMs, exitCode: 137, exitReason: 'OOMKilled' }),
  ignoresStop: { stopAfterMs: 'never' },
} as const satisfies Record<string, FakeBehaviour | ((...args: never[]) => FakeBehaviour)>;
