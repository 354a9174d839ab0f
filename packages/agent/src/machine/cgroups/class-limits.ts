import type { QosClass } from '@keelson/kinds';
import type { CgroupLimits } from './limit-files.ts';
import type { PodAmounts } from './pod-amounts.ts';
import { sharesOf } from './pod-limits.ts';

/** A pod as far as its class is concerned. */
export interface ClassMember extends Pick<PodAmounts, 'cpuRequest' | 'memoryRequest'> {
  readonly qos: QosClass;
}

export interface ClassLimits {
  readonly Burstable: CgroupLimits;
  readonly BestEffort: CgroupLimits;
}

/**
 * What pods can have, and how much of what better ones request is kept from the others; undefined = memory is not kept.
 */
export interface MemoryReserve {
  readonly allocatableBytes: number;
  readonly percent: number | undefined;
}

const without = -1;

/** Limits of the cgroups of QoS classes: see docs/reference/agent-rules.md#cgroups-of-pods. No limit is below 0. */
export function classLimits(pods: Iterable<ClassMember>, { allocatableBytes, percent }: MemoryReserve): ClassLimits {
  let burstableCpu = 0;
  const memory = { Guaranteed: 0, Burstable: 0, BestEffort: 0 };
  for (const { qos, cpuRequest, memoryRequest } of pods) {
    if (qos === 'Burstable') burstableCpu += cpuRequest;
    memory[qos] += memoryRequest;
  }
  const kept = (bytes: number) => Math.floor((bytes * (percent ?? 0)) / 100);
  const burstable = Math.max(0, allocatableBytes - kept(memory.Guaranteed));
  const bestEffort = Math.max(0, burstable - kept(memory.Burstable));
  const limited = percent !== undefined;
  return {
    Burstable: { cpuShares: sharesOf(burstableCpu), memoryBytes: limited ? burstable : without },
    BestEffort: { cpuShares: sharesOf(0), memoryBytes: limited ? bestEffort : without },
  };
}
