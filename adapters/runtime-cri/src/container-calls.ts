import { mkdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  type Container,
  type ContainerConfig,
  type ContainerFilter,
  type ContainerId,
  type ContainerStats,
  type ContainerStatus,
  isRuntimeError,
  type LinuxResources,
  matchesContainer,
  RuntimeError,
  type SandboxId,
  type StopRequest,
  toRuntimeError,
} from '@keelson/container-runtime';
import type { Clock } from '@keelson/core';
import { Calls } from './api/calls.ts';
import { ContainerMessage, ContainerStateNumber, ListContainersRequest } from './api/container.ts';
import { type CriConnection, withCode } from './connection/cri-connection.ts';
import { fromContainer, fromContainerStatus, fromStats } from './convert/from-cri.ts';
import { namespacesOf, type SandboxMessage, toContainerMessage, toResources } from './convert/to-cri.ts';
import type { ImageCalls } from './image-calls.ts';
import { ListCache } from './list-cache.ts';
import type { Machine } from './machine.ts';
import { sendOwnStopSignal } from './own-stop-signal.ts';
import { pause } from './pause.ts';
import { removed, unlessGone } from './removed.ts';
import type { SandboxCalls } from './sandbox-calls.ts';

const containerStateField = 6;
const lookAgainMs = 50;

/** The part of the contract that is about containers. */
export class ContainerCalls {
  readonly #connection: CriConnection;
  readonly #sandboxes: SandboxCalls;
  readonly #images: Pick<ImageCalls, 'imageStatus'>;
  readonly #machine: Machine;
  readonly #clock: Clock;
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
      throw await this.#whyNotCreated(toRuntimeError(error), podSandboxId, config, signal);
    }
  }

  /** The protocol forbids a group without a user: the user is then that of the image, or root. */
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
    // CRI counts seconds; who asks for less gets no less.
    const timeout = Math.ceil(gracePeriodMs / 1000);
    const signalled =
      timeout > 0 && this.#machine.local && (await this.#signalOfItsOwn(containerId, gracePeriodMs, signal));
    await unlessGone(
      this.#connection.call(Calls.stopContainer, { containerId, timeout: signalled ? 0 : timeout }, signal),
    );
  }

  async remove(containerId: ContainerId, signal?: AbortSignal): Promise<void> {
    await removed(this.#clock, () => this.#connection.call(Calls.removeContainer, { containerId }, signal), signal);
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
    return { ...container, sandboxId: sandboxId ?? (await this.list({ id: containerId }, signal))[0]?.sandboxId ?? '' };
  }

  async updateResources(containerId: ContainerId, resources: LinuxResources, signal?: AbortSignal): Promise<void> {
    // Daemons change the records of a container that has ended, to no effect.
    const [container] = await this.list({ id: containerId }, signal);
    if (container?.state === 'exited') throw new RuntimeError('InvalidState', `container ${containerId} has ended`);
    const linux = toResources(resources, this.#machine.unifiedCgroups);
    await this.#ofRunning(
      containerId,
      this.#connection.call(Calls.updateContainerResources, { containerId, linux }, signal),
      signal,
    );
  }

  async reopenLog(containerId: ContainerId, signal?: AbortSignal): Promise<void> {
    await this.#ofRunning(
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
   * Sends the signal of the configuration, if there is one; true when it was sent and the grace period is over or the
   * container ended.
   */
  async #signalOfItsOwn(containerId: ContainerId, gracePeriodMs: number, signal?: AbortSignal): Promise<boolean> {
    if (!(await sendOwnStopSignal(this.#connection, containerId, signal))) return false;
    const begin = this.#clock.monotonic();
    while (this.#clock.monotonic() - begin < gracePeriodMs) {
      await pause(this.#clock, Math.min(lookAgainMs, gracePeriodMs), signal);
      const [container] = await this.list({ id: containerId }, signal);
      if (container?.state !== 'running') break;
    }
    return true;
  }

  /** Why a call to a container that must run was refused: `InvalidState` when it does not run. */
  async #ofRunning(containerId: ContainerId, call: Promise<unknown>, signal?: AbortSignal): Promise<void> {
    try {
      await call;
    } catch (error) {
      if (!isRuntimeError(error, 'Internal')) throw error;
      const { state } = await this.status(containerId, signal);
      throw state === 'running' ? error : withCode(error, 'InvalidState');
    }
  }

  async #whyNotCreated(
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

/** Daemons make what is missing below a mount, and do not make folders of log files. */
async function prepareFiles(config: ContainerConfig, sandbox: SandboxMessage): Promise<void> {
  for (const { hostPath } of config.mounts ?? []) {
    await stat(hostPath).catch((cause: unknown) => {
      throw new RuntimeError('InvalidArgument', `the source of a mount is not there: ${hostPath}`, { cause });
    });
  }
  if (sandbox.logDirectory && config.logPath)
    await mkdir(dirname(join(sandbox.logDirectory, config.logPath)), { recursive: true });
}
