import type { ClusterState } from '../cluster/cluster-state.ts';
import type { CountedPods } from '../cluster/pod-counts.ts';
import type { PodInfo } from '../cluster/pod-info.ts';
import { matchesPod, type PodTerm } from '../cluster/pod-terms.ts';
import { PlaceCounts } from './place-counts.ts';
import { type Filter, maxScore, type Rejection, type Score } from './plugin.ts';

const noAffinity: Rejection = { reasons: ["node(s) didn't match pod affinity rules"], unresolvable: true };
const ownAntiAffinity: Rejection = { reasons: ["node(s) didn't match pod anti-affinity rules"] };
const antiAffinityOfOthers: Rejection = { reasons: ["node(s) didn't satisfy existing pods anti-affinity rules"] };

/** The pods that match all terms. */
function matchingAll(terms: readonly PodTerm[], cluster: ClusterState): CountedPods {
  return {
    key: `terms ${terms.map(({ key }) => key).join(' ')}`,
    matches: (pod) => terms.every((term) => matches(term, pod, cluster)),
    byNamespaceLabels: terms.some(({ namespaceSelector }) => namespaceSelector !== undefined),
  };
}

function matches(term: PodTerm, pod: PodInfo, cluster: ClusterState): boolean {
  return matchesPod(term, pod.namespace, pod.labels, cluster.namespaceLabels);
}

/**
 * Required affinity and anti-affinity, in both directions: a pod is also kept away from assigned pods that exclude it.
 * The first of several pods with affinity to each other fits everywhere.
 */
export const interPodAffinity: Filter = {
  name: 'InterPodAffinity',
  retryAfter: ['NodeAdded', 'NodeChanged', 'PodAssigned', 'PodChanged', 'PodDeleted', 'NamespaceChanged'],
  prepare: (pod, cluster) => {
    const { affinity, antiAffinity } = pod.requirements;
    const excluding = new PlaceCounts();
    for (const { term, counts } of cluster.antiAffinityTerms)
      if (matches(term, pod, cluster)) excluding.addAll(term.topologyKey, counts);
    const wanted = new PlaceCounts();
    const all = matchingAll(affinity, cluster);
    if (affinity.length > 0) for (const { topologyKey } of affinity) wanted.addAll(topologyKey, cluster.count(all));
    const unwanted = antiAffinity.map((term) => {
      const places = new PlaceCounts();
      places.addAll(term.topologyKey, cluster.count(matchingAll([term], cluster)));
      return { term, places };
    });
    if (excluding.isEmpty && affinity.length + antiAffinity.length === 0) return undefined;
    const matchesItself = affinity.length > 0 && all.matches(pod);
    const change = (other: PodInfo, node: Parameters<PlaceCounts['add']>[1], by: 1 | -1) => {
      for (const term of other.requirements.antiAffinity)
        if (matches(term, pod, cluster)) excluding.add(term.topologyKey, node, by);
      if (affinity.length > 0 && all.matches(other))
        for (const { topologyKey } of affinity) wanted.add(topologyKey, node, by);
      for (const { term, places } of unwanted)
        if (matches(term, other, cluster)) places.add(term.topologyKey, node, by);
    };
    return {
      check: (node) => {
        if (affinity.some(({ topologyKey }) => node.labels[topologyKey] === undefined)) return noAffinity;
        const isBeside = affinity.every(({ topologyKey }) => wanted.at(topologyKey, node) > 0);
        if (!isBeside && !(wanted.isEmpty && matchesItself)) return noAffinity;
        if (unwanted.some(({ term, places }) => places.at(term.topologyKey, node) > 0)) return ownAntiAffinity;
        return excluding.hasAny(node) ? antiAffinityOfOthers : undefined;
      },
      added: (other, node) => change(other, node, 1),
      removed: (other, node) => change(other, node, -1),
    };
  },
};

/** Weight of a required affinity term of an assigned pod that the pod matches. */
const requiredTermWeight = 1;

/** Preferred affinity and anti-affinity of the pod and of assigned pods. */
export const preferredPodAffinity: Score = {
  name: 'InterPodAffinity',
  weight: 2,
  prepare: (pod, cluster) => {
    const places = new PlaceCounts();
    for (const term of pod.requirements.preferredPods)
      places.addAll(term.topologyKey, cluster.count(matchingAll([term], cluster)), term.weight);
    for (const { term, counts } of cluster.affinityTerms)
      if (matches(term, pod, cluster)) places.addAll(term.topologyKey, counts, requiredTermWeight);
    for (const { term, counts } of cluster.preferredTerms)
      if (matches(term, pod, cluster)) places.addAll(term.topologyKey, counts, term.weight);
    if (places.isEmpty) return undefined;
    return { score: (node) => places.totalOf(node), normalize: spreadOut };
  },
};

/** Scales scores so that the lowest becomes 0 and the highest {@link maxScore}. */
function spreadOut(scores: number[]): void {
  const lowest = scores.reduce((a, b) => Math.min(a, b));
  const range = scores.reduce((a, b) => Math.max(a, b)) - lowest;
  for (let at = 0; at < scores.length; at += 1)
    scores[at] = range === 0 ? 0 : Math.trunc((maxScore * ((scores[at] as number) - lowest)) / range);
}
