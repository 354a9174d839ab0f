import { mkdir, rm } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
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
} from '@keelson/container-runtime';
import { newId, type SandboxRecord } from '../state/state-directory.ts';
import type { ContainerContext } from './container-context.ts';
import type { Inventory } from './inventory.ts';
import type { MonitoredContainer } from './monitored-container.ts';
import type { MonitoredSandbox } from './monitored-sandbox.ts';
import { stagingPath } from './prepare-container.ts';

export interface MonitoredRuntimeParts<S extends MonitoredSandbox<C>, C extends MonitoredContainer> {
  readonly around: ContainerContext;
  readonly inventory: Inventory<S, C>;
  readonly capabilities: RuntimeCapabilities;
  readonly nodeIp: () => string;
}

/**
 * The calls of a runtime that an {@link Inventory} answers. Adapters implement how sandboxes and containers are created
 * and entered.
 */
export abstract class MonitoredRuntime<S extends MonitoredSandbox<C>, C extends MonitoredContainer>
  implements ContainerRuntime
{
  abstract readonly name: string;
  abstract readonly streaming: RuntimeStreaming;
  readonly capabilities: RuntimeCapabilities;
  readonly #parts: MonitoredRuntimeParts<S, C>;

  constructor(parts: MonitoredRuntimeParts<S, C>) {
    this.#parts = parts;
    this.capabilities = parts.capabilities;
  }

  abstract version(): Promise<RuntimeVersion>;
  abstract status(options?: CallOptions): Promise<RuntimeStatus>;
  abstract execSync(id: ContainerId, request: ExecSyncRequest, options?: CallOptions): Promise<ExecSyncResult>;
  abstract listContainerStats(filter?: ContainerFilter): Promise<readonly ContainerStats[]>;

  /** Creates a sandbox and writes its record. Removes everything it created when it fails. */
  protected abstract makeSandbox(record: SandboxRecord): Promise<S>;

  /** Creates a container. When it fails, the caller removes its staging folder. */
  protected abstract makeContainer(sandbox: S, config: ContainerConfig, id: ContainerId): Promise<C>;

  async runPodSandbox(config: PodSandboxConfig): Promise<SandboxId> {
    const { around, inventory } = this.#parts;
    const { logDirectory } = config;
    if (logDirectory !== undefined && !isAbsolute(logDirectory))
      throw new RuntimeError('InvalidArgument', `log directory is not absolute: "${logDirectory}"`);
    const identity = inventory.claimSandbox(config);
    try {
      if (logDirectory !== undefined) await mkdir(logDirectory, { recursive: true, mode: 0o755 });
      const sandbox = await this.makeSandbox({ id: newId(), createdAt: around.clock.now(), config });
      inventory.addSandbox(sandbox);
      const { id, record } = sandbox;
      around.events.publish({ type: 'sandboxReady', sandboxId: id, at: record.createdAt });
      return id;
    } catch (error) {
      inventory.release(identity);
      throw error;
    }
  }

  async stopPodSandbox(id: SandboxId): Promise<void> {
    await this.#parts.inventory.sandboxes.get(id)?.stop();
  }

  async removePodSandbox(id: SandboxId): Promise<void> {
    const { inventory } = this.#parts;
    const sandbox = inventory.sandboxes.get(id);
    if (sandbox === undefined) return;
    await sandbox.remove();
    inventory.forgetSandbox(sandbox);
  }

  async podSandboxStatus(id: SandboxId): Promise<PodSandboxStatus> {
    return this.#sandbox(id).status(this.#parts.nodeIp());
  }

  async listPodSandboxes(filter?: SandboxFilter): Promise<readonly PodSandbox[]> {
    const sandboxes = [...this.#parts.inventory.sandboxes.values()].map((sandbox) => sandbox.snapshot);
    return newestFirst(sandboxes.filter((sandbox) => matchesSandbox(sandbox, filter)));
  }

  async createContainer(sandboxId: SandboxId, config: ContainerConfig): Promise<ContainerId> {
    const { around, inventory } = this.#parts;
    const sandbox = this.readySandbox(sandboxId);
    const identity = inventory.claimContainer(sandboxId, config);
    const id = newId();
    try {
      const container = await this.makeContainer(sandbox, config, id);
      if (!sandbox.ready) {
        await container.remove();
        throw new RuntimeError('InvalidState', `sandbox "${sandboxId}" was stopped while the container was created`);
      }
      inventory.addContainer(sandbox, container);
      const { createdAt } = container.record;
      around.events.publish({ type: 'containerCreated', containerId: id, sandboxId, at: createdAt });
      return id;
    } catch (error) {
      inventory.release(identity);
      await rm(stagingPath(around, id), { recursive: true, force: true });
      throw error;
    }
  }

  async startContainer(id: ContainerId): Promise<void> {
    await this.#container(id).start();
  }

  async stopContainer(id: ContainerId, request: StopRequest): Promise<void> {
    await this.#parts.inventory.containers.get(id)?.stop(request.gracePeriodMs);
  }

  async removeContainer(id: ContainerId): Promise<void> {
    const { inventory } = this.#parts;
    const container = inventory.containers.get(id);
    if (container === undefined) return;
    await container.remove();
    inventory.forgetContainer(container);
  }

  async listContainers(filter?: ContainerFilter): Promise<readonly Container[]> {
    return newestFirst(this.matching(filter).map((container) => container.snapshot));
  }

  async containerStatus(id: ContainerId): Promise<ContainerStatus> {
    return this.#container(id).status();
  }

  async updateContainerResources(id: ContainerId, resources: LinuxResources): Promise<void> {
    await this.#container(id).update(resources);
  }

  async reopenContainerLog(id: ContainerId): Promise<void> {
    await this.running(id);
    await this.#parts.around.keeper.request('reopen', id);
  }

  events(options: { readonly signal?: AbortSignal } = {}): AsyncIterable<RuntimeEvent> {
    return this.#parts.around.events.stream(options.signal);
  }

  /** Releases all resources of the runtime. Containers continue to run. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { around, inventory } = this.#parts;
    inventory.close();
    around.events.close();
    await around.keeper.close();
  }

  /** The containers that a filter selects. */
  protected matching(filter?: ContainerFilter): C[] {
    const containers = [...this.#parts.inventory.containers.values()];
    return containers.filter((container) => matchesContainer(container.snapshot, filter));
  }

  /** A sandbox that is ready. @throws `NotFound`, `InvalidState` */
  protected readySandbox(id: SandboxId): S {
    const sandbox = this.#sandbox(id);
    if (!sandbox.ready) throw new RuntimeError('InvalidState', `sandbox "${id}" is not ready`);
    return sandbox;
  }

  /** A running container and its first process. @throws `NotFound`, `InvalidState` */
  protected async running(id: ContainerId): Promise<{ readonly container: C; readonly pid: number }> {
    const container = this.#container(id);
    await container.refresh();
    const { identity, state } = container;
    if (state !== 'running' || identity === undefined)
      throw new RuntimeError('InvalidState', `container "${id}" is ${state}, not running`);
    return { container, pid: identity.pid };
  }

  #sandbox(id: SandboxId): S {
    const sandbox = this.#parts.inventory.sandboxes.get(id);
    if (sandbox === undefined) throw new RuntimeError('NotFound', `no sandbox "${id}"`);
    return sandbox;
  }

  #container(id: ContainerId): C {
    const container = this.#parts.inventory.containers.get(id);
    if (container === undefined) throw new RuntimeError('NotFound', `no container "${id}"`);
    return container;
  }
}

/** Sorts by creation time, newest first; of items created in the same millisecond, the later one comes first. */
export function newestFirst<T extends { readonly createdAt: number }>(items: T[]): T[] {
  return items.reverse().sort((a, b) => b.createdAt - a.createdAt);
}
