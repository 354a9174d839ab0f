import type { QosClass } from '@keelson/kinds';
import type { CgroupLimits } from './limit-files.ts';
import type { PodAmounts } from './pod-amounts.ts';

const leastShares = 2;
const mostShares = 262_144;
const sharesPerCpu = 1_024;
const periodUs = 100_000;
const leastQuotaUs = 1_000;

/** The weight of so many thousandths of a CPU. */
export function sharesOf(cpuMilli: number): number {
  return Math.min(mostShares, Math.max(leastShares, Math.floor((cpuMilli * sharesPerCpu) / 1_000)));
}

/**
 * Limits of the cgroup of a pod: see docs/reference/agent-rules.md#cgroups-of-pods. With `cpuCfsQuota` CPU limits
 * become quotas.
 */
export function podLimits(
  qos: QosClass,
  { cpuRequest, cpuLimit, memoryLimit }: PodAmounts,
  cpuCfsQuota: boolean,
): CgroupLimits {
  if (qos === 'BestEffort') return { cpuShares: leastShares };
  const quota = cpuLimit === undefined ? undefined : Math.max(leastQuotaUs, (cpuLimit * periodUs) / 1_000);
  return {
    cpuShares: sharesOf(cpuRequest),
    ...(quota === undefined ? {} : { cpuPeriodUs: periodUs, cpuQuotaUs: cpuCfsQuota ? quota : -1 }),
    ...(memoryLimit === undefined ? {} : { memoryBytes: memoryLimit }),
  };
}
