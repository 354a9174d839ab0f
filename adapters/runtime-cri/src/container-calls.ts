import { mkdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { killedForMemory } from '@keelson/container-host';
import {
  type Container,
  type ContainerConfig,
  type ContainerFilter,
  type ContainerId,
  type ContainerStats,
  type ContainerStatus,
  ExitReason,
  isRuntimeError,
  type LinuxResources,
  matchesContainer,
  RuntimeError,
  type SandboxId,
  type StopRequest,
  toRuntimeError,
} from '@keelson/container-runtime';
import type { Clock } from '@keelson/core/runtime';
import { Calls } from './api/calls.ts';
import { ContainerMessage, ContainerStateNumber, ListContainersRequest } from './api/container.ts';
import { sendConfiguredStopSignal } from './configured-stop-signal.ts';
import { type CriConnection, withCode } from './connection/cri-connection.ts';
import { fromContainer, fromContainerStatus, fromStats } from './convert/from-cri.ts';
import { namespacesOf, type SandboxMessage, toContainerMessage, toResources } from './convert/to-cri.ts';
import type { ImageCalls } from './image-calls.ts';
import { ListCache } from './list-cache.ts';
import type { Machine } from './machine.ts';
import { pause } from './pause.ts';
import { ignoreNotFound, removeWithRetries } from './removal.ts';
import type { SandboxCalls } from './sandbox-calls.ts';

const containerStateField = 6;
const pollIntervalMs = 50;
const killedExitCode = 137;
/** Containers whose entries in the kernel log are remembered, so that the log is read once for each. */
const rememberedKills = 1024;

/** The methods of the runtime for containers. */
export class ContainerCalls {
  readonly #connection: CriConnection;
  readonly #sandboxes: SandboxCalls;
  readonly #images: Pick<ImageCalls, 'imageStatus'>;
  readonly #machine: Machine;
  readonly #clock: Clock;
  /** Killed containers: whether the kernel log reports that memory was the reason. */
  readonly #kills = new Map<ContainerId, boolean>();
  readonly #lists = new ListCache(containerStateField, (bytes) => fromContainer(ContainerMessage.decode(bytes)));

  constructor(
    connection: CriConnection,
    sandboxes: SandboxCalls,
    images: Pick<ImageCalls, 'imageStatus'>,
    machine: Machine,
    clock: Clock,
  ) {
    this.#images = images;
    this.#connection = connection;
    this.#sandboxes = sandboxes;
    this.#machine = machine;
    this.#clock = clock;
  }

  async create(podSandboxId: SandboxId, config: ContainerConfig, signal?: AbortSignal): Promise<ContainerId> {
    const sandboxConfig = await this.#sandboxes.configOf(podSandboxId, signal);
    const { unifiedCgroups } = this.#machine;
    const message = toContainerMessage(await this.#withUser(config, signal), {
      namespaces: namespacesOf(sandboxConfig),
      unifiedCgroups,
    });
    if (this.#machine.local) await prepareFiles(config, sandboxConfig);
    try {
      const request = { podSandboxId, config: message, sandboxConfig };
      const { containerId = '' } = await this.#connection.call(Calls.createContainer, request, signal);
      return containerId;
    } catch (error) {
      throw await this.#creationError(toRuntimeError(error), podSandboxId, config, signal);
    }
  }

  /** Adds the user of the image, or root, to a group without a user, which the protocol forbids. */
  async #withUser(config: ContainerConfig, signal: AbortSignal | undefined): Promise<ContainerConfig> {
    const { securityContext: context = {} } = config;
    if (context.runAsGroup === undefined || context.runAsUser !== undefined || context.runAsUsername !== undefined)
      return config;
    const image = await this.#images.imageStatus(config.image, signal && { signal });
    const user = image?.username ? { runAsUsername: image.username } : { runAsUser: image?.uid ?? 0 };
    return { ...config, securityContext: { ...context, ...user } };
  }

  async start(containerId: ContainerId, signal?: AbortSignal): Promise<void> {
    try {
      await this.#connection.call(Calls.startContainer, { containerId }, signal);
    } catch (error) {
      if (!isRuntimeError(error, 'Internal') && !isRuntimeError(error, 'NotFound')) throw error;
      const { state } = await this.status(containerId, signal);
      throw withCode(error, state === 'exited' ? 'StartFailed' : error.code === 'NotFound' ? 'Internal' : error.code);
    }
  }

  async stop(containerId: ContainerId, { gracePeriodMs }: StopRequest, signal?: AbortSignal): Promise<void> {
    // CRI counts in seconds, so the grace period is rounded up.
    const timeout = Math.ceil(gracePeriodMs / 1000);
    const signalled =
      timeout > 0 && this.#machine.local && (await this.#signalAndWait(containerId, gracePeriodMs, signal));
    await ignoreNotFound(
      this.#connection.call(Calls.stopContainer, { containerId, timeout: signalled ? 0 : timeout }, signal),
    );
  }

  async remove(containerId: ContainerId, signal?: AbortSignal): Promise<void> {
    await removeWithRetries(
      this.#clock,
      () => this.#connection.call(Calls.removeContainer, { containerId }, signal),
      signal,
    );
  }

  async list(filter: ContainerFilter = {}, signal?: AbortSignal): Promise<readonly Container[]> {
    const { id, state, sandboxId, labels } = filter;
    const all = id === undefined && state === undefined && sandboxId === undefined && labels === undefined;
    const request = ListContainersRequest.encode({
      filter: all
        ? undefined
        : {
            id,
            podSandboxId: sandboxId,
            labelSelector: labels,
            state: state && { state: ContainerStateNumber[state] },
          },
    });
    const items = this.#lists.read(
      request,
      await this.#connection.raw('RuntimeService', 'ListContainers', request, signal),
    );
    return all ? items : items.filter((container) => matchesContainer(container, filter));
  }

  async status(containerId: ContainerId, signal?: AbortSignal): Promise<ContainerStatus> {
    const { status = {}, info } = await this.#connection.call(
      Calls.containerStatus,
      { containerId, verbose: true },
      signal,
    );
    const { sandboxId, ...container } = fromContainerStatus(status, info);
    return {
      ...container,
      ...(this.#ranOutOfMemory(container) && { reason: ExitReason.OutOfMemory }),
      sandboxId: sandboxId ?? (await this.list({ id: containerId }, signal))[0]?.sandboxId ?? '',
    };
  }

  /**
   * Whether a container that the daemon reports as killed for another reason has exceeded its memory limit. containerd
   * loses the event of the kernel when the container ends first (https://github.com/containerd/containerd/issues/8893).
   */
  #ranOutOfMemory({ id, exitCode, reason }: Pick<ContainerStatus, 'id' | 'exitCode' | 'reason'>): boolean {
    if (!this.#machine.local || exitCode !== killedExitCode || reason !== ExitReason.Error) return false;
    const known = this.#kills.get(id);
    if (known !== undefined) return known;
    const found = killedForMemory(id);
    const [oldest] = this.#kills.keys();
    if (oldest !== undefined && this.#kills.size >= rememberedKills) this.#kills.delete(oldest);
    this.#kills.set(id, found);
    return found;
  }

  async updateResources(containerId: ContainerId, resources: LinuxResources, signal?: AbortSignal): Promise<void> {
    // Daemons accept the update of an exited container, although it has no effect.
    const [container] = await this.list({ id: containerId }, signal);
    if (container?.state === 'exited') throw new RuntimeError('InvalidState', `container ${containerId} has ended`);
    const linux = toResources(resources, this.#machine.unifiedCgroups);
    await this.#requiringRunning(
      containerId,
      this.#connection.call(Calls.updateContainerResources, { containerId, linux }, signal),
      signal,
    );
  }

  async reopenLog(containerId: ContainerId, signal?: AbortSignal): Promise<void> {
    await this.#requiringRunning(
      containerId,
      this.#connection.call(Calls.reopenContainerLog, { containerId }, signal),
      signal,
    );
  }

  async stats(filter: ContainerFilter = {}, signal?: AbortSignal): Promise<readonly ContainerStats[]> {
    const { id, sandboxId, labels } = filter;
    const request = { filter: { id, podSandboxId: sandboxId, labelSelector: labels } };
    const [{ stats = [] }, running] = await Promise.all([
      this.#connection.call(Calls.listContainerStats, request, signal),
      this.list({ ...filter, state: filter.state ?? 'running' }, signal),
    ]);
    const containers = new Map(running.map((container) => [container.id, container]));
    return stats.flatMap((message) => {
      const container = containers.get(message.attributes?.id ?? '');
      return container === undefined || container.state !== 'running'
        ? []
        : (fromStats(message, container.sandboxId) ?? []);
    });
  }

  /**
   * Sends the configured stop signal, if any, and waits for the exit of the container or the end of the grace period.
   *
   * @returns whether a signal was sent
   */
  async #signalAndWait(containerId: ContainerId, gracePeriodMs: number, signal?: AbortSignal): Promise<boolean> {
    if (!(await sendConfiguredStopSignal(this.#connection, containerId, signal))) return false;
    const begin = this.#clock.monotonic();
    while (this.#clock.monotonic() - begin < gracePeriodMs) {
      await pause(this.#clock, Math.min(pollIntervalMs, gracePeriodMs), signal);
      const [container] = await this.list({ id: containerId }, signal);
      if (container?.state !== 'running') break;
    }
    return true;
  }

  /** Changes the error of a call that requires a running container to `InvalidState` if the container does not run. */
  async #requiringRunning(containerId: ContainerId, call: Promise<unknown>, signal?: AbortSignal): Promise<void> {
    try {
      await call;
    } catch (error) {
      if (!isRuntimeError(error, 'Internal')) throw error;
      const { state } = await this.status(containerId, signal);
      throw state === 'running' ? error : withCode(error, 'InvalidState');
    }
  }

  /** Determines the error code of a rejected creation from the state of the sandbox and the image. */
  async #creationError(
    error: RuntimeError,
    podSandboxId: SandboxId,
    config: ContainerConfig,
    signal?: AbortSignal,
  ): Promise<RuntimeError> {
    if (error.code !== 'NotFound' && error.code !== 'Internal') return error;
    const { state } = await this.#sandboxes.status(podSandboxId, signal);
    if (state === 'notReady') return withCode(error, 'InvalidState');
    const { image } = await this.#connection.call(Calls.imageStatus, { image: { image: config.image } }, signal);
    return image === undefined ? withCode(error, 'ImageNotFound') : withCode(error, 'Internal');
  }
}

/**
 * Rejects missing mount sources, which daemons would create, and creates the folder of the log, which daemons do not
 * create.
 */
async function prepareFiles(config: ContainerConfig, sandbox: SandboxMessage): Promise<void> {
  for (const { hostPath } of config.mounts ?? []) {
    await stat(hostPath).catch((cause: unknown) => {
      throw new RuntimeError('InvalidArgument', `the source of a mount does not exist: ${hostPath}`, { cause });
    });
  }
  if (sandbox.logDirectory && config.logPath)
    await mkdir(dirname(join(sandbox.logDirectory, config.logPath)), { recursive: true });
}
