import { compareAmounts } from '../../../validation/quantities.ts';
import type { PodSpec } from '../schema/index.ts';

/** How well a pod is protected when a node runs out of a resource. */
export type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort';

const counted = ['cpu', 'memory'] as const;

/**
 * Guaranteed: every container has limits for cpu and memory and requests exactly those. BestEffort: nobody asks for
 * anything. Burstable: in between. Zero amounts count as not given.
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
