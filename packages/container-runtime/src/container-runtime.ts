import type { CallOptions } from './call-options.ts';
import type { RuntimeCapabilities } from './capabilities.ts';
import type { Container, ContainerConfig, ContainerFilter, ContainerId, ContainerStatus } from './container.ts';
import type { RuntimeEvent } from './event-feed.ts';
import type { ExecSyncRequest, ExecSyncResult, RuntimeStreaming } from './exec.ts';
import type { ImageService } from './image-service.ts';
import type { LinuxResources } from './resources.ts';
import type { PodSandbox, PodSandboxConfig, PodSandboxStatus, SandboxFilter, SandboxId } from './sandbox.ts';
import type { ContainerStats } from './stats.ts';

/** Name and versions of a runtime. */
export interface RuntimeVersion {
  /** Name of the runtime, such as `process` or `containerd`. */
  readonly runtimeName: string;
  readonly runtimeVersion: string;
  /** Version of the protocol behind the adapter, `v1` when there is none. */
  readonly runtimeApiVersion: string;
}

/** A condition of a runtime: whether the runtime itself or its network is ready. */
export interface RuntimeCondition {
  readonly type: 'RuntimeReady' | 'NetworkReady';
  readonly status: boolean;
  readonly reason?: string;
  readonly message?: string;
}

/** Whether the runtime and its network are ready. */
export interface RuntimeStatus {
  /** Contains exactly one condition of each type. */
  readonly conditions: readonly RuntimeCondition[];
}

/** Parameters of a call that stops a container. */
export interface StopRequest {
  /** Milliseconds between the stop signal and SIGKILL; 0 kills at once. */
  readonly gracePeriodMs: number;
}

/**
 * Runs pods. A sandbox is the environment of one pod, in which the containers of the pod run.
 *
 * Call order for one pod: `runPodSandbox`; for each container `createContainer`, `startContainer`, later
 * `stopContainer` and `removeContainer`; `stopPodSandbox`, `removePodSandbox`. A caller may stop and remove at any
 * time, and repeat a stop or removal. A caller that was restarted begins with the lists, so a runtime must not require
 * that the same process made the earlier calls.
 *
 * - Identity is in the labels, annotations and metadata of the runtime's own objects, so that a caller can rebuild its
 *   state from the lists alone.
 * - All methods may be called concurrently, also for the same sandbox or container.
 * - Returned objects do not change afterwards.
 * - Every failure is a `RuntimeError`. The methods name the codes that callers handle; every method may also reject
 *   with `DeadlineExceeded`, `Aborted`, `Unavailable` and `Internal`.
 * - The last call is `[Symbol.asyncDispose]`. It releases the resources of the adapter; containers continue to run
 *   where `capabilities.survivesRestart` is true.
 */
export interface ContainerRuntime extends AsyncDisposable {
  /** Short name for logs and metrics: `process`, `oci`, `cri`, `engine`, `fake`. */
  readonly name: string;
  /** Capabilities of the runtime, which do not change after the runtime was opened. */
  readonly capabilities: RuntimeCapabilities;
  /** Streaming calls. A method is present exactly when the capability of the same name is true. */
  readonly streaming: RuntimeStreaming;

  version(options?: CallOptions): Promise<RuntimeVersion>;
  status(options?: CallOptions): Promise<RuntimeStatus>;
  /** Passes settings to the runtime that the node receives after its start. */
  updateConfig?(config: { readonly podCidr?: string }, options?: CallOptions): Promise<void>;

  /**
   * Creates a sandbox; resolves when it is `ready`. @throws `AlreadyExists` when a sandbox with the same metadata
   * exists, `Unsupported`.
   */
  runPodSandbox(config: PodSandboxConfig, options?: CallOptions): Promise<SandboxId>;
  /**
   * Kills the containers in a sandbox and releases its network; the sandbox is `notReady` afterwards. Idempotent; does
   * nothing for an unknown sandbox.
   */
  stopPodSandbox(id: SandboxId, options?: CallOptions): Promise<void>;
  /** Stops and removes a sandbox and its containers. Does nothing for an unknown sandbox. Log files are retained. */
  removePodSandbox(id: SandboxId, options?: CallOptions): Promise<void>;
  /** @throws `NotFound` */
  podSandboxStatus(id: SandboxId, options?: CallOptions): Promise<PodSandboxStatus>;
  /** Lists the sandboxes that match the filter, newest first. */
  listPodSandboxes(filter?: SandboxFilter, options?: CallOptions): Promise<readonly PodSandbox[]>;

  /**
   * Creates a container without starting its process.
   * @throws `NotFound` (sandbox), `InvalidState` (sandbox not ready), `AlreadyExists`, `ImageNotFound`,
   *   `InvalidArgument`, `Unsupported`.
   */
  createContainer(sandboxId: SandboxId, config: ContainerConfig, options?: CallOptions): Promise<ContainerId>;
  /**
   * Starts a container; resolves when its process executes the configured command.
   * @throws `NotFound`, `InvalidState` unless `created`, `StartFailed` (the container is then `exited` with reason
   *   `StartError`).
   */
  startContainer(id: ContainerId, options?: CallOptions): Promise<void>;
  /**
   * Sends the stop signal to the container's first process (a runtime without process namespaces: to its process
   * group), waits for the grace period, then kills every process of the container. Resolves when the container has
   * exited. A second call with a shorter grace period shortens the wait of the first. Does nothing for a container that
   * does not run.
   */
  stopContainer(id: ContainerId, request: StopRequest, options?: CallOptions): Promise<void>;
  /**
   * Kills the container if it runs, and removes it. Does nothing for an unknown container. Its log file is retained.
   */
  removeContainer(id: ContainerId, options?: CallOptions): Promise<void>;
  /** Lists the containers that match the filter, newest first. */
  listContainers(filter?: ContainerFilter, options?: CallOptions): Promise<readonly Container[]>;
  /** @throws `NotFound` */
  containerStatus(id: ContainerId, options?: CallOptions): Promise<ContainerStatus>;
  /**
   * Changes the resources of a container. Present when `capabilities.updateResources` is true. @throws `NotFound`,
   * `InvalidState` unless created or running.
   */
  updateContainerResources?(id: ContainerId, resources: LinuxResources, options?: CallOptions): Promise<void>;
  /**
   * Opens a new log file at the same path, after the caller has renamed the old file. No output is lost: earlier output
   * is in the old file. @throws `NotFound`, `InvalidState` unless running.
   */
  reopenContainerLog(id: ContainerId, options?: CallOptions): Promise<void>;
  /**
   * Runs a command in the container and collects its output.
   * @throws `NotFound`, `InvalidState` unless running, `DeadlineExceeded` when the command was killed after
   *   `execTimeoutMs`, `StartFailed` when the command does not exist.
   */
  execSync(id: ContainerId, request: ExecSyncRequest, options?: CallOptions): Promise<ExecSyncResult>;
  /** Returns the resource usage of the running containers that match the filter. */
  listContainerStats(filter?: ContainerFilter, options?: CallOptions): Promise<readonly ContainerStats[]>;
  /**
   * Opens a stream of events; present when `capabilities.events` is true. The stream ends without an error when the
   * signal is aborted or the runtime is closed. It throws `Unavailable` when the connection to the runtime is lost; the
   * consumer then opens another stream, which begins with `resync`.
   */
  events?(options?: { readonly signal?: AbortSignal }): AsyncIterable<RuntimeEvent>;
}

/** The result of opening a runtime adapter: the runtime and its image store. */
export interface ContainerEngine {
  readonly runtime: ContainerRuntime;
  readonly images: ImageService;
}
