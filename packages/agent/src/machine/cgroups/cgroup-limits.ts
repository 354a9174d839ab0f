import { type CgroupLimits, leastShares, mostShares } from '@keelson/container-host';
import { quantityMilliValue, quantityValue } from '@keelson/core';
import type { Container, Pod, QosClass } from '@keelson/kinds';
import type { ResourceAmounts } from '../../base/config/agent-config.ts';
import { MachineError } from '../../base/machine-error.ts';
import { initContainersOf, isSidecar } from '../../base/pod/pod-spec.ts';
import type { Machine } from '../host/machine.ts';

/** Resources of a whole pod: CPU in thousandths, memory in bytes. */
export interface PodAmounts {
  readonly cpuRequest: number;
  readonly memoryRequest: number;
  /** Undefined unless every container has such a limit. */
  readonly cpuLimit: number | undefined;
  readonly memoryLimit: number | undefined;
}

type AmountOf = (container: Container) => number;

const cpu = (text: string | undefined) => (text === undefined ? 0 : Number(quantityMilliValue(text)));
const bytes = (text: string | undefined) => (text === undefined ? 0 : Number(quantityValue(text)));

/**
 * The largest sum at any time: all containers run together with all sidecars; an init container runs with the sidecars
 * before it.
 */
function most(pod: Pod, amountOf: AmountOf): number {
  let sidecars = 0;
  let starting = 0;
  for (const container of initContainersOf(pod)) {
    const amount = amountOf(container);
    if (isSidecar(container)) sidecars += amount;
    starting = Math.max(starting, isSidecar(container) ? sidecars : sidecars + amount);
  }
  const running = (pod.spec.containers ?? []).reduce((sum, container) => sum + amountOf(container), sidecars);
  return Math.max(starting, running);
}

function limitOf(pod: Pod, amountOf: AmountOf): number | undefined {
  const containers = [...initContainersOf(pod), ...(pod.spec.containers ?? [])];
  return containers.every((container) => amountOf(container) > 0) ? most(pod, amountOf) : undefined;
}

/** Computes the resources of a pod. A limit without a request is also the request. */
export function podAmounts(pod: Pod): PodAmounts {
  const limits = ({ resources }: Container) => resources?.limits ?? {};
  const requests = (container: Container) => ({ ...limits(container), ...container.resources?.requests });
  return {
    cpuRequest: most(pod, (container) => cpu(requests(container)['cpu'])),
    memoryRequest: most(pod, (container) => bytes(requests(container)['memory'])),
    cpuLimit: limitOf(pod, (container) => cpu(limits(container)['cpu'])),
    memoryLimit: limitOf(pod, (container) => bytes(limits(container)['memory'])),
  };
}

const sharesPerCpu = 1_024;
const periodUs = 100_000;
const leastQuotaUs = 1_000;

/** CPU shares for thousandths of a CPU. */
export function sharesOf(cpuMilli: number): number {
  return Math.min(mostShares, Math.max(leastShares, Math.floor((cpuMilli * sharesPerCpu) / 1_000)));
}

/**
 * Limits of the cgroup of a pod: see docs/reference/agent-rules.md#cgroups-of-pods. With `cpuCfsQuota`, CPU limits are
 * enforced as quotas.
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
    ...(memoryLimit === undefined ? {} : { memoryLimitBytes: memoryLimit }),
  };
}

/** The resources of a pod that count for its quality-of-service class. */
export interface ClassMember extends Pick<PodAmounts, 'cpuRequest' | 'memoryRequest'> {
  readonly qos: QosClass;
}

export interface ClassLimits {
  readonly Burstable: CgroupLimits;
  readonly BestEffort: CgroupLimits;
}

/**
 * Memory of all pods, and the percentage of requests that is reserved from lower classes; undefined = no reservation.
 */
export interface MemoryReserve {
  readonly allocatableBytes: number;
  readonly percent: number | undefined;
}

const without = -1;

/**
 * Limits of the cgroups of quality-of-service classes: see docs/reference/agent-rules.md#cgroups-of-pods. No limit is
 * below 0.
 */
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
    Burstable: { cpuShares: sharesOf(burstableCpu), memoryLimitBytes: limited ? burstable : without },
    BestEffort: { cpuShares: sharesOf(0), memoryLimitBytes: limited ? bestEffort : without },
  };
}

/** CPU in thousandths, memory in bytes. */
export interface NodeShare {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
}

const cpuOf = ({ cpu }: ResourceAmounts) => (cpu === undefined ? 0 : Number(quantityMilliValue(cpu)));
const memoryOf = ({ memory }: ResourceAmounts) => (memory === undefined ? 0 : Number(quantityValue(memory)));

/**
 * The share of all pods: the capacity of the machine minus the reserved resources.
 *
 * @throws MachineError when nothing is left
 */
export function podsShare(
  machine: Pick<Machine, 'cores' | 'memoryBytes'>,
  ...reserved: readonly ResourceAmounts[]
): NodeShare {
  const cpuMilli = reserved.reduce((left, amounts) => left - cpuOf(amounts), machine.cores * 1_000);
  // In whole KiB, like the capacity in the status of the node.
  const capacity = Math.floor(machine.memoryBytes / 1_024) * 1_024;
  const memoryBytes = reserved.reduce((left, amounts) => left - memoryOf(amounts), capacity);
  if (cpuMilli <= 0 || memoryBytes <= 0) {
    const name = cpuMilli <= 0 ? 'CPU' : 'memory';
    throw new MachineError(
      `--cluster-reserved and --system-reserved leave no ${name} of this machine to pods; reserve less`,
    );
  }
  return { cpuMilli, memoryBytes };
}

export function limitsOfShare({ cpuMilli, memoryBytes }: NodeShare): CgroupLimits {
  return { cpuShares: sharesOf(cpuMilli), memoryLimitBytes: memoryBytes };
}

/** Limits of a cgroup with reserved resources. A resource without a reservation is not limited. */
export function limitsOfReserved(reserved: ResourceAmounts): CgroupLimits {
  const { cpu, memory } = reserved;
  return {
    ...(cpu === undefined ? {} : { cpuShares: sharesOf(cpuOf(reserved)) }),
    ...(memory === undefined ? {} : { memoryLimitBytes: memoryOf(reserved) }),
  };
}
