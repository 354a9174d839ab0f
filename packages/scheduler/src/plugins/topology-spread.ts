import { nothingSelector } from '@keelson/core';
import type { ClusterState } from '../cluster/cluster-state.ts';
import type { NodeInfo } from '../cluster/node-info.ts';
import { hardEffects, matchesNodeRules, untoleratedTaint } from '../cluster/node-rules.ts';
import type { CountedPods, CountsByNode } from '../cluster/pod-counts.ts';
import type { PodInfo } from '../cluster/pod-info.ts';
import type { SpreadRule } from '../cluster/pod-terms.ts';
import { type Filter, maxScore, type Rejection, type Score } from './plugin.ts';

const uneven: Rejection = { reasons: ["node(s) didn't match pod topology spread constraints"] };
const noLabel: Rejection = {
  reasons: ["node(s) didn't match pod topology spread constraints (missing required label)"],
  unresolvable: true,
};

const hostname = 'kubernetes.io/hostname';

/** The pods that a rule counts: those of the same namespace that match and are not being deleted. */
function countedBy({ selector }: SpreadRule, { namespace }: PodInfo): CountedPods {
  // A selector that matches everything counts nothing.
  return {
    key: `spread ${namespace} ${selector.empty ? '' : selector}`,
    matches: (pod) => !selector.empty && !pod.deleting && pod.namespace === namespace && selector.matches(pod.labels),
  };
}

/** True when the pods of the node count for the rule. */
function isCounted(rule: SpreadRule, { requirements }: PodInfo, node: NodeInfo): boolean {
  if (rule.honorsAffinity && !matchesNodeRules(requirements.nodeRules, node)) return false;
  return !rule.honorsTaints || untoleratedTaint(node.taints, requirements.tolerations, hardEffects) === undefined;
}

function hasLabels(node: NodeInfo, rules: readonly SpreadRule[]): boolean {
  return rules.every(({ topologyKey }) => node.labels[topologyKey] !== undefined);
}

/** The topology domains of one rule with the number of its pods. */
interface RulePlaces {
  readonly rule: SpreadRule;
  readonly counted: CountedPods;
  readonly counts: Map<string, number>;
  /** 1 when the rule also counts the pod to be scheduled, once it is assigned. */
  readonly self: 0 | 1;
  /** The lowest number of pods in a topology domain; undefined after a change, until it is determined again. */
  lowest: number | undefined;
}

function placesOf(rule: SpreadRule, rules: readonly SpreadRule[], pod: PodInfo, cluster: ClusterState): RulePlaces {
  const counted = countedBy(rule, pod);
  const byNode = cluster.count(counted);
  const counts = new Map<string, number>();
  for (const node of cluster.nodes) {
    if (!hasLabels(node, rules) || !isCounted(rule, pod, node)) continue;
    const value = node.labels[rule.topologyKey] as string;
    counts.set(value, (counts.get(value) ?? 0) + (byNode.get(node) ?? 0));
  }
  return { rule, counted, counts, self: rule.selector.matches(pod.labels) ? 1 : 0, lowest: undefined };
}

function lowestOf(places: RulePlaces): number {
  const { counts, rule } = places;
  if (counts.size < rule.minDomains) return 0;
  if (places.lowest === undefined) {
    places.lowest = Number.POSITIVE_INFINITY;
    for (const count of counts.values()) if (count < places.lowest) places.lowest = count;
  }
  return places.lowest;
}

/** Rejects nodes whose topology domain would have more pods than another one by more than `maxSkew`. */
export const podTopologySpread: Filter = {
  name: 'PodTopologySpread',
  retryAfter: ['NodeAdded', 'NodeChanged', 'PodAssigned', 'PodChanged', 'PodDeleted'],
  prepare: (pod, cluster) => {
    const rules = pod.requirements.spread.filter(({ required }) => required);
    if (rules.length === 0) return undefined;
    const all = rules.map((rule) => placesOf(rule, rules, pod, cluster));
    const change = (other: PodInfo, node: NodeInfo, by: 1 | -1) => {
      if (!hasLabels(node, rules)) return;
      for (const places of all) {
        if (!places.counted.matches(other) || !isCounted(places.rule, pod, node)) continue;
        const value = node.labels[places.rule.topologyKey] as string;
        places.counts.set(value, (places.counts.get(value) ?? 0) + by);
        places.lowest = undefined;
      }
    };
    return {
      check: (node) => {
        for (const places of all) {
          const value = node.labels[places.rule.topologyKey];
          if (value === undefined) return noLabel;
          const skew = (places.counts.get(value) ?? 0) + places.self - lowestOf(places);
          if (skew > places.rule.maxSkew) return uneven;
        }
        return undefined;
      },
      added: (other, node) => change(other, node, 1),
      removed: (other, node) => change(other, node, -1),
    };
  },
};

