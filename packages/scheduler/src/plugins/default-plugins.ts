import { volumeBinding, volumeRestrictions } from './claims.ts';
import {
  nodeAffinity,
  nodeName,
  nodePorts,
  nodeResourcesFit,
  nodeUnschedulable,
  taintToleration,
} from './node-filters.ts';
import {
  balancedAllocation,
  imageLocality,
  leastAllocated,
  preferredNodeAffinity,
  preferredTaints,
} from './node-scores.ts';
import type { Filter, Score } from './plugin.ts';
import { interPodAffinity, preferredPodAffinity } from './pod-affinity.ts';
import { podTopologySpread, preferredSpread } from './topology-spread.ts';

/** Built-in filters in the order in which they are asked. */
export const defaultFilters: readonly Filter[] = [
  nodeUnschedulable,
  nodeName,
  taintToleration,
  nodeAffinity,
  nodePorts,
  nodeResourcesFit,
  volumeRestrictions,
  volumeBinding,
  podTopologySpread,
  interPodAffinity,
];

/** Built-in scores. */
export const defaultScores: readonly Score[] = [
  preferredTaints,
  preferredNodeAffinity,
  leastAllocated,
  preferredSpread,
  preferredPodAffinity,
  balancedAllocation,
  imageLocality,
];
