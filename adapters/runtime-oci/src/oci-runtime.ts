import { mkdir, rm } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { collectOutput, type Inventory, MonitoredSandbox, newestFirst, newId } from '@keelson/container-monitor';
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
import { type CreateParts, createContainer } from './container/create-container.ts';
import type { OciContainer } from './container/oci-container.ts';
import { readStats } from './container/read-stats.ts';
import { startProcess } from './exec/oci-process.ts';
import { forwardHere, forwardInside } from './exec/port-forward.ts';
import { attach, execStreams } from './exec/streaming.ts';
import { OciSandbox, type OciSandboxRecord, type SandboxParts } from './sandbox/oci-sandbox.ts';

export interface OciRuntimeParts extends CreateParts {
  readonly sandboxes: SandboxParts;
  readonly inventory: Inventory<OciSandbox, OciContainer>;
  readonly capabilities: RuntimeCapabilities;
  readonly nodeIp: () => string;
}

/** Containers that an OCI binary makes, without a daemon; see the README. */
export class OciRuntime implements ContainerRuntime {
  readonly name = 'oci';
  readonly capabilities: RuntimeCapabilities;
  readonly streaming: RuntimeStreaming;
  readonly #parts: OciRuntimeParts;

  constructor(parts: OciRuntimeParts) {
    this.#parts = parts;
    this.capabilities = parts.capabilities;
    this.streaming = {
      exec: async (id, request) => execStreams(parts.around, await this.#running(id), request),
      attach: async (id, request) => attach(parts.around, await this.#running(id), request),
      portForward: async (id, port) => {
        const { ready, place } = this.#sandbox(id);
        if (!ready) throw new RuntimeError('InvalidState', `sandbox "${id}" is not ready`);
        return place.network === undefined ? forwardHere(port) : forwardInside(place.network, port);
      },
    };
  }

  async version(): Promise<RuntimeVersion> {
    const { name, version } = this.#parts.around.binary.version;
    return { runtimeName: name, runtimeVersion: version, runtimeApiVersion: 'v1' };
  }

  async status(options: CallOptions = {}): Promise<RuntimeStatus> {
    const network = (await this.#parts.sandboxes.network?.status(options)) ?? { ready: true };
    const { ready, ...why } = network;
    return {
      conditions: [
        { type: 'RuntimeReady', status: true },
        { type: 'NetworkReady', status: ready, ...why },
      ],
    };
  }

  async updateConfig(config: { readonly podCidr?: string }): Promise<void> {
    this.#parts.sandboxes.network?.updateConfig(config);
  }

  async runPodSandbox(config: PodSandboxConfig): Promise<SandboxId> {
    const { around, inventory, sandboxes } = this.#parts;
    const { logDirectory } = config;
    if (logDirectory !== undefined && !isAbsolute(logDirectory))
      throw new RuntimeError('InvalidArgument', `log directory is not absolute: "${logDirectory}"`);
    const identity = inventory.claimSandbox(config);
    const podNetwork = sandboxes.network !== undefined;
    const record: OciSandboxRecord = { id: newId(), createdAt: around.clock.now(), config, podNetwork };
    try {
      if (logDirectory !== undefined) await mkdir(logDirectory, { recursive: true, mode: 0o755 });
      await this.#makeSandbox(new OciSandbox(sandboxes, record, true));
      around.events.publish({ type: 'sandboxReady', sandboxId: record.id, at: record.createdAt });
      return record.id;
    } catch (error) {
      inventory.release(identity);
      throw error;
    }
  }

  async #makeSandbox(sandbox: OciSandbox): Promise<void> {
    const { around, inventory } = this.#parts;
    try {
      await MonitoredSandbox.writeStopped(around, sandbox.id);
      await MonitoredSandbox.write(around, sandbox.record);
      await sandbox.prepare();
      await MonitoredSandbox.clearStopped(around, sandbox.id);
    } catch (error) {
      await sandbox.remove();
      throw error;
    }
    inventory.addSandbox(sandbox);
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
    const { inventory, around } = this.#parts;
    const sandbox = this.#sandbox(sandboxId);
    if (!sandbox.ready) throw new RuntimeError('InvalidState', `sandbox "${sandboxId}" is not ready`);
    const identity = inventory.claimContainer(sandboxId, config);
    const id = newId();
    try {
      const container = await createContainer(this.#parts, sandbox, config, id);
      if (!sandbox.ready) {
        await container.remove();
        throw new RuntimeError('InvalidState', `sandbox "${sandboxId}" was stopped meanwhile`);
      }
      inventory.addContainer(sandbox, container);
      const { createdAt } = container.record;
      around.events.publish({ type: 'containerCreated', containerId: id, sandboxId, at: createdAt });
      return id;
    } catch (error) {
      inventory.release(identity);
      await rm(join(around.state.containers, `.new-${id}`), { recursive: true, force: true });
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
    const container = await this.#running(id);
    const { command } = request;
    const process = await startProcess(this.#parts.around, container, {
      command,
      stdin: false,
      stdout: true,
      stderr: true,
      tty: false,
    });
    return collectOutput(process, request, { signal: options.signal, kill: process.kill });
  }

  async listContainerStats(filter?: ContainerFilter): Promise<readonly ContainerStats[]> {
    return readStats(this.#matching(filter), this.#parts.around);
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

  #matching(filter: ContainerFilter = {}): OciContainer[] {
    const { containers, sandboxes } = this.#parts.inventory;
    let candidates: Iterable<OciContainer> = containers.values();
    if (filter.id !== undefined) candidates = [containers.get(filter.id)].filter((container) => container !== undefined);
    else if (filter.sandboxId !== undefined) candidates = sandboxes.get(filter.sandboxId)?.containers ?? [];
    return [...candidates].filter((container) => matchesContainer(container.snapshot, filter));
  }

  #sandbox(id: SandboxId): OciSandbox {
    const sandbox = this.#parts.inventory.sandboxes.get(id);
    if (sandbox === undefined) throw new RuntimeError('NotFound', `no sandbox "${id}"`);
    return sandbox;
  }

  #container(id: ContainerId): OciContainer {
    const container = this.#parts.inventory.containers.get(id);
    if (container === undefined) throw new RuntimeError('NotFound', `no container "${id}"`);
    return container;
  }

  async #running(id: ContainerId): Promise<OciContainer> {
    const container = this.#container(id);
    await container.refresh();
    if (container.state !== 'running')
      throw new RuntimeError('InvalidState', `container "${id}" is ${container.state}, not running`);
    return container;
  }
}
