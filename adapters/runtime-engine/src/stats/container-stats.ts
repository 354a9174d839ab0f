import type { Container, ContainerFilter, ContainerId, ContainerStats } from '@keelson/container-runtime';
import type { ContainerReader } from '../containers/container-reader.ts';
import type { Surroundings } from '../surroundings.ts';
import { type CgroupFolders, cgroupFolders, readUsage } from './cgroup-stats.ts';

const defaultMountpoint = '/sys/fs/cgroup';

/**
 * Statistics of running containers, from their cgroups: the engine takes a second for each, and Podman leaves half of
 * it out.
 */
export class StatsReader {
  readonly #around: Surroundings;
  readonly #reader: ContainerReader;
  readonly #folders = new Map<ContainerId, CgroupFolders>();

  constructor(around: Surroundings, reader: ContainerReader) {
    this.#around = around;
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
      timestamp: this.#around.clock.now(),
      ...(await readUsage(folders)),
    };
  }

  /** Undefined when it has ended meanwhile. */
  async #find(id: ContainerId, signal: AbortSignal | undefined): Promise<CgroupFolders | undefined> {
    const pid = (await this.#reader.lookFor(id, signal))?.details.State.Pid ?? 0;
    if (pid === 0) return undefined;
    const mountpoint = this.#around.options.cgroupMountpoint ?? defaultMountpoint;
    const folders = await cgroupFolders(pid, mountpoint).catch(() => undefined);
    if (folders !== undefined) this.#folders.set(id, folders);
    return folders;
  }
}
