import { type CgroupFolders, cgroupFoldersOf, readCgroupUsage } from '@keelson/container-host';
import type { Container, ContainerFilter, ContainerId, ContainerStats } from '@keelson/container-runtime';
import type { ContainerReader } from '../containers/container-reader.ts';
import type { EngineContext } from '../containers/engine-context.ts';

const defaultMountpoint = '/sys/fs/cgroup';

/**
 * Reads statistics of running containers from their cgroups. The statistics call of the engine takes a second per
 * container, and that of Podman lacks several values.
 */
export class StatsReader {
  readonly #context: EngineContext;
  readonly #reader: ContainerReader;
  readonly #folders = new Map<ContainerId, CgroupFolders>();

  constructor(context: EngineContext, reader: ContainerReader) {
    this.#context = context;
    this.#reader = reader;
  }

  async list(filter: ContainerFilter = {}, signal?: AbortSignal): Promise<ContainerStats[]> {
    const running = (await this.#reader.list(filter, signal)).filter(({ state }) => state === 'running');
    const ids = new Set(running.map(({ id }) => id));
    if (Object.keys(filter).length === 0)
      for (const id of this.#folders.keys()) if (!ids.has(id)) this.#folders.delete(id);
    const all = await Promise.all(running.map((container) => this.#read(container, signal)));
    return all.filter((stats) => stats !== undefined);
  }

  async #read(container: Container, signal: AbortSignal | undefined): Promise<ContainerStats | undefined> {
    const { id, sandboxId, metadata, labels, annotations } = container;
    const folders = this.#folders.get(id) ?? (await this.#find(id, signal));
    if (folders === undefined) return undefined;
    return {
      id,
      sandboxId,
      metadata,
      labels,
      annotations,
      timestamp: this.#context.clock.now(),
      ...(await readCgroupUsage(folders)),
    };
  }

  /** Finds the cgroups of a container; undefined when the container has ended. */
  async #find(id: ContainerId, signal: AbortSignal | undefined): Promise<CgroupFolders | undefined> {
    const pid = (await this.#reader.findIfPresent(id, signal))?.details.State.Pid ?? 0;
    if (pid === 0) return undefined;
    const mountpoint = this.#context.options.cgroupMountpoint ?? defaultMountpoint;
    const folders = await cgroupFoldersOf(pid, mountpoint).catch(() => undefined);
    if (folders !== undefined) this.#folders.set(id, folders);
    return folders;
  }
}
