import type { Pod } from '@keelson/kinds';
import { amountOf, amountText } from '../../base/config/eviction-amount.ts';
import { countsInodes, traitsOf } from '../../base/config/eviction-signals.ts';
import type { Observation, Threshold } from '../../base/config/eviction-threshold.ts';
import { allContainersOf } from '../../base/pod/pod-spec.ts';
import { containerRequest } from './pod-requests.ts';
import type { Victim } from './victims.ts';

/** The quantity of a threshold on this host, such as `100Mi`. */
export function thresholdText({ signal, value }: Threshold, { capacity }: Observation): string {
  return amountText(amountOf(value, capacity), countsInodes(traitsOf(signal).resource));
}

/** The available quantity, such as `96Mi`. */
export function availableText({ signal }: Threshold, { available }: Observation): string {
  return amountText(available, countsInodes(traitsOf(signal).resource));
}

/** The message of an eviction, with the containers that exceed their requests. */
export function evictionMessage(
  threshold: Threshold,
  observation: Observation,
  victim: Pick<Victim, 'pod' | 'found'>,
): string {
  const { resource } = traitsOf(threshold.signal);
  const figures = `Threshold quantity: ${thresholdText(threshold, observation)}, available: ${availableText(threshold, observation)}.`;
  const greedy = resource === 'memory' ? greedyContainers(victim) : [];
  return [`The node was low on resource: ${resource}.`, figures, ...greedy].join(' ');
}

function greedyContainers({ pod, found }: { readonly pod: Pod; readonly found: Victim['found'] }): string[] {
  return (found?.containers ?? []).flatMap(({ name, memoryWorkingSetBytes: bytes }) => {
    const container = allContainersOf(pod).find((one) => one.name === name);
    const request = container === undefined ? 0 : containerRequest(container, 'memory');
    if (bytes <= request) return [];
    const [used, asked] = [bytes, request].map((count) => amountText(count, false));
    return [`Container ${name} was using ${used}, request is ${asked}, has larger consumption of memory.`];
  });
}
