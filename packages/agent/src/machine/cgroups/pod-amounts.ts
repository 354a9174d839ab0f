import { quantityMilliValue, quantityValue } from '@keelson/core';
import type { Container, Pod } from '@keelson/kinds';
import { initContainersOf, isSidecar } from '../../base/pod/pod-spec.ts';

/** What a pod asks for as a whole: CPU in thousandths, memory in bytes. */
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
 * Containers run side by side with all sidecars; each init container runs alone with the sidecars that are named before
 * it.
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

/** Adds up a pod. A limit without a request is a request. */
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
