import {
  type CallOptions,
  type Container,
  type ContainerConfig,
  type ContainerFilter,
  type ContainerId,
  type ContainerRuntime,
  type ContainerStats,
  type ContainerStatus,
  type ExecSyncRequest,
  type ExecSyncResult,
  type PodSandbox,
  type PodSandboxConfig,
  type PodSandboxStatus,
  type RuntimeCapabilities,
  type RuntimeCondition,
  RuntimeError,
  type RuntimeEvent,
  type RuntimeStatus,
  type RuntimeStreaming,
  type RuntimeVersion,
  type SandboxFilter,
  type SandboxId,
  type StopRequest,
} from '@keelson/container-runtime';
import { negotiate } from './api/negotiate.ts';
import type { ContainerReader } from './containers/container-reader.ts';
import type { EngineContainers } from './containers/engine-containers.ts';
import type { EngineContext } from './containers/engine-context.ts';
import type { EventSource } from './events/event-source.ts';
import type { EngineImages } from './images/engine-images.ts';
import type { EngineSandboxes } from './sandboxes/engine-sandboxes.ts';
import type { StatsReader } from './stats/container-stats.ts';
import type { ContainerStreams } from './streams/container-streams.ts';
import { execCollected, execStreams } from './streams/exec.ts';

export interface EngineRuntimeParts {
  readonly context: EngineContext;
  readonly capabilities: RuntimeCapabilities;
  readonly reader: ContainerReader;
  readonly containers: EngineContainers;
  readonly sandboxes: EngineSandboxes;
  readonly images: EngineImages;
  readonly streams: ContainerStreams;
  readonly stats: StatsReader;
  readonly source: EventSource;
}

/** Runs pods on Docker or Podman; the README describes the mapping. */
export class EngineRuntime implements ContainerRuntime {
  readonly name = 'engine';
  readonly capabilities: RuntimeCapabilities;
  readonly streaming: RuntimeStreaming;
  readonly updateContainerResources?: NonNullable<ContainerRuntime['updateContainerResources']>;
  readonly #parts: EngineRuntimeParts;

  constructor(parts: EngineRuntimeParts) {
    this.#parts = parts;
    this.capabilities = parts.capabilities;
    const { http, clock } = parts.context;
    this.streaming = {
      exec: async (id, request, { signal } = {}) => {
        await this.#requireRunning(id, signal);
        return execStreams(http, clock, id, request, signal);
      },
      attach: (id, request, { signal } = {}) => parts.streams.attach(id, request, signal),
      ...(parts.capabilities.portForward && {
        portForward: ((id, port, { signal } = {}) =>
          parts.streams.portForward(id, port, signal)) satisfies RuntimeStreaming['portForward'],
      }),
    };
    if (!parts.capabilities.updateResources) return;
    this.updateContainerResources = (id, resources, { signal } = {}) => parts.containers.update(id, resources, signal);
  }

