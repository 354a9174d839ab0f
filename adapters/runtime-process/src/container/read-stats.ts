import { listProcesses, residentBytes } from '@keelson/container-host';
import type { Cgroups } from '@keelson/container-monitor';
import type { ContainerStats } from '@keelson/container-runtime';
import type { Clock } from '@keelson/core/runtime';
import type { ProcessContainer } from './process-container.ts';

const nanosecondsPerTick = 10_000_000n; // the unit of /proc is 1/100 s on every architecture

/**
 * Resource usage of containers, read in one pass over /proc. Memory is read from the cgroup if the container has one.
 */
export async function readStats(
  containers: readonly ProcessContainer[],
  cgroups: Cgroups,
  clock: Clock,
): Promise<ContainerStats[]> {
  const bySession = groupBySession();
  const timestamp = clock.now();
  const stats: ContainerStats[] = [];
  for (const container of containers) {
    const { snapshot, identity, record } = container;
    if (snapshot.state !== 'running' || identity === undefined) continue;
    const members = bySession.get(identity.pid) ?? [];
    let ticks = 0;
    let rssBytes = 0;
    let minor = 0;
    let major = 0;
    for (const member of members) {
      ticks += member.cpuTicks;
      minor += member.minorFaults;
      major += member.majorFaults;
      rssBytes += residentBytes(member.pid);
    }
    const cgroup = (await cgroups.usage(record.plan.cgroups)).memory;
    const { id, sandboxId, metadata, labels, annotations } = snapshot;
    stats.push({
      ...{ id, sandboxId, metadata, labels, annotations, timestamp },
      cpu: { usageCoreNanoseconds: BigInt(ticks) * nanosecondsPerTick },
      memory: {
        workingSetBytes: rssBytes,
        ...cgroup,
        rssBytes,
        pageFaults: BigInt(minor),
        majorPageFaults: BigInt(major),
      },
      processes: members.length,
    });
  }
  return stats;
}

function groupBySession() {
  const groups = new Map<number, ReturnType<typeof listProcesses>>();
  for (const process of listProcesses()) {
    const group = groups.get(process.session);
    if (group === undefined) groups.set(process.session, [process]);
    else group.push(process);
  }
  return groups;
}
