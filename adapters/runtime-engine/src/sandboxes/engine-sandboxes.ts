import { mkdir } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import {
  isRuntimeError,
  matchesSandbox,
  type NamespaceOptions,
  type PodSandbox,
  type PodSandboxConfig,
  type PodSandboxStatus,
  RuntimeError,
  type SandboxFilter,
  type SandboxId,
} from '@keelson/container-runtime';
import type { ContainerDetails, ContainerEntry } from '../api/documents.ts';
import { inspectContainer } from '../api/inspect-container.ts';
import type { ContainerReader } from '../containers/container-reader.ts';
import type { EngineContainers } from '../containers/engine-containers.ts';
import type { EngineContext } from '../containers/engine-context.ts';
import type { EngineImages } from '../images/engine-images.ts';
import { cgroupParentOf } from '../model/cgroup-parent.ts';
import { sandboxName } from '../model/names.ts';
import { labelFilter, labelsOf, recordOf, type SandboxRecord } from '../model/records.ts';
import { sandboxBody } from '../model/sandbox-body.ts';
import { sandboxOf, sandboxState } from '../model/status.ts';
import type { SandboxNetwork } from './sandbox-network.ts';

/** Attempts of a removal, because containers may be created while their sandbox is being removed. */
const removalRounds = 4;

export interface FoundSandbox {
  readonly details: ContainerDetails;
  readonly record: SandboxRecord;
}

export interface SandboxParts {
  readonly context: EngineContext;
  readonly reader: ContainerReader;
  readonly containers: EngineContainers;
  readonly images: EngineImages;
  readonly network: SandboxNetwork;
}

/** Manages sandboxes: waiting containers that own the namespaces of a pod. */
export class EngineSandboxes {
  readonly #parts: SandboxParts;
  /** Sandboxes that are not ready yet; lists omit them. */
  readonly #creating = new Set<SandboxId>();
  #pulling: Promise<string> | undefined;
  #warnedAboutSlices = false;

  constructor(parts: SandboxParts) {
    this.#parts = parts;
  }

  async run(config: PodSandboxConfig, signal?: AbortSignal): Promise<SandboxId> {
    const { context, network } = this.#parts;
    const { http, tracker } = context;
    const { logDirectory } = config;
    if (logDirectory !== undefined) {
      if (!isAbsolute(logDirectory))
        throw new RuntimeError('InvalidArgument', `log directory is not absolute: "${logDirectory}"`);
      await mkdir(logDirectory, { recursive: true, mode: 0o755 });
    }
    const id = await this.#create(config, signal);
    this.#creating.add(id);
    try {
      await http.json('POST', `/containers/${id}/start`, { signal });
      await network.connect((await this.find(id, signal)).details, config, signal);
      tracker.sandbox(id, 'running');
      return id;
    } catch (error) {
      await network.disconnect(id, 0).catch(() => {});
      await this.#parts.containers.delete(id).catch(() => {});
      throw error;
    } finally {
      this.#creating.delete(id);
    }
  }

  async stop(id: SandboxId, signal?: AbortSignal): Promise<void> {
    const { context, reader, containers, network } = this.#parts;
    const found = await this.#findIfPresent(id, signal);
    if (found === undefined) return;
    const entries = await reader.entries(id, signal);
    await Promise.all(entries.map(({ Id }) => containers.stop(Id, { gracePeriodMs: 0 }, signal)));
    await network.disconnect(id, found.details.State.Pid, signal);
    await context.http.json('POST', `/containers/${id}/stop`, { query: { t: 0 }, signal }).catch(ignoreGone);
    context.tracker.sandbox(id, 'ended');
  }

  async remove(id: SandboxId, signal?: AbortSignal): Promise<void> {
    const { context, reader, containers, network } = this.#parts;
    const found = await this.#findIfPresent(id, signal);
    if (found === undefined) return;
    // The containers are not stopped first: the engine kills the containers that it removes, which is faster.
    await network.disconnect(id, found.details.State.Pid, signal);
    for (let round = 1; ; round += 1) {
      const entries = await reader.entries(id, signal);
      await Promise.all(entries.map(({ Id }) => containers.remove(Id, signal)));
      try {
        await containers.delete(id, signal);
        break;
      } catch (error) {
        if (round === removalRounds || !isRuntimeError(error)) throw error;
        if ((await reader.entries(id, signal)).length === 0) throw error;
      }
    }
    context.records.forget(id);
    if (context.tracker.stageOf(id) === 'running') context.tracker.sandbox(id, 'ended');
    context.tracker.sandbox(id, 'removed');
  }

