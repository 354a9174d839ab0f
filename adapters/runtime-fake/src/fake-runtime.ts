import {
  type Container,
  type ContainerConfig,
  type ContainerEngine,
  type ContainerFilter,
  type ContainerId,
  type ContainerRuntime,
  type ContainerStats,
  type ContainerStatus,
  type ExecSyncRequest,
  type ExecSyncResult,
  type LinuxResources,
  matchesContainer,
  matchesSandbox,
  type PodSandbox,
  type PodSandboxConfig,
  type PodSandboxStatus,
  type RuntimeCapabilities,
  RuntimeError,
  type RuntimeEvent,
  type RuntimeStatus,
  type RuntimeStreaming,
  type RuntimeVersion,
  type SandboxFilter,
  type SandboxId,
  type StopRequest,
  withDeadlines,
} from '@keelson/container-runtime';
import { fakeCapabilities } from './capabilities.ts';
import { FakeContainer } from './fake-container.ts';
import { FakeImages } from './fake-images.ts';
import { FakeSandbox } from './fake-sandbox.ts';
import type { FakeWorld } from './fake-world.ts';

export interface FakeRuntimeOptions {
  /**
   * Whether calls end when their signal is aborted or their timeout has passed. Default true. False is sufficient for
   * an agent, which itself limits the calls of every runtime.
   */
  readonly deadlines?: boolean;
  /** Declares that containers write logs; the test writes them. Default false. */
  readonly logs?: boolean;
  /** Streams of containers, implemented by the test. Default: none. */
  readonly streaming?: RuntimeStreaming;
  /** Capabilities that the runtime reports instead of its own. */
  readonly capabilities?: Partial<RuntimeCapabilities>;
}

/**
 * Creates a runtime whose sandboxes and containers are in a {@link FakeWorld}. Several runtimes may use one world, as
 * successive agents use one machine.
 */
export function createFakeRuntime(
  world: FakeWorld,
  { deadlines = true, logs = false, streaming = {}, capabilities = {} }: FakeRuntimeOptions = {},
): ContainerEngine {
  const has = (way: keyof RuntimeStreaming) => streaming[way] !== undefined;
  const streams = { exec: has('exec'), attach: has('attach'), portForward: has('portForward') };
  const engine: ContainerEngine = {
    runtime: new FakeRuntime(world, { ...fakeCapabilities, ...streams, logs, ...capabilities }, streaming),
    images: new FakeImages(world),
  };
  return deadlines ? withDeadlines(engine, { clock: world.clock }) : engine;
}

class FakeRuntime implements ContainerRuntime {
  readonly name = 'fake';
  readonly capabilities: RuntimeCapabilities;
  readonly streaming: RuntimeStreaming;
  readonly #world: FakeWorld;
  readonly #closed = new AbortController();

  constructor(world: FakeWorld, capabilities: RuntimeCapabilities, streaming: RuntimeStreaming) {
    this.#world = world;
    this.capabilities = capabilities;
    this.streaming = streaming;
  }

  async version(): Promise<RuntimeVersion> {
    await this.#world.admit('version');
    return { runtimeName: 'fake', runtimeVersion: '0.1.0', runtimeApiVersion: 'v1' };
  }

