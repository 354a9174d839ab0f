import { timeMs } from '@keelson/core';
import type { Pod } from '@keelson/kinds';

/** Index of pods by their node. */
export const podsByNode = ({ spec }: Pod): readonly string[] => (spec.nodeName ? [spec.nodeName] : []);

/** True unless the pod has ended or is being deleted. Only active pods count as replicas. */
export function isActive(pod: Pod): boolean {
  return !hasEnded(pod) && pod.metadata?.deletionTimestamp === undefined;
}

/** True when no container of the pod will run again. */
export function hasEnded({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

/** True when the pod is being deleted and has not ended. */
export function isTerminating(pod: Pod): boolean {
  return !hasEnded(pod) && pod.metadata?.deletionTimestamp !== undefined;
}

export function isReady(pod: Pod): boolean {
  return readyCondition(pod)?.status === 'True';
}

/** Since when a pod is ready, in epoch milliseconds; undefined when it is not, or when the time is unknown. */
export function readySince(pod: Pod): number | undefined {
  const condition = readyCondition(pod);
  return condition?.status === 'True' ? timeMs(condition.lastTransitionTime ?? '') : undefined;
}

/** True when the pod has been ready for `minReadySeconds`. */
export function isAvailable(pod: Pod, minReadySeconds: number, now: number): boolean {
  if (!isReady(pod)) return false;
  if (minReadySeconds === 0) return true;
  const since = readySince(pod);
  return since !== undefined && since + minReadySeconds * 1000 <= now;
}

/** Milliseconds until the next ready pod becomes available; undefined when no ready pod is waiting for that. */
export function untilAvailable(pods: readonly Pod[], minReadySeconds: number, now: number): number | undefined {
  let least: number | undefined;
  for (const pod of pods) {
    const since = readySince(pod);
    if (since === undefined) continue;
    const wait = since + minReadySeconds * 1000 - now;
    if (wait > 0 && (least === undefined || wait < least)) least = wait;
  }
  return least;
}

function readyCondition({ status }: Pod) {
  return status?.conditions?.find(({ type }) => type === 'Ready');
}
