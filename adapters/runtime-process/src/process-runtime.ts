import { mkdir, writeFile } from 'node:fs/promises';
import { release } from 'node:os';
import { join } from 'node:path';
import { copyRoot, type ImageStore } from '@keelson/container-images';
import {
  attachStreams,
  logPathOf,
  MonitoredRuntime,
  type MonitoredRuntimeParts,
  passable,
  prepareContainer,
  resolveInside,
  type SandboxRecord,
  stagingFolder,
  terminalResizer,
} from '@keelson/container-monitor';
import {
  type CallOptions,
  type ContainerConfig,
  type ContainerFilter,
  type ContainerId,
  type ContainerStats,
  type ExecSyncRequest,
  type ExecSyncResult,
  type PodSandboxConfig,
  RuntimeError,
  type RuntimeStatus,
  type RuntimeStreaming,
  type RuntimeVersion,
  type SandboxId,
} from '@keelson/container-runtime';
import { ProcessContainer, type ProcessContext, ProcessSandbox } from './container/process-container.ts';
import { readStats } from './container/read-stats.ts';
import { runCommand } from './exec/run-command.ts';
import { execStreams, forwardPort } from './exec/streaming.ts';
import { execTerminal } from './exec/terminal.ts';
import { hostImage } from './host-image.ts';
import { makePlan, type PlanInput } from './launch/launch-plan.ts';
import type { Permissions } from './machine/permissions.ts';
import type { LaunchPlan } from './state/records.ts';

const resolvConf = '/etc/resolv.conf';

export interface ProcessRuntimeParts extends MonitoredRuntimeParts<ProcessSandbox, ProcessContainer> {
  readonly around: ProcessContext;
  readonly images: ImageStore;
  readonly permissions: Permissions;
}

/** A runtime whose containers are processes of the machine; see the README for the consequences. */
export class ProcessRuntime extends MonitoredRuntime<ProcessSandbox, ProcessContainer> {
  readonly name = 'process';
  readonly streaming: RuntimeStreaming;
  readonly #parts: ProcessRuntimeParts;

  constructor(parts: ProcessRuntimeParts) {
    super(parts);
    this.#parts = parts;
    this.streaming = {
      exec: async (id, request) => {
        const { container, pid } = await this.running(id);
        return request.tty ? execTerminal(parts, container, pid, request) : execStreams(container, pid, request);
      },
      attach: async (id, request) => {
        const { container } = await this.running(id);
        const streams = await attachStreams(container, parts.around, request);
        if (!container.record.config.tty) return streams;
        return { ...streams, resize: terminalResizer(join(parts.around.state.container(id), 'terminal')) };
      },
      portForward: async (id, port) => {
        this.readySandbox(id);
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

  override async runPodSandbox(config: PodSandboxConfig): Promise<SandboxId> {
    if (Object.keys(config.sysctls ?? {}).length > 0)
      throw new RuntimeError('Unsupported', 'the process runtime cannot set kernel parameters of a pod');
    return super.runPodSandbox(config);
  }

  async execSync(id: ContainerId, request: ExecSyncRequest, options: CallOptions = {}): Promise<ExecSyncResult> {
    const { container, pid } = await this.running(id);
    return runCommand(container.record.plan, pid, request, options.signal);
  }

  async listContainerStats(filter?: ContainerFilter): Promise<readonly ContainerStats[]> {
    const { around } = this.#parts;
    return readStats(this.matching(filter), around.cgroups, around.clock);
  }

  protected async makeSandbox(record: SandboxRecord): Promise<ProcessSandbox> {
    const { around } = this.#parts;
    await ProcessSandbox.write(around, record);
    return new ProcessSandbox(around, record, true);
  }

  protected async makeContainer(
    sandbox: ProcessSandbox,
    config: ContainerConfig,
    id: ContainerId,
  ): Promise<ProcessContainer> {
    const { around, images, permissions } = this.#parts;
    const image = images.find(config.image);
    if (image === undefined) throw new RuntimeError('ImageNotFound', `no image "${config.image}"`);
    const logPath = logPathOf(sandbox.record.config.logDirectory, config.logPath);
    const folder = await stagingFolder(around, id);
    const imageRoot = images.rootOf(image);
    const cgroups = await around.cgroups.create(
      sandbox.record.config.cgroupParent,
      sandbox.id,
      id,
      config.resources ?? {},
    );
    try {
      const root = image === hostImage ? undefined : await this.#makeRoot(folder, id, imageRoot);
      const input = {
        id,
        config,
        sandbox: sandbox.record.config,
        permissions,
        image: image.config,
        imageRoot,
        cgroups,
      };
      const made = await makePlan({ ...input, ...(root && { root }) });
      const plan = permissions.mounts ? await this.#withResolver(made, input, folder) : made;
      const record = {
        ...{ id, sandboxId: sandbox.id, createdAt: around.clock.now(), config, imageId: image.id, plan },
        ...(logPath !== undefined && { logPath }),
      };
      await prepareContainer(around, record, folder);
      return new ProcessContainer(around, record);
    } catch (error) {
      await around.cgroups.remove(cgroups);
      throw error;
    }
  }

  /** Adds the DNS settings of the pod to a launch plan, unless the container mounts its own resolv.conf. */
  async #withResolver(
    plan: LaunchPlan,
    { id, config, sandbox, imageRoot }: PlanInput,
    folder: string,
  ): Promise<LaunchPlan> {
    const { servers = [], searches = [], options = [] } = sandbox.dns ?? {};
    const taken = config.mounts?.some(({ containerPath }) => containerPath === resolvConf) ?? false;
    if (servers.length === 0 || taken) return plan;
    const lines = servers.map((server) => `nameserver ${server}`);
    if (searches.length > 0) lines.push(`search ${searches.join(' ')}`);
    if (options.length > 0) lines.push(`options ${options.join(' ')}`);
    for (const line of lines) passable(line, /[\0\n]/, 'DNS setting');
    await writeFile(join(folder, 'resolv.conf'), `${lines.join('\n')}\n`, { mode: 0o644 });
    const source = join(this.#parts.around.state.container(id), 'resolv.conf');
    const target = imageRoot === '/' ? resolvConf : await resolveInside(imageRoot, resolvConf);
    const mounts = [...plan.mounts, { source, target, readonly: false, file: true, exact: false }];
    return { ...plan, mounts, mountNamespace: true };
  }

  /** Creates the root file system of a container. Returns its path after the staging directory is renamed. */
  async #makeRoot(
    folder: string,
    id: ContainerId,
    imageRoot: string,
  ): Promise<{ path: string; overlayLower?: string }> {
    const { around, permissions } = this.#parts;
    const path = join(around.state.container(id), 'rootfs');
    if (!permissions.overlay) {
      await copyRoot(imageRoot, join(folder, 'rootfs'));
      return { path };
    }
    for (const name of ['rootfs', 'upper', 'work']) await mkdir(join(folder, name), { mode: 0o755 });
    return { path, overlayLower: imageRoot };
  }
}
