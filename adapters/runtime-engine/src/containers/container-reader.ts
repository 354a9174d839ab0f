import { killedForMemory } from '@keelson/container-host';
import {
  type Container,
  type ContainerFilter,
  type ContainerId,
  type ContainerState,
  type ContainerStatus,
  isRuntimeError,
  matchesContainer,
  RuntimeError,
  type SandboxId,
} from '@keelson/container-runtime';
import type { ContainerDetails, ContainerEntry } from '../api/documents.ts';
import { inspectContainer } from '../api/inspect-container.ts';
import { type ContainerRecord, labelFilter, recordOf } from '../model/records.ts';
import { containerOf, stateOf, statusOf } from '../model/status.ts';
import type { EngineContext } from './engine-context.ts';
import { killAll, processesOf } from './processes.ts';

/** After this time a `stopped` container is exited: a Podman killed during its cleanup never reports `exited`. */
const cleanUpMs = 10_000;

export interface FoundContainer {
  readonly details: ContainerDetails;
  readonly record: ContainerRecord;
  readonly state: ContainerState;
}

/** Reads containers from the engine. Before an exit is reported, the log is complete and the reason is determined. */
export class ContainerReader {
  readonly #context: EngineContext;
  /** Exited containers whose log is complete and whose exit was published. */
  readonly #settled = new Set<ContainerId>();

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** @throws `NotFound`, also for containers of other programs */
  async find(id: ContainerId, signal?: AbortSignal): Promise<FoundContainer> {
    const details = await inspectContainer(this.#context.http, id, signal);
    const record = recordOf(details.Config.Labels);
    if (details.Id !== id || record?.kind !== 'container') throw new RuntimeError('NotFound', `no container "${id}"`);
    return { details, record, state: this.#settle(details, record) };
  }

  /** Finds a container by its id; undefined when it does not exist. */
  async findIfPresent(id: ContainerId, signal?: AbortSignal): Promise<FoundContainer | undefined> {
    return this.find(id, signal).catch((error: unknown) => {
      if (isRuntimeError(error, 'NotFound')) return undefined;
      throw error;
    });
  }

  async status(id: ContainerId, signal?: AbortSignal): Promise<ContainerStatus> {
    const { details, record, state } = await this.find(id, signal);
    return statusOf(details, record, this.#context.records.get(id), state);
  }

  async list(filter: ContainerFilter = {}, signal?: AbortSignal): Promise<Container[]> {
    const entries = await this.entries(filter.sandboxId, signal);
    const found = await Promise.all(entries.map((entry) => this.#fromEntry(entry, signal)));
    return found
      .flatMap((item) => (item !== undefined && matchesContainer(item.container, filter) ? [item] : []))
      .sort((a, b) => b.container.createdAt - a.container.createdAt || b.sequence - a.sequence)
      .map(({ container }) => container);
  }

  /** Lists the containers of this owner, or those of one of its sandboxes, in the form of the engine's API. */
  async entries(sandboxId?: SandboxId, signal?: AbortSignal): Promise<readonly ContainerEntry[]> {
    const filters = labelFilter(this.#context.owner, {
      kind: 'container',
      ...(sandboxId !== undefined && { sandboxId }),
    });
    const query = { all: true, filters };
    const { body } = await this.#context.http.json<readonly ContainerEntry[] | undefined>('GET', '/containers/json', {
      query,
      signal,
    });
    return body ?? [];
  }

  forget(id: ContainerId): void {
    this.#settled.delete(id);
  }

  async #fromEntry(entry: ContainerEntry, signal: AbortSignal | undefined) {
    const record = recordOf(entry.Labels);
    if (record?.kind !== 'container') return undefined;
    let state = stateOf(entry.State, this.#context.records.get(entry.Id));
    if (state === 'exited' && !this.#settled.has(entry.Id)) {
      const found = await this.findIfPresent(entry.Id, signal);
      if (found === undefined) return undefined;
      state = found.state;
    }
    return { container: containerOf(entry.Id, imageIdOf(entry.ImageID), state, record), sequence: record.sequence };
  }

  #settle(details: ContainerDetails, record: ContainerRecord): ContainerState {
    const { records, logs, tracker, clock } = this.#context;
    const { Id: id, State, LogPath = '' } = details;
    if (
      State.Status === 'created' &&
      State.Error !== undefined &&
      State.Error !== '' &&
      records.get(id).startError === undefined
    )
      records.change(id, { startError: { message: State.Error, at: clock.now() } });
    const kept = records.get(id);
    let state = stateOf(State.Status, kept);
    if (State.Status === 'stopped') {
      // Podman reports the exit only after the child processes have ended. In a PID namespace that the pod shares, they
      // would keep running, so they are killed here.
      killAll(processesOf(id));
      if (clock.now() - Date.parse(State.FinishedAt) > cleanUpMs) state = 'exited';
    }
    if (state === 'running' && record.logPath !== undefined && LogPath !== '') logs.follow(id, LogPath, record.logPath);
    if (state !== 'exited' || this.#settled.has(id)) return state;
    this.#settled.add(id);
    if (kept.startError === undefined) {
      if (record.logPath !== undefined && LogPath !== '') logs.finish(id, LogPath, record.logPath);
      const limited = (kept.resources?.memoryLimitBytes ?? record.config.resources?.memoryLimitBytes ?? 0) > 0;
      if (limited && State.ExitCode !== 0 && !State.OOMKilled && kept.outOfMemory === undefined)
        records.change(id, { outOfMemory: killedForMemory(id) });
    }
    tracker.container(id, record.sandboxId, 'ended');
    return state;
  }
}

function imageIdOf(id: string): string {
  return id.startsWith('sha256:') ? id : `sha256:${id}`;
}
