import type { LinuxResources } from '@keelson/container-runtime';
import type { OciResources } from './oci-spec.ts';

/**
 * Converts limits to the form of the OCI specification, for creation and for updates. With `swapLimits` the memory
 * limit includes swap.
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
