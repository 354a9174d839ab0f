import type { ContainerStats, FilesystemUsage } from '@keelson/container-runtime';
import type { FilesystemUsageMessage } from '../api/common.ts';
import type { ContainerStatsMessage } from '../api/stats.ts';
import type { Fields } from '../wire/message.ts';
import { withoutNotes } from './notes.ts';

/** Statistics of a container; undefined for one that uses nothing, because it does not run. */
export function fromStats(
  message: Fields<typeof ContainerStatsMessage>,
  sandboxId: string,
): ContainerStats | undefined {
  const { attributes = {}, cpu, memory, writableLayer } = message;
  if (cpu === undefined && memory === undefined) return undefined;
  const { name = '', attempt = 0 } = attributes.metadata ?? {};
  const inodes = writableLayer?.inodesUsed?.value;
  return {
    id: attributes.id ?? '',
    sandboxId,
    metadata: { name, attempt },
    labels: attributes.labels ?? {},
    annotations: withoutNotes(attributes.annotations),
    timestamp: cpu?.timestamp ?? memory?.timestamp ?? 0,
    ...(cpu?.usageCoreNanoSeconds && { cpu: { usageCoreNanoseconds: cpu.usageCoreNanoSeconds.value ?? 0n } }),
    ...(memory?.workingSetBytes && { memory: fromMemory(memory) }),
    ...(writableLayer?.usedBytes && {
      writableLayer: {
        usedBytes: Number(writableLayer.usedBytes.value ?? 0n),
        ...(inodes !== undefined && { inodesUsed: Number(inodes) }),
      },
    }),
  };
}

type MemoryMessage = NonNullable<Fields<typeof ContainerStatsMessage>['memory']>;

function fromMemory(memory: MemoryMessage): NonNullable<ContainerStats['memory']> {
  const { workingSetBytes, rssBytes, usageBytes, pageFaults, majorPageFaults } = memory;
  return {
    workingSetBytes: Number(workingSetBytes?.value ?? 0n),
    ...(rssBytes && { rssBytes: Number(rssBytes.value ?? 0n) }),
    ...(usageBytes && { usageBytes: Number(usageBytes.value ?? 0n) }),
    ...(pageFaults && { pageFaults: pageFaults.value ?? 0n }),
    ...(majorPageFaults && { majorPageFaults: majorPageFaults.value ?? 0n }),
  };
}

/** What CRI tells of a file system; its size is for the machine to tell. */
export function fromFilesystem(
  message: Fields<typeof FilesystemUsageMessage>,
  size: { readonly capacityBytes: number; readonly availableBytes: number },
): FilesystemUsage {
  const inodes = message.inodesUsed?.value;
  return {
    timestamp: message.timestamp ?? 0,
    mountpoint: message.fsId?.mountpoint ?? '',
    usedBytes: Number(message.usedBytes?.value ?? 0n),
    ...(inodes !== undefined && { inodesUsed: Number(inodes) }),
    ...size,
  };
}
