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

/** Built-in filters in the order in which they are asked. */
export const defaultFilters: readonly Filter[] = [
  nodeUnschedulable,
  nodeName,
  taintToleration,
  nodeAffinity,
  nodePorts,
  nodeResourcesFit,
];

/** Built-in scores. */
export const defaultScores: readonly Score[] = [
  preferredTaints,
  preferredNodeAffinity,
  leastAllocated,
  balancedAllocation,
  imageLocality,
];