  async status(): Promise<RuntimeStatus> {
    await this.#world.admit('status');
    return {
      conditions: [
        { type: 'RuntimeReady', status: this.#world.runtimeReady },
        { type: 'NetworkReady', status: this.#world.networkReady },
      ],
    };
  }

  async runPodSandbox(config: PodSandboxConfig): Promise<SandboxId> {
    await this.#world.admit('runPodSandbox');
    const { name, namespace, uid, attempt } = config.metadata;
    for (const { metadata } of this.#world.sandboxesOf(uid)) {
      if (metadata.attempt !== attempt || metadata.name !== name || metadata.namespace !== namespace) continue;
      throw new RuntimeError('AlreadyExists', `sandbox of "${namespace}/${name}", attempt ${attempt}, exists`);
    }
    return new FakeSandbox(this.#world, config).id;
  }

  async stopPodSandbox(id: SandboxId): Promise<void> {
    await this.#world.admit('stopPodSandbox');
    await this.#stopSandbox(id);
  }

  async removePodSandbox(id: SandboxId): Promise<void> {
    await this.#world.admit('removePodSandbox');
    await this.#stopSandbox(id);
    const sandbox = this.#world.sandboxes.get(id);
    for (const container of sandbox?.containers ?? []) container.remove();
    sandbox?.remove();
  }

  async podSandboxStatus(id: SandboxId): Promise<PodSandboxStatus> {
    await this.#world.admit('podSandboxStatus');
    return this.#sandbox(id).status();
  }

  async listPodSandboxes(filter?: SandboxFilter): Promise<readonly PodSandbox[]> {
    await this.#world.admit('listPodSandboxes');
    const found =
      filter?.id === undefined ? [...this.#world.sandboxes.values()] : [this.#world.sandboxes.get(filter.id)];
    return found
      .flatMap((sandbox) => (sandbox && matchesSandbox(sandbox.snapshot, filter) ? [sandbox.snapshot] : []))
      .reverse();
  }

  async createContainer(sandboxId: SandboxId, config: ContainerConfig): Promise<ContainerId> {
    await this.#world.admit('createContainer');
    const sandbox = this.#sandbox(sandboxId);
    if (!sandbox.ready) throw new RuntimeError('InvalidState', `sandbox "${sandboxId}" is not ready`);
    const { name, attempt } = config.metadata;
    for (const { metadata } of [...sandbox.containers].map((container) => container.snapshot)) {
      if (metadata.name !== name || metadata.attempt !== attempt) continue;
      throw new RuntimeError(
        'AlreadyExists',
        `container "${name}", attempt ${attempt}, exists in sandbox "${sandboxId}"`,
      );
    }
    const image = this.#world.findImage(config.image);
    if (image === undefined) throw new RuntimeError('ImageNotFound', `no image "${config.image}"`);
    return new FakeContainer(this.#world, sandbox, config, image.id).id;
  }

  async startContainer(id: ContainerId): Promise<void> {
    await this.#world.admit('startContainer');
    await this.#container(id).start();
  }

  async stopContainer(id: ContainerId, request: StopRequest): Promise<void> {
    await this.#world.admit('stopContainer');
    await this.#world.containers.get(id)?.stop(request.gracePeriodMs);
  }

  async removeContainer(id: ContainerId): Promise<void> {
    await this.#world.admit('removeContainer');
    const container = this.#world.containers.get(id);
    await container?.stop(0);
    container?.remove();
  }

  async listContainers(filter?: ContainerFilter): Promise<readonly Container[]> {
    await this.#world.admit('listContainers');
    return this.#matching(filter)
      .map((container) => container.snapshot)
      .reverse();
  }

  async containerStatus(id: ContainerId): Promise<ContainerStatus> {
    await this.#world.admit('containerStatus');
    return this.#container(id).status();
  }

  async updateContainerResources(id: ContainerId, resources: LinuxResources): Promise<void> {
    await this.#world.admit('updateContainerResources');
    this.#container(id).update(resources);
  }

  async reopenContainerLog(id: ContainerId): Promise<void> {
    await this.#world.admit('reopenContainerLog');
    this.#running(id);
  }

  async execSync(id: ContainerId, request: ExecSyncRequest): Promise<ExecSyncResult> {
    await this.#world.admit('execSync');
    const { exec } = this.#running(id).behaviour;
    const empty = { stdout: new Uint8Array(), stderr: new Uint8Array(), exitCode: 0 };
    if (exec === undefined) return empty;
    const result = Promise.resolve(exec(request));
    const { execTimeoutMs } = request;
    if (execTimeoutMs === undefined) return result;
    let cancel = () => {};
    const late = new Promise<never>((_, reject) => {
      const fail = () =>
        reject(new RuntimeError('DeadlineExceeded', `the command did not end within ${execTimeoutMs} ms`));
      cancel = this.#world.clock.after(execTimeoutMs, fail);
    });
    return Promise.race([result, late]).finally(cancel);
  }

  async listContainerStats(filter?: ContainerFilter): Promise<readonly ContainerStats[]> {
    await this.#world.admit('listContainerStats');
    const timestamp = this.#world.clock.now();
    return this.#matching(filter).flatMap((container) => {
      const { snapshot, startedAt, behaviour } = container;
      if (snapshot.state !== 'running' || startedAt === undefined) return [];
      const { id, sandboxId, metadata, labels, annotations } = snapshot;
      const usedMs = Math.round((timestamp - startedAt) * (behaviour.cpuMillicores ?? 1));
      const memory = behaviour.memoryBytes ?? 1_000_000;
      return [
        {
          ...{ id, sandboxId, metadata, labels, annotations, timestamp },
          cpu: { usageCoreNanoseconds: BigInt(usedMs) * 1000n },
          memory: { workingSetBytes: memory, rssBytes: memory },
          ...(behaviour.writableBytes !== undefined && { writableLayer: { usedBytes: behaviour.writableBytes } }),
        },
      ];
    });
  }

  events(options: { readonly signal?: AbortSignal } = {}): AsyncIterable<RuntimeEvent> {
    const signals = options.signal === undefined ? [this.#closed.signal] : [this.#closed.signal, options.signal];
    return this.#world.events.stream(AbortSignal.any(signals));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort();
  }

  async #stopSandbox(id: SandboxId): Promise<void> {
    const sandbox = this.#world.sandboxes.get(id);
    if (sandbox === undefined) return;
    await Promise.all([...sandbox.containers].map((container) => container.stop(0)));
    sandbox.stop();
  }

  #matching(filter: ContainerFilter = {}): FakeContainer[] {
    const { containers, sandboxes } = this.#world;
    let candidates: Iterable<FakeContainer> = containers.values();
    if (filter.id !== undefined)
      candidates = [containers.get(filter.id)].filter((container) => container !== undefined);
    else if (filter.sandboxId !== undefined) candidates = sandboxes.get(filter.sandboxId)?.containers ?? [];
    return [...candidates].filter((container) => matchesContainer(container.snapshot, filter));
  }

  #sandbox(id: SandboxId): FakeSandbox {
    const sandbox = this.#world.sandboxes.get(id);
    if (sandbox === undefined) throw new RuntimeError('NotFound', `no sandbox "${id}"`);
    return sandbox;
  }

  #container(id: ContainerId): FakeContainer {
    const container = this.#world.containers.get(id);
    if (container === undefined) throw new RuntimeError('NotFound', `no container "${id}"`);
    return container;
  }

  #running(id: ContainerId): FakeContainer {
    const container = this.#container(id);
    if (container.state !== 'running')
      throw new RuntimeError('InvalidState', `container "${id}" is ${container.state}, not running`);
    return container;
  }
}
