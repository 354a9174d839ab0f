import type { ReconcileRun } from '@keelson/controller-kit';
import { formatTime } from '@keelson/core';
import { type coreV1, Node, type Pod, tolerates } from '@keelson/kinds';

type Taint = coreV1.Taint;

const prefix = 'node.kubernetes.io/';
export const notReadyTaint = `${prefix}not-ready`;
export const unreachableTaint = `${prefix}unreachable`;
export const nodeTaints: readonly string[] = [notReadyTaint, unreachableTaint];

/** The taint keys by condition type and status of the condition. */
const conditionTaints: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  Ready: { False: notReadyTaint, Unknown: unreachableTaint },
  MemoryPressure: { True: `${prefix}memory-pressure` },
  DiskPressure: { True: `${prefix}disk-pressure` },
  PIDPressure: { True: `${prefix}pid-pressure` },
  NetworkUnavailable: { True: `${prefix}network-unavailable` },
};
const unschedulableTaint = `${prefix}unschedulable`;
const managed = new Set([
  ...Object.values(conditionTaints).flatMap((states) => Object.values(states)),
  unschedulableTaint,
]);

/** Keys of the taints that keep new pods away from a node with this spec and status. */
export function schedulingTaints({ spec, status }: Node): string[] {
  const keys = (status?.conditions ?? []).flatMap(({ type, status: state }) => conditionTaints[type]?.[state] ?? []);
  return spec?.unschedulable === true ? [...keys, unschedulableTaint] : keys;
}

/** The key of the taint that evicts pods; undefined for a node that is ready or has never reported. */
export function evictionTaint(node: Node): string | undefined {
  return conditionTaints['Ready']?.[readyStatus(node) ?? ''];
}

/** The status of the condition Ready; undefined when the node has none. */
export function readyStatus({ status }: Node): string | undefined {
  return status?.conditions?.find(({ type }) => type === 'Ready')?.status;
}

/**
 * The taints of a node after replacing the controller's taints by the given ones. Other taints remain. Undefined when
 * nothing changes.
 */
export function withTaints(
  { spec }: Node,
  noSchedule: readonly string[],
  noExecute: string | undefined,
  now: number,
): Taint[] | undefined {
  const before = spec?.taints ?? [];
  const isWanted = ({ key, effect }: Taint) => {
    if (effect === 'NoSchedule' && managed.has(key)) return noSchedule.includes(key);
    if (effect === 'NoExecute' && nodeTaints.includes(key)) return key === noExecute;
    return true;
  };
  const kept = before.filter(isWanted);
  const timeAdded = formatTime(new Date(now));
  const added = [
    ...noSchedule.map((key) => ({ key, effect: 'NoSchedule', timeAdded })),
    ...(noExecute === undefined ? [] : [{ key: noExecute, effect: 'NoExecute', timeAdded }]),
  ].filter(({ key, effect }) => !kept.some((taint) => taint.key === key && taint.effect === effect));
  return kept.length === before.length && added.length === 0 ? undefined : [...kept, ...added];
}

export async function writeTaints(node: Node, taints: readonly Taint[], run: ReconcileRun): Promise<void> {
  const { name = '', resourceVersion } = node.metadata ?? {};
  await run.client
    .resource(Node)
    .patch(name, 'merge', { metadata: { resourceVersion }, spec: { taints: taints.length === 0 ? null : taints } });
}

export function evictingTaints({ spec }: Node): Taint[] {
  return (spec?.taints ?? []).filter(({ effect }) => effect === 'NoExecute');
}

/**
 * The time in epoch milliseconds when a pod must leave a node with these taints. -Infinity means at once, Infinity
 * means never.
 *
 * @param since time at which taints without `timeAdded` were observed
 */
export function evictionTime({ spec }: Pod, taints: readonly Taint[], since: number): number {
  let time = Number.POSITIVE_INFINITY;
  for (const taint of taints) {
    const tolerations = (spec.tolerations ?? []).filter((toleration) => tolerates(toleration, taint));
    if (tolerations.length === 0) return Number.NEGATIVE_INFINITY;
    const added = Date.parse(taint.timeAdded ?? '');
    for (const { tolerationSeconds } of tolerations)
      if (tolerationSeconds !== undefined)
        time = Math.min(time, (Number.isNaN(added) ? since : added) + Math.max(0, Number(tolerationSeconds)) * 1000);
  }
  return time;
}
