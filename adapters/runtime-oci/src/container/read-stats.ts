import type { ContainerStats } from '@keelson/container-runtime';
import type { OciContainer } from './oci-container.ts';
import type { OciContext } from './oci-context.ts';

/** Resource usage of the running containers, as counted by their cgroups. */
export async function readStats(containers: readonly OciContainer[], around: OciContext): Promise<ContainerStats[]> {
  const running = containers.filter(({ state }) => state === 'running');
  const stats = await Promise.all(running.map((container) => statsOf(container, around)));
  return stats.filter((entry) => entry !== undefined);
}

async function statsOf(container: OciContainer, around: OciContext): Promise<ContainerStats | undefined> {
  const { id, sandboxId, metadata, labels, annotations } = container.snapshot;
  const { cgroups, clock } = around;
  const timestamp = clock.now();
  const [usage, members] = await Promise.all([cgroups.usage(container.cgroups), cgroups.members(container.cgroups)]);
  if (members.length === 0) return undefined; // it has ended meanwhile
  return { id, sandboxId, metadata, labels, annotations, timestamp, ...usage, processes: members.length };
}
