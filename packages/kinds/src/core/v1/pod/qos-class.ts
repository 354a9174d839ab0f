import { compareAmounts } from '../../../validation/quantities.ts';
import type { PodSpec, ResourceRequirements } from '../schema/index.ts';

/** Quality of service class of a pod, which determines the order of eviction. */
export type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort';

const counted = ['cpu', 'memory'] as const;

/**
 * Guaranteed: every container has limits for cpu and memory, and equal requests. BestEffort: no container has requests
 * or limits. Burstable: all other pods. Zero amounts count as absent. The resources of a pod as a whole count in place
 * of those of its containers.
 */
export function qosClassOf(spec: PodSpec): QosClass {
  if (spec.resources) return classOf([spec.resources]);
  const containers = [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
  return classOf(containers.map(({ resources }) => resources));
}

function classOf(all: readonly (ResourceRequirements | undefined)[]): QosClass {
  let asks = false;
  let guaranteed = true;
  for (const resources of all) {
    for (const name of counted) {
      const request = positive(resources?.requests?.[name]);
      const limit = positive(resources?.limits?.[name]);
      if (request !== undefined || limit !== undefined) asks = true;
      if (limit === undefined || compareAmounts(request ?? limit, limit) !== 0) guaranteed = false;
    }
  }
  if (!asks) return 'BestEffort';
  return guaranteed ? 'Guaranteed' : 'Burstable';
}

function positive(amount: string | undefined): string | undefined {
  return amount !== undefined && (compareAmounts(amount, '0') ?? 0) > 0 ? amount : undefined;
}
