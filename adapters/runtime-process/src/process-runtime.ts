import { mkdir, rm } from 'node:fs/promises';
import { release } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { copyRoot, type ImageStore } from '@keelson/container-images';
import {
  attachStreams,
  type Inventory,
  logPathOf,
  newestFirst,
  newId,
  prepareContainer,
  stagingFolder,
} from '@keelson/container-monitor';
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
import { ProcessContainer } from './container/process-container.ts';
import { ProcessSandbox } from './container/process-sandbox.ts';
import { readStats } from './container/read-stats.ts';
import type { ProcessSurroundings } from './container/surroundings.ts';
import { runCommand } from './exec/run-command.ts';
import { execStreams, forwardPort } from './exec/streaming.ts';
import { hostImage } from './host-image.ts';
import { makePlan } from './launch/make-plan.ts';
import type { Permissions } from './machine/permissions.ts';

export interface ProcessRuntimeParts {
  readonly around: ProcessSurroundings;
  readonly inventory: Inventory<ProcessSandbox, ProcessContainer>;
  readonly images: ImageStore;
  readonly permissions: Permissions;
  readonly capabilities: RuntimeCapabilities;
  readonly nodeIp: () => string;
}

/** Containers as processes of the machine; see the README for what that means. */
export class ProcessRuntime implements ContainerRuntime {
  readonly name = 'process';
  readonly capabilities: RuntimeCapabilities;
  readonly streaming: RuntimeStreaming;
  readonly #parts: ProcessRuntimeParts;

