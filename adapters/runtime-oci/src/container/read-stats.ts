import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
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
  const { cgroups, cgroupMountpoint, clock } = around;
  const { cgroup } = container.record;
  const base = { id, sandboxId, metadata, labels, annotations, timestamp: clock.now() };
  const [memory, details, nanoseconds, members] = await Promise.all([
    cgroups.memory(container.cgroups),
    memoryDetails(cgroupMountpoint, cgroup),
    cpuNanoseconds(cgroupMountpoint, cgroup),
    cgroups.members(container.cgroups),
  ]);
  if (members.length === 0) return undefined; // it has ended meanwhile
  return {
    ...base,
    ...(nanoseconds !== undefined && { cpu: { usageCoreNanoseconds: nanoseconds } }),
    ...(memory && { memory: { ...memory, ...details } }),
    processes: members.length,
  };
}

async function cpuNanoseconds(mountpoint: string, cgroup: string): Promise<bigint | undefined> {
  const old = await readIn(mountpoint, 'cpuacct', cgroup, 'cpuacct.usage');
  if (old !== undefined) return BigInt(old.trim());
  const text =
    (await readIn(mountpoint, '', cgroup, 'cpu.stat')) ?? (await readIn(mountpoint, 'unified', cgroup, 'cpu.stat'));
  const microseconds = /^usage_usec (\d+)$/m.exec(text ?? '')?.[1];
  return microseconds === undefined ? undefined : BigInt(microseconds) * 1000n;
}

async function memoryDetails(mountpoint: string, cgroup: string) {
  const text =
    (await readIn(mountpoint, 'memory', cgroup, 'memory.stat')) ??
    (await readIn(mountpoint, '', cgroup, 'memory.stat'));
  if (text === undefined) return {};
  const value = (...names: string[]) => {
    for (const name of names) {
      const found = new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1];
      if (found !== undefined) return BigInt(found);
    }
    return undefined;
  };
  const [rss, faults, major] = [
    value('total_rss', 'anon'),
    value('total_pgfault', 'pgfault'),
    value('total_pgmajfault', 'pgmajfault'),
  ];
  return {
    ...(rss !== undefined && { rssBytes: Number(rss) }),
    ...(faults !== undefined && { pageFaults: faults }),
    ...(major !== undefined && { majorPageFaults: major }),
  };
}

async function readIn(
  mountpoint: string,
  hierarchy: string,
  cgroup: string,
  file: string,
): Promise<string | undefined> {
  return readFile(join(mountpoint, hierarchy, cgroup, file), 'utf8').catch(() => undefined);
}
