import { allChanges, type ClusterChange, type ClusterState } from '../cluster/cluster-state.ts';
import type { NodeInfo } from '../cluster/node-info.ts';
import type { PodInfo } from '../cluster/pod-info.ts';
import type { Filter, NodeCheck, Rejection, Score } from '../plugins/plugin.ts';

export interface PlacementOptions {
  readonly filters: readonly Filter[];
  readonly scores: readonly Score[];
  /** Percentage of the nodes that are enough to choose from. 0: from 50 % down to 5 %, by their number. */
  readonly percentageOfNodesToScore: number;
  /** Returns a number from 0 to below 1. Decides between nodes with equal scores. */
  readonly random: () => number;
}

/** What the filters have prepared for one pod. */
export interface PreparedChecks {
  readonly pod: PodInfo;
  readonly checks: readonly (NodeCheck & { readonly filter: Filter })[];
}

/** Why a pod fits no node. */
export interface FitFailure {
  readonly prepared: PreparedChecks;
  /** Reason that does not depend on nodes; then there are no `rejections`. */
  readonly podReason: string | undefined;
  readonly rejections: ReadonlyMap<NodeInfo, Rejection>;
  /** The rejection of all nodes without an entry in `rejections`. */
  readonly absent: Rejection;
  readonly retryAfter: ReadonlySet<ClusterChange>;
}

export type Placement = { readonly node: NodeInfo } | { readonly failure: FitFailure };

/** Minimum number of nodes on which the pod fits that are found before the search ends. */
const leastNodes = 100;
const leastPercentage = 5;

/** The first reason why the pod does not fit the node, with the filter that has it. */
function firstRejection(
  { checks }: PreparedChecks,
  node: NodeInfo,
): { readonly filter: Filter; readonly rejection: Rejection } | undefined {
  for (const { check, filter } of checks) {
    const rejection = check(node);
    if (rejection !== undefined) return { filter, rejection };
  }
  return undefined;
}

export function supposeAdded({ checks }: PreparedChecks, pod: PodInfo, node: NodeInfo): void {
  node.add(pod);
  for (const { added } of checks) added?.(pod, node);
}

export function supposeRemoved({ checks }: PreparedChecks, pod: PodInfo, node: NodeInfo): void {
  node.remove(pod.uid);
  for (const { removed } of checks) removed?.(pod, node);
}

/**
 * Returns why the pod does not fit the node. Pods that are nominated for the node, with at least the same priority, may
 * be assigned to it or to another node. Therefore the pod must fit both with them, because they use resources, and
 * without them, because an affinity of the pod may require them.
 */
export function rejectionOf(prepared: PreparedChecks, node: NodeInfo, cluster: ClusterState) {
  const { uid, priority } = prepared.pod;
  const nominated: PodInfo[] = [];
  for (const pod of cluster.nominatedFor(node.name))
    if (pod.uid !== uid && pod.priority >= priority && !node.pods.has(pod.uid)) nominated.push(pod);
  if (nominated.length > 0) {
    try {
      for (const pod of nominated) supposeAdded(prepared, pod, node);
      const found = firstRejection(prepared, node);
      if (found !== undefined) return found;
    } finally {
      for (const pod of nominated) supposeRemoved(prepared, pod, node);
    }
  }
  return firstRejection(prepared, node);
}

/** Chooses nodes for pods. It changes nothing. */
export class PlacementAlgorithm {
  readonly #options: PlacementOptions;
  /** Index of the node at which the next search begins, so that each search in a large cluster examines other nodes. */
  #start = 0;

  constructor(options: PlacementOptions) {
    this.#options = options;
  }