  constructor(parts: ProcessRuntimeParts) {
    this.#parts = parts;
    this.capabilities = parts.capabilities;
    this.streaming = {
      exec: async (id, request) => {
        const { container, pid } = await this.#running(id);
        return execStreams(container, pid, request);
      },
      attach: async (id, request) => {
        const { container } = await this.#running(id);
        if (request.tty) throw new RuntimeError('Unsupported', 'the process runtime has no terminals');
        return attachStreams(container, parts.around, request);
      },
      portForward: async (id, port) => {
        if (!this.#sandbox(id).ready) throw new RuntimeError('InvalidState', `sandbox "${id}" is not ready`);
        return forwardPort(port);
      },
    };
  }

  async version(): Promise<RuntimeVersion> {
    return { runtimeName: 'process', runtimeVersion: `0.1.0+linux-${release()}`, runtimeApiVersion: 'v1' };
  }

  async status(): Promise<RuntimeStatus> {
    return {
      conditions: [
        { type: 'RuntimeReady', status: true },
        { type: 'NetworkReady', status: true },
      ],
    };
  }

  async runPodSandbox(config: PodSandboxConfig): Promise<SandboxId> {
    const { around, inventory } = this.#parts;
    const { logDirectory, sysctls = {} } = config;
    if (Object.keys(sysctls).length > 0)
      throw new RuntimeError('Unsupported', 'the process runtime cannot set kernel parameters of a pod');
    if (logDirectory !== undefined && !isAbsolute(logDirectory)) {
      throw new RuntimeError('InvalidArgument', `log directory is not absolute: "${logDirectory}"`);
    }
    const identity = inventory.claimSandbox(config);
    try {
      if (logDirectory !== undefined) await mkdir(logDirectory, { recursive: true, mode: 0o755 });
      const record = { id: newId(), createdAt: around.clock.now(), config };
      await ProcessSandbox.write(around, record);
      inventory.addSandbox(new ProcessSandbox(around, record, true));
      around.events.publish({ type: 'sandboxReady', sandboxId: record.id, at: record.createdAt });
      return record.id;
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
    const { inventory } = this.#parts;
    const sandbox = this.#sandbox(sandboxId);
    if (!sandbox.ready) throw new RuntimeError('InvalidState', `sandbox "${sandboxId}" is not ready`);
    const identity = inventory.claimContainer(sandboxId, config);
    const id = newId();
    try {
      await this.#create(sandbox, config, id);
      return id;
    } catch (error) {
      inventory.release(identity);
      await rm(join(this.#parts.around.state.containers, `.new-${id}`), { recursive: true, force: true });
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
    return newestFirst(this.#matching(filter).map((container) => container.snapshot));
  }

  async containerStatus(id: ContainerId): Promise<ContainerStatus> {
    return this.#container(id).status();
  }

  async updateContainerResources(id: ContainerId, resources: LinuxResources): Promise<void> {
    await this.#container(id).update(resources);
  }

  async reopenContainerLog(id: ContainerId): Promise<void> {
    await this.#running(id);
    await this.#parts.around.keeper.request('reopen', id);
  }

  async execSync(id: ContainerId, request: ExecSyncRequest, options: CallOptions = {}): Promise<ExecSyncResult> {
    const { container, pid } = await this.#running(id);
    return runCommand(container.record.plan, pid, request, options.signal);
  }

  async listContainerStats(filter?: ContainerFilter): Promise<readonly ContainerStats[]> {
    const { around } = this.#parts;
    return readStats(this.#matching(filter), around.cgroups, around.clock);
  }

  events(options: { readonly signal?: AbortSignal } = {}): AsyncIterable<RuntimeEvent> {
    return this.#parts.around.events.stream(options.signal);
  }

  /** Lets go of everything; containers run on. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { around, inventory } = this.#parts;
    inventory.close();
    around.events.close();
    await around.keeper.close();
  }

  async #create(sandbox: ProcessSandbox, config: ContainerConfig, id: ContainerId): Promise<void> {
    const { around, inventory, images, permissions } = this.#parts;
    const image = images.find(config.image);
    if (image === undefined) throw new RuntimeError('ImageNotFound', `no image "${config.image}"`);
    const logPath = logPathOf(sandbox.record.config.logDirectory, config.logPath);
    const folder = await stagingFolder(around, id);
    const imageRoot = images.rootOf(image);
    const cgroups = await around.cgroups.create(sandbox.record.config.cgroupParent, sandbox.id, id, config.resources ?? {});
    try {
      const root = image === hostImage ? undefined : await this.#makeRoot(folder, id, imageRoot);
      const input = { id, config, sandbox: sandbox.record.config, permissions, image: image.config, imageRoot, cgroups };
      const plan = await makePlan({ ...input, ...(root && { root }) });
      const record = {
        ...{ id, sandboxId: sandbox.id, createdAt: around.clock.now(), config, imageId: image.id, plan },
        ...(logPath !== undefined && { logPath }),
      };
      await prepareContainer(around, record, folder);
      const container = new ProcessContainer(around, record);
      if (!sandbox.ready) {
        await container.remove();
        throw new RuntimeError('InvalidState', `sandbox "${sandbox.id}" was stopped meanwhile`);
      }
      inventory.addContainer(sandbox, container);
      around.events.publish({ type: 'containerCreated', containerId: id, sandboxId: sandbox.id, at: record.createdAt });
    } catch (error) {
      await around.cgroups.remove(cgroups);
      throw error;
    }
  }

  /** Root file system of a container, as it will be called once the folder is in place. */
  async #makeRoot(folder: string, id: ContainerId, imageRoot: string): Promise<{ path: string; overlayLower?: string }> {
    const { around, permissions } = this.#parts;
    const path = join(around.state.container(id), 'rootfs');
    if (!permissions.overlay) {
      await copyRoot(imageRoot, join(folder, 'rootfs'));
      return { path };
    }
    for (const name of ['rootfs', 'upper', 'work']) await mkdir(join(folder, name), { mode: 0o755 });
    return { path, overlayLower: imageRoot };
  }

  #matching(filter: ContainerFilter = {}): ProcessContainer[] {
    const { containers, sandboxes } = this.#parts.inventory;
    let candidates: Iterable<ProcessContainer> = containers.values();
    if (filter.id !== undefined) candidates = [containers.get(filter.id)].filter((container) => container !== undefined);
    else if (filter.sandboxId !== undefined) candidates = sandboxes.get(filter.sandboxId)?.containers ?? [];
    return [...candidates].filter((container) => matchesContainer(container.snapshot, filter));
  }

  #sandbox(id: SandboxId): ProcessSandbox {
    const sandbox = this.#parts.inventory.sandboxes.get(id);
    if (sandbox === undefined) throw new RuntimeError('NotFound', `no sandbox "${id}"`);
    return sandbox;
  }

  #container(id: ContainerId): ProcessContainer {
    const container = this.#parts.inventory.containers.get(id);
    if (container === undefined) throw new RuntimeError('NotFound', `no container "${id}"`);
    return container;
  }

  async #running(id: ContainerId): Promise<{ container: ProcessContainer; pid: number }> {
    const container = this.#container(id);
    await container.refresh();
    const { identity, state } = container;
    if (state !== 'running' || identity === undefined)
      throw new RuntimeError('InvalidState', `container "${id}" is ${state}, not running`);
    return { container, pid: identity.pid };
  }
}