  async status(id: SandboxId, signal?: AbortSignal): Promise<PodSandboxStatus> {
    const { details, record } = await this.find(id, signal);
    const state = sandboxState(details.State.Status);
    return {
      ...sandboxOf(id, state, record),
      ips: state === 'ready' ? this.#parts.network.ipsOf(details, record) : [],
      namespaces: record.namespaces,
    };
  }

  async list(filter?: SandboxFilter, signal?: AbortSignal): Promise<PodSandbox[]> {
    return (await this.entries(signal))
      .flatMap(({ Id, State, Labels }) => {
        const record = recordOf(Labels);
        if (record?.kind !== 'sandbox' || this.#creating.has(Id)) return [];
        const sandbox = sandboxOf(Id, sandboxState(State), record);
        return matchesSandbox(sandbox, filter) ? [{ sandbox, sequence: record.sequence }] : [];
      })
      .sort((a, b) => b.sandbox.createdAt - a.sandbox.createdAt || b.sequence - a.sequence)
      .map(({ sandbox }) => sandbox);
  }

  /** Lists the sandboxes of this owner in the form of the engine's API. */
  async entries(signal?: AbortSignal): Promise<readonly ContainerEntry[]> {
    const query = { all: true, filters: labelFilter(this.#parts.context.owner, { kind: 'sandbox' }) };
    const { body } = await this.#parts.context.http.json<readonly ContainerEntry[] | undefined>(
      'GET',
      '/containers/json',
      {
        ...{ query, signal },
      },
    );
    return body ?? [];
  }

  /** @throws `NotFound`, also for the id of a container */
  async find(id: SandboxId, signal?: AbortSignal): Promise<FoundSandbox> {
    const details = await inspectContainer(this.#parts.context.http, id, signal);
    const record = recordOf(details.Config.Labels);
    if (details.Id !== id || record?.kind !== 'sandbox') throw new RuntimeError('NotFound', `no sandbox "${id}"`);
    return { details, record };
  }

  /** A sandbox in which containers can be created. @throws `NotFound`, `InvalidState` */
  async findReady(id: SandboxId, signal?: AbortSignal): Promise<FoundSandbox> {
    const found = await this.find(id, signal);
    if (sandboxState(found.details.State.Status) === 'ready') return found;
    throw new RuntimeError('InvalidState', `sandbox "${id}" is not ready`);
  }

  #cgroupParent({ cgroupParent }: PodSandboxConfig): string | undefined {
    const { link, logger } = this.#parts.context;
    const parent = cgroupParentOf(link.engine.info.CgroupDriver, cgroupParent);
    if (cgroupParent !== undefined && parent === undefined && !this.#warnedAboutSlices) {
      this.#warnedAboutSlices = true;
      const message =
        'the container engine accepts only systemd slices as cgroup parents; it selects the cgroups of this pod itself';
      logger.warn(message, { cgroupParent });
    }
    return parent;
  }

  async #create(config: PodSandboxConfig, signal: AbortSignal | undefined): Promise<SandboxId> {
    const { context, images } = this.#parts;
    const { http, owner, clock, options } = context;
    const pid = options.sharedPid === true ? 'pod' : 'container';
    const namespaces: NamespaceOptions = config.securityContext?.namespaces ?? { network: 'pod', pid, ipc: 'pod' };
    const record: SandboxRecord = {
      ...{ kind: 'sandbox', createdAt: clock.now(), sequence: context.nextSequence(), config, namespaces },
    };
    const body = sandboxBody({
      ...{ image: options.infraImage, config, namespaces, labels: labelsOf(owner, record) },
      noNetwork: options.network !== undefined,
      cgroupParent: this.#cgroupParent(config),
    });
    const query = { name: sandboxName(owner, config.metadata) };
    const create = () => http.json<{ Id: string }>('POST', '/containers/create', { query, body, signal });
    try {
      return (await create()).body.Id;
    } catch (error) {
      if (!isRuntimeError(error, 'ImageNotFound')) throw error;
      this.#pulling ??= images.pullImage(options.infraImage).finally(() => {
        this.#pulling = undefined;
      });
      await this.#pulling;
      return (await create()).body.Id;
    }
  }

  async #findIfPresent(id: SandboxId, signal: AbortSignal | undefined): Promise<FoundSandbox | undefined> {
    return this.find(id, signal).catch(ignoreGone);
  }
}

function ignoreGone(error: unknown): undefined {
  if (isRuntimeError(error, 'NotFound') || isRuntimeError(error, 'InvalidState')) return undefined;
  throw error;
}
