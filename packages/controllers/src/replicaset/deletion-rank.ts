import { timeMs } from '@keelson/core';
import type { Pod } from '@keelson/kinds';
import { isActive, isAvailable, isReady, readySince } from '../workload/pod-state.ts';

const deletionCostAnnotation = 'controller.kubernetes.io/pod-deletion-cost';
const phaseRank: Readonly<Record<string, number>> = { Pending: 0, Unknown: 1, Running: 2 };

export interface RankOptions {
  /** Pods of all replica sets with the same owner. Pods on nodes with many of these are deleted first. */
  readonly related: readonly Pod[];
  readonly minReadySeconds: number;
  /** Epoch milliseconds. */
  readonly now: number;
}

/**
 * The pods in the order in which they are deleted: without a node, not running, not ready, not available, of low
 * deletion cost, on nodes with many pods of the owner, ready for a short time, often restarted, young.
 *
 * Times are compared by magnitude: of two pods of about the same age, the one with the smaller uid is first. Which of
 * them is deleted therefore does not depend on the order of their creation, which often is the order of their nodes.
 */
export function rankedForDeletion(pods: readonly Pod[], { related, minReadySeconds, now }: RankOptions): Pod[] {
  const onNode = new Map<string, number>();
  for (const pod of related) {
    const node = pod.spec.nodeName ?? '';
    if (isActive(pod)) onNode.set(node, (onNode.get(node) ?? 0) + 1);
  }
  const ranks = pods.map((pod) => ({
    pod,
    keys: [
      pod.spec.nodeName ? 1 : 0,
      phaseRank[pod.status?.phase ?? ''] ?? 0,
      isReady(pod) ? 1 : 0,
      isAvailable(pod, minReadySeconds, now) ? 1 : 0,
      deletionCost(pod),
      -(onNode.get(pod.spec.nodeName ?? '') ?? 0),
    ],
    ready: readySince(pod),
    restarts: mostRestarts(pod),
    created: timeMs(pod.metadata?.creationTimestamp ?? ''),
    uid: pod.metadata?.uid ?? '',
  }));
  ranks.sort((a, b) => {
    for (const [i, key] of a.keys.entries()) {
      const difference = key - (b.keys[i] ?? 0);
      if (difference !== 0) return difference;
    }
    const byUid = a.uid < b.uid ? -1 : 1;
    if (a.ready !== b.ready) return compareAges(a.ready, b.ready, now) || byUid;
    if (a.restarts !== b.restarts) return b.restarts - a.restarts;
    if (a.created !== b.created) return compareAges(a.created, b.created, now) || byUid;
    return byUid;
  });
  return ranks.map(({ pod }) => pod);
}

/** Compares by age in orders of magnitude. Negative when `a` is unknown or has the smaller age. */
function compareAges(a: number | undefined, b: number | undefined, now: number): number {
  if (a === undefined || b === undefined) return (a === undefined ? 0 : 1) - (b === undefined ? 0 : 1);
  return magnitude(now - a) - magnitude(now - b);
}

function magnitude(ms: number): number {
  return ms > 0 ? Math.floor(Math.log2(ms * 1e6)) : -1;
}

function deletionCost({ metadata }: Pod): number {
  const text = metadata?.annotations?.[deletionCostAnnotation];
  return text !== undefined && /^(?:0|-?[1-9]\d{0,9})$/.test(text) ? Number(text) : 0;
}

function mostRestarts({ status }: Pod): number {
  return Math.max(0, ...(status?.containerStatuses ?? []).map(({ restartCount }) => restartCount ?? 0));
}
