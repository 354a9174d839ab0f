import type { LinuxResources } from '@keelson/container-runtime';
import { quantityMilliValue, quantityValue } from '@keelson/core';
import { type Container, type Pod, qosClassOf } from '@keelson/kinds';

const periodUs = 100_000;
const leastShares = 2;
const leastQuotaUs = 1_000;

export interface ResourceFacts {
  /** CPU limits are enforced by CFS quotas. */
  readonly cpuCfsQuota: boolean;
  readonly machineMemoryBytes: number;
}

/** The resource settings of a container, from its requests and limits. */
export function linuxResources(pod: Pod, container: Container, facts: ResourceFacts): LinuxResources {
  const { limits = {}, requests = {} } = container.resources ?? {};
  const cpu = requests['cpu'] ?? limits['cpu'];
  const shares = cpu === undefined ? 0 : Math.floor((Number(quantityMilliValue(cpu)) * 1024) / 1000);
  const cpuLimit = limits['cpu'] === undefined ? 0 : Number(quantityMilliValue(limits['cpu']));
  const memory = limits['memory'] === undefined ? 0 : Number(quantityValue(limits['memory']));
  return {
    cpuShares: Math.max(leastShares, Math.min(262_144, shares)),
    ...(facts.cpuCfsQuota && cpuLimit > 0
      ? { cpuPeriodUs: periodUs, cpuQuotaUs: Math.max(leastQuotaUs, (cpuLimit * periodUs) / 1000) }
      : {}),
    ...(memory > 0 ? { memoryLimitBytes: memory } : {}),
    oomScoreAdjust: oomScore(pod, container, facts.machineMemoryBytes),
  };
}

/** The OOM score adjustment: the larger the share of the host's memory that a container requests, the lower. */
function oomScore(pod: Pod, container: Container, machineMemoryBytes: number): number {
  const qos = qosClassOf(pod.spec);
  if (qos === 'Guaranteed') return -997;
  if (qos === 'BestEffort') return 1000;
  const request = container.resources?.requests?.['memory'];
  const bytes = request === undefined ? 0 : Number(quantityValue(request));
  const score = 1000 - Math.floor((1000 * bytes) / Math.max(1, machineMemoryBytes));
  return Math.min(999, Math.max(3, score));
}
