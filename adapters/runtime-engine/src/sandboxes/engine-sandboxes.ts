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
import type { EngineImages } from '../images/engine-images.ts';
import { cgroupParentOf } from '../model/cgroup-parent.ts';
import { sandboxName } from '../model/names.ts';
import { labelFilter, labelsOf, recordOf, type SandboxRecord } from '../model/records.ts';
import { sandboxBody } from '../model/sandbox-body.ts';
import { sandboxOf, sandboxState } from '../model/status.ts';
import type { Surroundings } from '../surroundings.ts';
import type { SandboxNetwork } from './sandbox-network.ts';

/** Containers may still be made while a sandbox is being removed. */
const removalRounds = 4;

export interface FoundSandbox {
  readonly details: ContainerDetails;
  readonly record: SandboxRecord;
}

export interface SandboxParts {
  readonly around: Surroundings;
  readonly reader: ContainerReader;
  readonly containers: EngineContainers;
  readonly images: EngineImages;
  readonly network: SandboxNetwork;
}

/** Sandboxes: containers that wait, and own the namespaces of a pod. */
export class EngineSandboxes {
  readonly #parts: SandboxParts;
  /** Not ready yet, and not to be seen. */
  readonly #making = new Set<SandboxId>();
  #pulling: Promise<string> | undefined;
  #toldOfSlices = false;

  constructor(parts: SandboxParts) {
    this.#parts = parts;
  }

  async run(config: PodSandboxConfig, signal?: AbortSignal): Promise<SandboxId> {
    const { around, network } = this.#parts;
    const { http, tracker } = around;
    const { logDirectory } = config;
    if (logDirectory !== undefined) {
      if (!isAbsolute(logDirectory))
        throw new RuntimeError('InvalidArgument', `log directory is not absolute: "${logDirectory}"`);
      await mkdir(logDirectory, { recursive: true, mode: 0o755 });
    }
    const id = await this.#create(config, signal);
    this.#making.add(id);
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
      this.#making.delete(id);
    }
  }

  async stop(id: SandboxId, signal?: AbortSignal): Promise<void> {
    const { around, reader, containers, network } = this.#parts;
    const found = await this.#lookFor(id, signal);
    if (found === undefined) return;
    const entries = await reader.entries(id, signal);
    await Promise.all(entries.map(({ Id }) => containers.stop(Id, { gracePeriodMs: 0 }, signal)));
    await network.disconnect(id, found.details.State.Pid, signal);
    await around.http.json('POST', `/containers/${id}/stop`, { query: { t: 0 }, signal }).catch(ignoreGone);
    around.tracker.sandbox(id, 'ended');
  }

  async remove(id: SandboxId, signal?: AbortSignal): Promise<void> {
    const { around, reader, containers, network } = this.#parts;
    const found = await this.#lookFor(id, signal);
    if (found === undefined) return;
    // Not by way of a stop: the engine ends what it removes, with half the work.
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
    around.records.forget(id);
    if (around.tracker.stageOf(id) === 'running') around.tracker.sandbox(id, 'ended');
    around.tracker.sandbox(id, 'removed');
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
        if (record?.kind !== 'sandbox' || this.#making.has(Id)) return [];
        const sandbox = sandboxOf(Id, sandboxState(State), record);
        return matchesSandbox(sandbox, filter) ? [{ sandbox, sequence: record.sequence }] : [];
      })
      .sort((a, b) => b.sandbox.createdAt - a.sandbox.createdAt || b.sequence - a.sequence)
      .map(({ sandbox }) => sandbox);
  }

  /** As the engine lists them. */
  async entries(signal?: AbortSignal): Promise<readonly ContainerEntry[]> {
    const query = { all: true, filters: labelFilter(this.#parts.around.owner, { kind: 'sandbox' }) };
    const { body } = await this.#parts.around.http.json<readonly ContainerEntry[] | undefined>(
      'GET',
      '/containers/json',
      {
        ...{ query, signal },
      },
    );
    return body ?? [];
  }

  /** @throws `NotFound`, also for what is no sandbox */
  async find(id: SandboxId, signal?: AbortSignal): Promise<FoundSandbox> {
    const details = await inspectContainer(this.#parts.around.http, id, signal);
    const record = recordOf(details.Config.Labels);
    if (details.Id !== id || record?.kind !== 'sandbox') throw new RuntimeError('NotFound', `no sandbox "${id}"`);
    return { details, record };
  }

  /** One that containers can be made in. @throws `NotFound`, `InvalidState` */
  async findReady(id: SandboxId, signal?: AbortSignal): Promise<FoundSandbox> {
    const found = await this.find(id, signal);
    if (sandboxState(found.details.State.Status) === 'ready') return found;
    throw new RuntimeError('InvalidState', `sandbox "${id}" is not ready`);
  }

  #cgroupParent({ cgroupParent }: PodSandboxConfig): string | undefined {
    const { link, logger } = this.#parts.around;
    const parent = cgroupParentOf(link.known.info.CgroupDriver, cgroupParent);
    if (cgroupParent !== undefined && parent === undefined && !this.#toldOfSlices) {
      this.#toldOfSlices = true;
      const message =
        'the engine places containers below slices of systemd only; they are where it places them by itself';
      logger.warn(message, { wanted: cgroupParent });
    }
    return parent;
  }

  async #create(config: PodSandboxConfig, signal: AbortSignal | undefined): Promise<SandboxId> {
    const { around, images } = this.#parts;
    const { http, owner, clock, options } = around;
    const pid = options.sharedPid === true ? 'pod' : 'container';
    const namespaces: NamespaceOptions = config.securityContext?.namespaces ?? { network: 'pod', pid, ipc: 'pod' };
    const record: SandboxRecord = {
      ...{ kind: 'sandbox', createdAt: clock.now(), sequence: around.nextSequence(), config, namespaces },
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

  async #lookFor(id: SandboxId, signal: AbortSignal | undefined): Promise<FoundSandbox | undefined> {
    return this.find(id, signal).catch(ignoreGone);
  }
}

function ignoreGone(error: unknown): undefined {
  if (isRuntimeError(error, 'NotFound') || isRuntimeError(error, 'InvalidState')) return undefined;
  throw error;
}
