import type { ClusterChange, ClusterState } from '../cluster/cluster-state.ts';
import type { NodeInfo } from '../cluster/node-info.ts';
import type { PodInfo } from '../cluster/pod-info.ts';

/** Why a pod does not fit. */
export interface Rejection {
  /** Phrases that complete "3 ...", where 3 is a number of nodes: `node(s) were unschedulable`. */
  readonly reasons: readonly string[];
  /** The pod would not fit even when other pods were removed from the node. */
  readonly unresolvable?: boolean;
}

/** The examination of one pod by a filter, prepared once and asked for many nodes. */
export interface NodeCheck {
  /** Names of the only nodes that can fit; the others are not checked. */
  readonly onlyNodes?: ReadonlySet<string>;
  /** Returns why the pod does not fit the node; undefined when it fits. */
  readonly check: (node: NodeInfo) => Rejection | undefined;
  /** The following checks suppose that `pod` is also on the node. */
  readonly added?: (pod: PodInfo, node: NodeInfo) => void;
  /** The following checks suppose that `pod` is no longer on the node. */
  readonly removed?: (pod: PodInfo, node: NodeInfo) => void;
}

/** The pod fits no node at all, for a reason that does not depend on nodes. */
export interface PodRejection {
  readonly rejected: Rejection;
}

/** A condition on the node of a pod. */
export interface Filter {
  readonly name: string;
  /** Changes after which a pod that this filter rejected is tried again. Default: all. */
  readonly retryAfter?: readonly ClusterChange[];
  /** Prepares the checks for one attempt to schedule `pod`. Undefined: every node is acceptable. */
  readonly prepare: (pod: PodInfo, cluster: ClusterState) => NodeCheck | PodRejection | undefined;
}

/** The ranking of nodes for one pod. */
export interface NodeRanking {
  /** A score of at most {@link maxScore}, unless `normalize` is present. */
  readonly score: (node: NodeInfo) => number;
  /** Converts the scores of all nodes, in place, to integers from 0 to {@link maxScore}. */
  readonly normalize?: (scores: number[]) => void;
}

/** A preference for some of the nodes on which a pod fits. */
export interface Score {
  readonly name: string;
  /** Factor of the scores. */
  readonly weight: number;
  /** Prepares the ranking for one attempt, with the nodes on which the pod fits. Undefined: no preference. */
  readonly prepare: (pod: PodInfo, cluster: ClusterState, nodes: readonly NodeInfo[]) => NodeRanking | undefined;
}

/** The highest score of a node. */
export const maxScore = 100;

/**
 * A filter from one function.
 *
 * @param reject returns why the pod does not fit, as a phrase that completes "3 ..."; undefined when it fits
 */
export function nodeFilter(name: string, reject: (pod: PodInfo, node: NodeInfo) => string | undefined): Filter {
  return {
    name,
    prepare: (pod) => ({
      check: (node) => {
        const reason = reject(pod, node);
        return reason === undefined ? undefined : { reasons: [reason] };
      },
    }),
  };
}

/**
 * A score from one function, which returns any numbers of at least 0: the highest becomes {@link maxScore} and the
 * others are scaled accordingly.
 */
export function nodeScore(name: string, weight: number, score: (pod: PodInfo, node: NodeInfo) => number): Score {
  return {
    name,
    weight,
    prepare: (pod) => ({ score: (node) => Math.max(0, score(pod, node)), normalize: scaleToHighest }),
  };
}

/** Scales scores so that the highest becomes {@link maxScore}. */
export function scaleToHighest(scores: number[]): void {
  const highest = scores.reduce((a, b) => Math.max(a, b), 0);
  if (highest === 0) return;
  for (let at = 0; at < scores.length; at += 1) scores[at] = Math.trunc((maxScore * (scores[at] as number)) / highest);
}

/** Scales scores so that the highest becomes 0 and 0 becomes {@link maxScore}. */
export function scaleInverted(scores: number[]): void {
  scaleToHighest(scores);
  for (let at = 0; at < scores.length; at += 1) scores[at] = maxScore - (scores[at] as number);
}