  place(pod: PodInfo, cluster: ClusterState): Placement {
    const checks: (NodeCheck & { filter: Filter })[] = [];
    for (const filter of this.#options.filters) {
      const result = filter.prepare(pod, cluster);
      if (result === undefined) continue;
      if ('rejected' in result) return { failure: podFailure({ pod, checks }, filter, result.rejected) };
      checks.push({ ...result, filter });
    }
    const prepared = { pod, checks };
    const nominated = cluster.node(pod.nominatedNodeName);
    if (nominated !== undefined && rejectionOf(prepared, nominated, cluster) === undefined) return { node: nominated };
    const search = this.#search(prepared, cluster);
    if ('failure' in search) return search;
    return { node: this.#best(pod, cluster, search.nodes) };
  }

  #search(
    prepared: PreparedChecks,
    cluster: ClusterState,
  ): { readonly nodes: readonly NodeInfo[] } | { readonly failure: FitFailure } {
    const restrictions = prepared.checks.filter(({ onlyNodes }) => onlyNodes !== undefined);
    const candidates = restrictions.length === 0 ? cluster.nodes : restricted(restrictions, cluster);
    const enough = this.#enough(candidates.length);
    const nodes: NodeInfo[] = [];
    const rejections = new Map<NodeInfo, Rejection>();
    const retryAfter = new Set<ClusterChange>(['NodeAdded']);
    let examined = 0;
    for (; examined < candidates.length && nodes.length < enough; examined += 1) {
      const node = candidates[(this.#start + examined) % candidates.length] as NodeInfo;
      const found = rejectionOf(prepared, node, cluster);
      if (found === undefined) nodes.push(node);
      else {
        rejections.set(node, found.rejection);
        for (const change of found.filter.retryAfter ?? allChanges) retryAfter.add(change);
      }
    }
    if (cluster.nodes.length > 0) this.#start = (this.#start + examined) % cluster.nodes.length;
    if (nodes.length > 0) return { nodes };
    const names = restrictions.map(({ filter }) => filter.name).sort();
    const absent = { reasons: [`node(s) didn't satisfy plugin(s) [${names.join(' ')}]`], unresolvable: true };
    return { failure: { prepared, podReason: undefined, rejections, absent, retryAfter } };
  }

  #enough(nodes: number): number {
    if (nodes < leastNodes) return nodes;
    const { percentageOfNodesToScore: given } = this.#options;
    const percentage = given > 0 ? given : Math.max(leastPercentage, 50 - Math.trunc(nodes / 125));
    return Math.max(leastNodes, Math.trunc((nodes * percentage) / 100));
  }

  #best(pod: PodInfo, cluster: ClusterState, nodes: readonly NodeInfo[]): NodeInfo {
    let best = nodes[0] as NodeInfo;
    if (nodes.length === 1) return best;
    const totals = scoreNodes(this.#options.scores, pod, cluster, nodes);
    let highest = totals[0] as number;
    let equals = 1;
    for (let at = 1; at < nodes.length; at += 1) {
      const total = totals[at] as number;
      if (total < highest) continue;
      equals = total > highest ? 1 : equals + 1;
      highest = total;
      // Each of the nodes with the highest score is chosen with the same probability.
      if (equals === 1 || this.#options.random() * equals < 1) best = nodes[at] as NodeInfo;
    }
    return best;
  }
}

function podFailure(prepared: PreparedChecks, filter: Filter, rejection: Rejection): FitFailure {
  return {
    prepared,
    podReason: rejection.reasons.join(', '),
    rejections: new Map(),
    absent: rejection,
    retryAfter: new Set(filter.retryAfter ?? allChanges),
  };
}

function restricted(restrictions: PreparedChecks['checks'], cluster: ClusterState): NodeInfo[] {
  const [first, ...others] = restrictions.map(({ onlyNodes }) => onlyNodes as ReadonlySet<string>);
  return [...(first ?? [])]
    .filter((name) => others.every((names) => names.has(name)))
    .flatMap((name) => cluster.node(name) ?? []);
}

/** The weighted sums of the scores of nodes. */
export function scoreNodes(
  scores: readonly Score[],
  pod: PodInfo,
  cluster: ClusterState,
  nodes: readonly NodeInfo[],
): number[] {
  const totals = new Array<number>(nodes.length).fill(0);
  for (const { weight, prepare } of scores) {
    const ranking = weight === 0 ? undefined : prepare(pod, cluster, nodes);
    if (ranking === undefined) continue;
    const values = nodes.map(ranking.score);
    ranking.normalize?.(values);
    for (let at = 0; at < nodes.length; at += 1) totals[at] = (totals[at] as number) + weight * (values[at] as number);
  }
  return totals;
}

/** The text for events and conditions: `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.` */
export function fitMessage(failure: FitFailure, nodes: number, suffix = ''): string {
  const { podReason, rejections, absent } = failure;
  const start = `0/${nodes} nodes are available:`;
  const end = suffix === '' ? '' : ` ${suffix}`;
  if (podReason !== undefined) return `${start} ${podReason}.${end}`;
  const counts = new Map<string, number>();
  const count = (reasons: readonly string[], by: number) => {
    for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + by);
  };
  for (const { reasons } of rejections.values()) count(reasons, 1);
  if (rejections.size < nodes) count(absent.reasons, nodes - rejections.size);
  const parts = [...counts].map(([reason, number]) => `${number} ${reason}`).sort();
  return `${start}${parts.length === 0 ? '' : ` ${parts.join(', ')}.`}${end}`;
}
