import { readFileSync } from 'node:fs';
import type { LinuxResources } from '@keelson/container-runtime';

const lowestScore = -1000;
const highestScore = 1000;
/** Bit of CAP_SYS_RESOURCE in the sets of /proc/self/status. */
const sysResource = 1n << 24n;

/** Limits as fields of the engine's `HostConfig`. */
export function hostResources(resources: LinuxResources): object {
  const { cpuShares, cpuQuotaUs, cpuPeriodUs, cpusetCpus, cpusetMems, memoryLimitBytes, oomScoreAdjust, pidsLimit } =
    resources;
  return {
    ...(cpuShares !== undefined && { CpuShares: cpuShares }),
    ...(cpuQuotaUs !== undefined && { CpuQuota: cpuQuotaUs }),
    ...(cpuPeriodUs !== undefined && { CpuPeriod: cpuPeriodUs }),
    ...(cpusetCpus !== undefined && { CpusetCpus: cpusetCpus }),
    ...(cpusetMems !== undefined && { CpusetMems: cpusetMems }),
    // The limit of memory and swap together equals the memory limit, so containers cannot use swap.
    ...(memoryLimitBytes !== undefined && { Memory: memoryLimitBytes, MemorySwap: memoryLimitBytes }),
    ...(oomScoreAdjust !== undefined && {
      OomScoreAdj: Math.max(lowestOomScore(), Math.min(highestScore, oomScoreAdjust)),
    }),
    // -1 is no limit. Without a value, engines apply a default limit of processes.
    PidsLimit: pidsLimit ?? -1,
  };
}

/** Limits in the form of Podman's own API, which follows the OCI runtime specification. */
export function ociResources(resources: LinuxResources): object {
  const { cpuShares, cpuQuotaUs, cpuPeriodUs, cpusetCpus, cpusetMems, memoryLimitBytes, pidsLimit } = resources;
  const cpu = {
    ...(cpuShares !== undefined && { shares: cpuShares }),
    ...(cpuQuotaUs !== undefined && { quota: cpuQuotaUs }),
    ...(cpuPeriodUs !== undefined && { period: cpuPeriodUs }),
    ...(cpusetCpus !== undefined && { cpus: cpusetCpus }),
    ...(cpusetMems !== undefined && { mems: cpusetMems }),
  };
  return {
    ...(Object.keys(cpu).length > 0 && { cpu }),
    ...(memoryLimitBytes !== undefined && { memory: { limit: memoryLimitBytes, swap: memoryLimitBytes } }),
    ...(pidsLimit !== undefined && { pids: { limit: pidsLimit } }),
  };
}

/**
 * The lowest out-of-memory score adjustment that containers can have. Only a process with CAP_SYS_RESOURCE may set a
 * value below its own; without this capability the start of such a container fails.
 */
function lowestOomScore(): number {
  try {
    const effective = /^CapEff:\s+([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1] ?? '0';
    if ((BigInt(`0x${effective}`) & sysResource) !== 0n) return lowestScore;
    return Number(readFileSync('/proc/self/oom_score_adj', 'latin1'));
  } catch {
    return lowestScore;
  }
}
