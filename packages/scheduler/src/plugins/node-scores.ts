import type { NodeInfo } from '../cluster/node-info.ts';
import { matchesTerm, untoleratedTaint } from '../cluster/node-rules.ts';
import type { Resources } from '../cluster/resources.ts';
import { maxScore, type Score, scaleInverted, scaleToHighest } from './plugin.ts';

/** Prefers nodes of which a small part is requested. */
export const leastAllocated: Score = {
  name: 'NodeResourcesFit',
  weight: 1,
  prepare: ({ requirements: { scoredRequests } }) => ({
    score: ({ allocatable, scoredRequested }) => {
      const cpu = freeShare(allocatable.cpu, scoredRequested.cpu + scoredRequests.cpu);
      const memory = freeShare(allocatable.memory, scoredRequested.memory + scoredRequests.memory);
      if (allocatable.cpu === 0) return memory;
      return allocatable.memory === 0 ? cpu : Math.trunc((cpu + memory) / 2);
    },
  }),
};

function freeShare(capacity: number, requested: number): number {
  return requested >= capacity ? 0 : Math.trunc(((capacity - requested) * maxScore) / capacity);
}

/** Prefers nodes of which similar parts of cpu and memory are requested. */
export const balancedAllocation: Score = {
  name: 'NodeResourcesBalancedAllocation',
  weight: 1,
  prepare: ({ requirements: { requests } }) =>
    requests.cpu === 0 && requests.memory === 0
      ? undefined
      : { score: ({ allocatable, requested }) => balanceOf(allocatable, requested, requests) },
};

function balanceOf(
  allocatable: Readonly<Resources>,
  requested: Readonly<Resources>,
  requests: Readonly<Resources>,
): number {
  if (allocatable.cpu === 0 || allocatable.memory === 0) return maxScore;
  const cpu = Math.min(1, (requested.cpu + requests.cpu) / allocatable.cpu);
  const memory = Math.min(1, (requested.memory + requests.memory) / allocatable.memory);
  return Math.trunc((1 - Math.abs(cpu - memory) / 2) * maxScore);
}

/** Prefers nodes by the weights of the preferred node affinity. */
export const preferredNodeAffinity: Score = {
  name: 'NodeAffinity',
  weight: 2,
  prepare: ({ requirements: { preferredNodes } }) => {
    if (preferredNodes.length === 0) return undefined;
    const score = (node: NodeInfo) => {
      let sum = 0;
      for (const { weight, preference } of preferredNodes) if (matchesTerm(preference, node)) sum += weight;
      return sum;
    };
    return { score, normalize: scaleToHighest };
  },
};

/** Avoids nodes with taints of effect PreferNoSchedule that the pod does not tolerate. */
export const preferredTaints: Score = {
  name: 'TaintToleration',
  weight: 3,
  prepare: ({ requirements: { tolerations } }) => ({
    score: ({ taints }) => {
      let count = 0;
      for (const taint of taints) if (untoleratedTaint([taint], tolerations, ['PreferNoSchedule'])) count += 1;
      return count;
    },
    normalize: scaleInverted,
  }),
};

const smallest = 23 * 1024 * 1024;
const largestPerContainer = 1000 * 1024 * 1024;

/** Prefers nodes that have large images of the pod, scaled by how many nodes have them. */
export const imageLocality: Score = {
  name: 'ImageLocality',
  weight: 1,
  prepare: ({ requirements: { images } }, cluster) => {
    const known = images.filter((image) => cluster.nodesWithImage(image) > 0);
    if (known.length === 0) return undefined;
    const total = cluster.nodes.length;
    const largest = largestPerContainer * images.length;
    return {
      score: (node) => {
        let sum = 0;
        for (const image of known)
          sum += Math.trunc(((node.images.get(image) ?? 0) * cluster.nodesWithImage(image)) / total);
        const bounded = Math.min(largest, Math.max(smallest, sum));
        return Math.trunc((maxScore * (bounded - smallest)) / (largest - smallest));
      },
    };
  },
};
