import { compareAmounts } from '../../../validation/quantities.ts';
import type { PodSpec } from '../schema/index.ts';

/** Quality of service class of a pod, which determines the order of eviction. */
export type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort';

const counted = ['cpu', 'memory'] as const;

/**
 * Guaranteed: every container has limits for cpu and memory, and equal requests. BestEffort: no container has requests
 * or limits. Burstable: all other pods. Zero amounts count as absent.
 */
export function qosClassOf(spec: PodSpec): QosClass {
  let asks = false;
  let guaranteed = true;
  for (const container of [...(spec.containers ?? []), ...(spec.initContainers ?? [])]) {
    for (const name of counted) {
      const request = positive(container.resources?.requests?.[name]);
      const limit = positive(container.resources?.limits?.[name]);
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
