import type { LinuxResources } from '@keelson/container-runtime';
import type { OciResources } from './oci-spec.ts';

/**
 * Limits in the words of a bundle, for creation and for updates alike. `swapLimits`: the machine can limit memory and
 * swap together.
 */
export function resourcesOf(resources: LinuxResources, swapLimits: boolean): OciResources {
  const { cpuShares, cpuQuotaUs, cpuPeriodUs, cpusetCpus, cpusetMems, memoryLimitBytes, pidsLimit } = resources;
  const cpu = {
    ...(cpuShares && { shares: cpuShares }),
    ...(cpuQuotaUs && { quota: cpuQuotaUs }),
    ...(cpuPeriodUs && { period: cpuPeriodUs }),
    ...(cpusetCpus && { cpus: cpusetCpus }),
    ...(cpusetMems && { mems: cpusetMems }),
  };
  return {
    ...(Object.keys(cpu).length > 0 && { cpu }),
    ...(memoryLimitBytes && { memory: { limit: memoryLimitBytes, ...(swapLimits && { swap: memoryLimitBytes }) } }),
    ...(pidsLimit && { pids: { limit: pidsLimit } }),
  };
}
