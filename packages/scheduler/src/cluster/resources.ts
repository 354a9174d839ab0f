import { quantityMilliValue, quantityValue } from '@keelson/core';
import type { Container, PodSpec } from '@keelson/kinds';

/**
 * Amounts by resource: cpu in thousandths, everything else in whole units. The named ones are read for every node; all
 * objects have these properties first, so that reading them is fast.
 */
export interface Resources {
  cpu: number;
  memory: number;
  [name: string]: number;
}

export function noResources(): Resources {
  return { cpu: 0, memory: 0 };
}

type QuantityMap = Readonly<Record<string, string>>;

/** What a container without a request is assumed to use when nodes are scored. */
const assumed = { cpu: 100, memory: 200 * 1024 * 1024 };

export function readResources(map: QuantityMap | undefined): Resources {
  const amounts = noResources();
  for (const [name, quantity] of Object.entries(map ?? {}))
    amounts[name] = Number(name === 'cpu' ? quantityMilliValue(quantity) : quantityValue(quantity));
  return amounts;
}

/** Adds `sign` times `amounts` to `to`. */
export function addResources(to: Resources, amounts: Readonly<Resources>, sign = 1): void {
  for (const name in amounts) to[name] = (to[name] ?? 0) + sign * (amounts[name] as number);
}

function raiseTo(to: Resources, amounts: Readonly<Resources>): void {
  for (const name in amounts) to[name] = Math.max(to[name] ?? 0, amounts[name] as number);
}

/**
 * What a pod needs on its node: the sum of its containers and sidecars, or what the largest init container needs
 * together with the sidecars started before it; requests of the pod as a whole replace those of containers; overhead
 * is added.
 *
 * @param scored assume an amount of cpu and memory for containers that request none
 */
export function podRequests(spec: PodSpec, scored = false): Resources {
  const requestsOf = ({ resources }: Container): Resources => {
    const amounts = readResources(resources?.requests);
    if (scored && resources?.requests?.['cpu'] === undefined) amounts.cpu = assumed.cpu;
    if (scored && resources?.requests?.['memory'] === undefined) amounts.memory = assumed.memory;
    return amounts;
  };
  const running = noResources();
  for (const container of spec.containers ?? []) addResources(running, requestsOf(container));
  const starting = noResources();
  const sidecars = noResources();
  for (const container of spec.initContainers ?? []) {
    const amounts = requestsOf(container);
    if (container.restartPolicy === 'Always') {
      addResources(running, amounts);
      addResources(sidecars, amounts);
      raiseTo(starting, sidecars);
      continue;
    }
    addResources(amounts, sidecars);
    raiseTo(starting, amounts);
  }
  raiseTo(running, starting);
  const whole = readResources(spec.resources?.requests);
  for (const name of Object.keys(spec.resources?.requests ?? {}))
    if (name === 'cpu' || name === 'memory' || name.startsWith('hugepages-')) running[name] = whole[name] ?? 0;
  addResources(running, readResources(spec.overhead));
  return running;
}