/** The rules for pods without any: pods of the same owner are distributed over nodes and, less strictly, over zones. */
const defaultRules: readonly SpreadRule[] = [
  ['kubernetes.io/hostname', 3] as const,
  ['topology.kubernetes.io/zone', 5] as const,
].map(([topologyKey, maxSkew]) => ({
  topologyKey,
  maxSkew,
  minDomains: 1,
  selector: nothingSelector,
  honorsAffinity: true,
  honorsTaints: false,
  required: false,
}));

interface ScoredRule {
  readonly rule: SpreadRule;
  readonly byNode: CountsByNode;
  /** Counts by topology domain; undefined for rules about single nodes. */
  readonly counts: ReadonlyMap<string, number> | undefined;
  /** Weight of a pod: a pod counts more where there are more topology domains. */
  readonly factor: number;
}

/** Prefers topology domains with fewer pods, by rules that may be violated. */
export const preferredSpread: Score = {
  name: 'PodTopologySpread',
  weight: 2,
  prepare: (pod, cluster, nodes) => {
    const isDefault = pod.requirements.spread.length === 0;
    if (isDefault && pod.owner === undefined) return undefined;
    const rules = isDefault ? defaultRules : pod.requirements.spread.filter(({ required }) => !required);
    if (rules.length === 0) return undefined;
    const isScored = (node: NodeInfo) => isDefault || hasLabels(node, rules);
    const among = nodes.filter(isScored);
    const siblings: CountedPods = {
      key: `owner ${pod.owner}`,
      matches: (other) => other.owner === pod.owner && !other.deleting,
    };
    const scored = rules.map((rule): ScoredRule => {
      const byNode = cluster.count(isDefault ? siblings : countedBy(rule, pod));
      if (rule.topologyKey === hostname) return { rule, byNode, counts: undefined, factor: Math.log(among.length + 2) };
      const counts = new Map<string, number>();
      for (const node of among) {
        const value = node.labels[rule.topologyKey];
        if (value !== undefined) counts.set(value, 0);
      }
      for (const [node, count] of byNode) {
        const value = node.labels[rule.topologyKey];
        const before = value === undefined ? undefined : counts.get(value);
        if (value === undefined || before === undefined || !isScored(node) || !isCounted(rule, pod, node)) continue;
        counts.set(value, before + count);
      }
      return { rule, byNode, counts, factor: Math.log(counts.size + 2) };
    });
    return {
      score: (node) => (isScored(node) ? Math.round(sumOf(scored, node)) : -1),
      normalize,
    };
  },
};

function sumOf(scored: readonly ScoredRule[], node: NodeInfo): number {
  let sum = 0;
  for (const { rule, byNode, counts, factor } of scored) {
    const value = node.labels[rule.topologyKey];
    if (value === undefined) continue;
    const count = (counts === undefined ? byNode.get(node) : counts.get(value)) ?? 0;
    sum += count * factor + (rule.maxSkew - 1);
  }
  return sum;
}

/** Fewer pods are better; -1 marks nodes without the labels of the rules, which get 0. */
function normalize(scores: number[]): void {
  let lowest = Number.POSITIVE_INFINITY;
  let highest = 0;
  for (const score of scores) {
    if (score < 0) continue;
    lowest = Math.min(lowest, score);
    highest = Math.max(highest, score);
  }
  for (let at = 0; at < scores.length; at += 1) {
    const score = scores[at] as number;
    if (score < 0) scores[at] = 0;
    else if (highest === 0) scores[at] = maxScore;
    else scores[at] = Math.trunc((maxScore * (highest + lowest - score)) / highest);
  }
}