  async version({ signal }: CallOptions = {}): Promise<RuntimeVersion> {
    const { flavour, version, apiVersion } = await negotiate(this.#parts.context.http, signal);
    return { runtimeName: flavour, runtimeVersion: version, runtimeApiVersion: apiVersion };
  }

  async status({ signal }: CallOptions = {}): Promise<RuntimeStatus> {
    const { http, options } = this.#parts.context;
    await http.open('GET', '/_ping', { signal }).then((answer) => answer.resume());
    const network = await options.network?.status(signal && { signal });
    const connected: RuntimeCondition =
      network === undefined || network.ready
        ? { type: 'NetworkReady', status: true }
        : { type: 'NetworkReady', status: false, reason: network.reason, message: network.message };
    return { conditions: [{ type: 'RuntimeReady', status: true }, connected] };
  }

  async updateConfig(config: { readonly podCidr?: string }): Promise<void> {
    this.#parts.context.options.network?.updateConfig(config);
  }

  runPodSandbox(config: PodSandboxConfig, { signal }: CallOptions = {}): Promise<SandboxId> {
    return this.#parts.sandboxes.run(config, signal);
  }

  stopPodSandbox(id: SandboxId, { signal }: CallOptions = {}): Promise<void> {
    return this.#parts.sandboxes.stop(id, signal);
  }

  removePodSandbox(id: SandboxId, { signal }: CallOptions = {}): Promise<void> {
    return this.#parts.sandboxes.remove(id, signal);
  }

  podSandboxStatus(id: SandboxId, { signal }: CallOptions = {}): Promise<PodSandboxStatus> {
    return this.#parts.sandboxes.status(id, signal);
  }

  listPodSandboxes(filter?: SandboxFilter, { signal }: CallOptions = {}): Promise<readonly PodSandbox[]> {
    return this.#parts.sandboxes.list(filter, signal);
  }

  async createContainer(
    sandboxId: SandboxId,
    config: ContainerConfig,
    { signal }: CallOptions = {},
  ): Promise<ContainerId> {
    const { sandboxes, containers, images } = this.#parts;
    const { record } = await sandboxes.findReady(sandboxId, signal);
    this.#requireProfileSupport(config);
    const { runAsGroup, runAsUser, runAsUsername } = config.securityContext ?? {};
    const imageDecides = runAsGroup !== undefined && runAsUser === undefined && runAsUsername === undefined;
    const image = imageDecides ? await images.imageStatus(config.image, signal && { signal }) : undefined;
    return containers.create(sandboxId, record, config, image?.config.user, signal);
  }

  startContainer(id: ContainerId, { signal }: CallOptions = {}): Promise<void> {
    return this.#parts.containers.start(id, signal);
  }

  stopContainer(id: ContainerId, request: StopRequest, { signal }: CallOptions = {}): Promise<void> {
    return this.#parts.containers.stop(id, request, signal);
  }

  removeContainer(id: ContainerId, { signal }: CallOptions = {}): Promise<void> {
    return this.#parts.containers.remove(id, signal);
  }

  listContainers(filter?: ContainerFilter, { signal }: CallOptions = {}): Promise<readonly Container[]> {
    return this.#parts.reader.list(filter, signal);
  }

  containerStatus(id: ContainerId, { signal }: CallOptions = {}): Promise<ContainerStatus> {
    return this.#parts.reader.status(id, signal);
  }

  async reopenContainerLog(id: ContainerId, { signal }: CallOptions = {}): Promise<void> {
    await this.#requireRunning(id, signal);
    this.#parts.context.logs.reopen(id);
  }

  async execSync(id: ContainerId, request: ExecSyncRequest, { signal }: CallOptions = {}): Promise<ExecSyncResult> {
    await this.#requireRunning(id, signal);
    const { http, clock } = this.#parts.context;
    return execCollected(http, clock, id, request, signal);
  }

  listContainerStats(filter?: ContainerFilter, { signal }: CallOptions = {}): Promise<readonly ContainerStats[]> {
    return this.#parts.stats.list(filter, signal);
  }

  events(options: { readonly signal?: AbortSignal } = {}): AsyncIterable<RuntimeEvent> {
    return this.#parts.context.feed.stream(options.signal);
  }

  /** Closes all connections and files; containers continue to run. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { context, source, streams } = this.#parts;
    source.close();
    context.feed.close();
    streams.close();
    context.logs.close();
    context.http.close();
  }

  async #requireRunning(id: ContainerId, signal: AbortSignal | undefined): Promise<void> {
    const { state } = await this.#parts.reader.find(id, signal);
    if (state !== 'running') throw new RuntimeError('InvalidState', `container "${id}" is ${state}, not running`);
  }

  /** Rejects profiles that the engine would not enforce. */
  #requireProfileSupport({ securityContext = {} }: ContainerConfig): void {
    for (const kind of ['seccomp', 'apparmor'] as const) {
      if (securityContext[kind]?.type === 'localhost' && !this.capabilities[kind])
        throw new RuntimeError('Unsupported', `the container engine does not support ${kind} on this machine`);
    }
  }
}
