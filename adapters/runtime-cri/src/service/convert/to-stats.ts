import type { ContainerStats, FilesystemUsage } from '@keelson/container-runtime';
import type { FilesystemUsageMessage } from '../../api/common.ts';
import type { ContainerStatsMessage } from '../../api/stats.ts';
import type { Fields } from '../../wire/message.ts';

/** Numbers of the contract that are not there stay away from the wire, too. */
const wrapped = (value: number | bigint | undefined) => (value === undefined ? undefined : { value: BigInt(value) });

export function toStats(stats: ContainerStats): Fields<typeof ContainerStatsMessage> {
  const { id, metadata, labels, annotations, timestamp, cpu, memory, writableLayer } = stats;
  return {
    attributes: { id, metadata, labels, annotations },
    cpu: cpu && { timestamp, usageCoreNanoSeconds: { value: cpu.usageCoreNanoseconds } },
    memory: memory && {
      timestamp,
      workingSetBytes: wrapped(memory.workingSetBytes),
      usageBytes: wrapped(memory.usageBytes),
      rssBytes: wrapped(memory.rssBytes),
      pageFaults: wrapped(memory.pageFaults),
      majorPageFaults: wrapped(memory.majorPageFaults),
    },
    writableLayer: writableLayer && {
      timestamp,
      usedBytes: wrapped(writableLayer.usedBytes),
      inodesUsed: wrapped(writableLayer.inodesUsed),
    },
  };
}

export function toFilesystem(usage: FilesystemUsage): Fields<typeof FilesystemUsageMessage> {
  const { timestamp, mountpoint, usedBytes, inodesUsed } = usage;
  return { timestamp, fsId: { mountpoint }, usedBytes: wrapped(usedBytes), inodesUsed: wrapped(inodesUsed) };
}
