import type { BudgetInfo, ClusterState } from '../cluster/cluster-state.ts';
import type { NodeInfo } from '../cluster/node-info.ts';
import type { PodInfo } from '../cluster/pod-info.ts';
import type { Rejection } from '../plugins/plugin.ts';
import {
  type FitFailure,
  fitMessage,
  type PreparedChecks,
  rejectionOf,
  supposeAdded,
  supposeRemoved,
} from './placement.ts';

/** Pods of one node without which a pod fits there, the most important first. */
interface Candidate {
  readonly node: NodeInfo;
  readonly victims: readonly PodInfo[];
  /** Victims whose deletion a budget does not allow. */
  readonly violations: number;
}

export type Preemption =
  | { readonly node: NodeInfo; readonly victims: readonly PodInfo[] }
  /** `nominatedNodeName`: empty when a nomination is to be withdrawn, undefined when it is kept. */
  | { readonly message: string; readonly nominatedNodeName: '' | undefined };

const notHelpful: Rejection = { reasons: ['Preemption is not helpful for scheduling'], unresolvable: true };
const noVictims: Rejection = { reasons: ['No preemption victims found for incoming pod'], unresolvable: true };

/**
 * Minimum number of candidates that are found before the search ends: this number, or this percentage of the nodes on
 * which deletions can help if that is greater.
 */
const leastCandidates = 100;
const candidatePercentage = 10;

/**
 * Finds the node on which a pod would fit after the deletion of pods of lower priority, with the least damage.
 *
 * @param random returns a number from 0 to below 1; decides where the search begins
 */
export function findPreemption(failure: FitFailure, cluster: ClusterState, random: () => number): Preemption {
  const reason = ineligible(failure, cluster);
  if (reason !== undefined) return { message: reason, nominatedNodeName: undefined };
  const { prepared } = failure;
  const resolvable = [...failure.rejections].filter(([, { unresolvable }]) => unresolvable !== true);
  const enough = Math.max(leastCandidates, Math.trunc((resolvable.length * candidatePercentage) / 100));
  const offset = Math.floor(random() * resolvable.length);
  const budgets = [...cluster.budgets.values()];
  const candidates: Candidate[] = [];
  const rejections = new Map<NodeInfo, Rejection>();
  for (let at = 0; at < resolvable.length; at += 1) {
    const [node] = resolvable[(offset + at) % resolvable.length] as (typeof resolvable)[number];
    const result = findVictims(prepared, node, cluster, budgets);
    if ('victims' in result) candidates.push(result);
    else rejections.set(node, result);
    if (candidates.length >= enough && candidates.some(({ violations }) => violations === 0)) break;
  }
  const best = pickCandidate(candidates);
  if (best !== undefined) return best;
  const none = { ...failure, podReason: undefined, rejections, absent: notHelpful };
  return { message: fitMessage(none, cluster.nodes.length), nominatedNodeName: '' };
}

/** Returns why a pod may not preempt other pods; undefined when it may. */
function ineligible({ prepared: { pod }, rejections, absent }: FitFailure, cluster: ClusterState): string | undefined {
  if (!pod.requirements.preempts) return 'not eligible due to preemptionPolicy=Never.';
  const nominated = cluster.node(pod.nominatedNodeName);
  if (nominated === undefined || (rejections.get(nominated) ?? absent).unresolvable) return undefined;
  for (const other of nominated.pods.values())
    if (other.priority < pod.priority && other.deleting && other.preempted)
      return 'not eligible due to a terminating pod on the nominated node.';
  return undefined;
}

/** The smallest set of less important pods without which the pod fits the node; the node is unchanged afterwards. */
function findVictims(
  prepared: PreparedChecks,
  node: NodeInfo,
  cluster: ClusterState,
  budgets: readonly BudgetInfo[],
): Candidate | Rejection {
  const lower = [...node.pods.values()].filter(({ priority }) => priority < prepared.pod.priority);
  if (lower.length === 0) return noVictims;
  const removed = new Set(lower);
  for (const pod of lower) supposeRemoved(prepared, pod, node);
  try {
    const found = rejectionOf(prepared, node, cluster);
    if (found !== undefined) return found.rejection;
    const { violating, others } = splitByBudgets(lower.sort(byImportance), budgets);
    let violations = 0;
    for (const pod of [...violating, ...others]) {
      removed.delete(pod);
      supposeAdded(prepared, pod, node);
      if (rejectionOf(prepared, node, cluster) === undefined) continue;
      supposeRemoved(prepared, pod, node);
      removed.add(pod);
      if (violating.includes(pod)) violations += 1;
    }
    return { node, victims: [...removed].sort(byImportance), violations };
  } finally {
    for (const pod of removed) supposeAdded(prepared, pod, node);
  }
}

/** Higher priority first, then the pod that has run longer. */
function byImportance(a: PodInfo, b: PodInfo): number {
  if (a.priority !== b.priority) return b.priority - a.priority;
  return a.startedMs === b.startedMs ? 0 : a.startedMs - b.startedMs;
}

/** Separates the pods whose deletion a budget does not allow. Both parts keep the order. */
function splitByBudgets(pods: readonly PodInfo[], budgets: readonly BudgetInfo[]) {
  const left = budgets.map(({ allowed }) => allowed);
  const violating: PodInfo[] = [];
  const others: PodInfo[] = [];
  for (const pod of pods) {
    let violates = false;
    budgets.forEach((budget, at) => {
      if (budget.namespace !== pod.namespace || budget.disrupted.has(pod.name) || !budget.matches(pod.labels)) return;
      left[at] = (left[at] as number) - 1;
      if ((left[at] as number) < 0) violates = true;
    });
    (violates ? violating : others).push(pod);
  }
  return { violating, others };
}

/** Criteria in the order of their importance; lower is better. */
const damages: readonly ((candidate: Candidate) => number)[] = [
  ({ violations }) => violations,
  ({ victims }) => victims[0]?.priority ?? 0,
  // Priorities may be negative. The offset makes every summand at least 0, so that a further victim never reduces the
  // sum.
  ({ victims }) => victims.reduce((sum, { priority }) => sum + priority + 2 ** 31, 0),
  ({ victims }) => victims.length,
  ({ victims }) => {
    const highest = victims.filter(({ priority }) => priority === victims[0]?.priority);
    return -Math.min(...highest.map(({ startedMs }) => startedMs));
  },
];

function pickCandidate(candidates: readonly Candidate[]): Candidate | undefined {
  let left = candidates;
  for (const damage of damages) {
    if (left.length <= 1) break;
    const values = left.map(damage);
    const least = values.reduce((a, b) => Math.min(a, b));
    left = left.filter((_, at) => values[at] === least);
  }
  return left[0];
}
