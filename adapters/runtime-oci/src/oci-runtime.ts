import {
  collectOutput,
  MonitoredRuntime,
  type MonitoredRuntimeParts,
  MonitoredSandbox,
  type SandboxRecord,
} from '@keelson/container-monitor';
import type {
  CallOptions,
  ContainerConfig,
  ContainerFilter,
  ContainerId,
  ContainerStats,
  ExecSyncRequest,
  ExecSyncResult,
  RuntimeStatus,
  RuntimeStreaming,
  RuntimeVersion,
} from '@keelson/container-runtime';
import type { OciContainer } from './container/oci-container.ts';
import { readStats } from './container/read-stats.ts';
import { startProcess } from './exec/oci-process.ts';
import { forwardHere, forwardInside } from './exec/port-forward.ts';
import { attach, execStreams } from './exec/streaming.ts';
import { type CreateParts, createContainer } from './sandbox/create-container.ts';
import { OciSandbox, type SandboxParts } from './sandbox/oci-sandbox.ts';

export interface OciRuntimeParts extends MonitoredRuntimeParts<OciSandbox, OciContainer>, CreateParts {
  readonly around: CreateParts['around'];
  readonly sandboxes: SandboxParts;
}

/** A runtime whose containers are created by an OCI binary, without a daemon; see the README. */
export class OciRuntime extends MonitoredRuntime<OciSandbox, OciContainer> {
  readonly name = 'oci';
  readonly streaming: RuntimeStreaming;
  readonly #parts: OciRuntimeParts;

  constructor(parts: OciRuntimeParts) {
    super(parts);
    this.#parts = parts;
    this.streaming = {
      exec: async (id, request) => execStreams(parts.around, (await this.running(id)).container, request),
      attach: async (id, request) => attach(parts.around, (await this.running(id)).container, request),
      portForward: async (id, port) => {
        const { network } = this.readySandbox(id).place;
        return network === undefined ? forwardHere(port) : forwardInside(network, port);
      },
    };
  }

  async version(): Promise<RuntimeVersion> {
    const { name, version } = this.#parts.around.binary.version;
    return { runtimeName: name, runtimeVersion: version, runtimeApiVersion: 'v1' };
  }

  async status(options: CallOptions = {}): Promise<RuntimeStatus> {
    const network = (await this.#parts.sandboxes.network?.status(options)) ?? { ready: true };
    const { ready, ...details } = network;
    return {
      conditions: [
        { type: 'RuntimeReady', status: true },
        { type: 'NetworkReady', status: ready, ...details },
      ],
    };
  }

  async updateConfig(config: { readonly podCidr?: string }): Promise<void> {
    this.#parts.sandboxes.network?.updateConfig(config);
  }

  async execSync(id: ContainerId, request: ExecSyncRequest, options: CallOptions = {}): Promise<ExecSyncResult> {
    const { container } = await this.running(id);
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
    return readStats(this.matching(filter), this.#parts.around);
  }

  protected async makeSandbox(record: SandboxRecord): Promise<OciSandbox> {
    const { around, sandboxes } = this.#parts;
    const sandbox = new OciSandbox(sandboxes, { ...record, podNetwork: sandboxes.network !== undefined }, true);
    try {
      await MonitoredSandbox.writeStopped(around, sandbox.id);
      await MonitoredSandbox.write(around, sandbox.record);
      await sandbox.prepare();
      await MonitoredSandbox.clearStopped(around, sandbox.id);
    } catch (error) {
      await sandbox.remove();
      throw error;
    }
    return sandbox;
  }

  protected makeContainer(sandbox: OciSandbox, config: ContainerConfig, id: ContainerId): Promise<OciContainer> {
    return createContainer(this.#parts, sandbox, config, id);
  }
}
