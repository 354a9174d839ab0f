import { formatTime } from '@keelson/core';
import { type ContainerStatus, type Pod, type PodStatus, qosClassOf } from '@keelson/kinds';
import { isFinalPhase } from '../../base/pod/pod-spec.ts';
import type { PodRuntimeState } from '../../runtime-view/pod-runtime-state.ts';
import { type ContainerFacts, containerStatuses, ephemeralStatuses } from './container-statuses.ts';
import { podConditions } from './pod-conditions.ts';
import { type PodPhase, podPhase } from './pod-phase.ts';

/** A phase that does not follow from the containers: the pod was rejected, or exceeded its deadline. */
export interface PodVerdict {
  readonly phase: 'Failed' | 'Pending';
  readonly reason: string;
  readonly message: string;
}

export interface StatusFacts extends ContainerFacts {
  /** The last reported status of the pod. */
  readonly before: PodStatus;
  readonly verdict?: PodVerdict | undefined;
  readonly hostIps: readonly string[];
  readonly nowMs: number;
}

/** The status of a pod, from the state of the runtime and the previous status. A final phase never changes. */
export function podStatus(pod: Pod, state: PodRuntimeState, facts: StatusFacts): PodStatus {
  const { before, verdict, hostIps, nowMs } = facts;
  const final = isFinalPhase(before.phase) ? (before.phase as PodPhase) : undefined;
  // The containers of an ended pod may be removed before the pod, for example after an eviction: the previous statuses
  // of its containers remain.
  const kept = final !== undefined && state.containers.length === 0 && hasEnded(before);
  const init = (kept && before.initContainerStatuses) || containerStatuses(pod, state, true, facts);
  const main = (kept && before.containerStatuses) || containerStatuses(pod, state, false, facts);
  const added = (kept && before.ephemeralContainerStatuses) || ephemeralStatuses(pod, state, facts);
  const phase = final ?? verdict?.phase ?? podPhase(pod, init, main);
  const cause = final === undefined ? verdict : before.reason === undefined ? undefined : before;
  // As in kubelet: otherwise clients would show ContainerCreating for a rejected pod instead of the reason.
  const isRefused =
    phase === 'Failed' && state.containers.length === 0 && [...init, ...main, ...added].every(neverExisted);
  const ips = podIps(pod, state, hostIps, before);
  return {
    phase,
    conditions: podConditions(pod, { phase, init, main, before: before.conditions ?? [], nowMs }),
    ...(cause?.reason === undefined ? {} : { reason: cause.reason }),
    ...(cause?.message === undefined ? {} : { message: cause.message }),
    ...(hostIps[0] === undefined ? {} : { hostIP: hostIps[0], hostIPs: hostIps.map((ip) => ({ ip })) }),
    ...(ips[0] === undefined ? {} : { podIP: ips[0], podIPs: ips.map((ip) => ({ ip })) }),
    startTime: before.startTime ?? formatTime(new Date(nowMs)),
    ...(init.length === 0 || isRefused ? {} : { initContainerStatuses: init }),
    ...(isRefused ? {} : { containerStatuses: main }),
    ...(added.length === 0 || isRefused ? {} : { ephemeralContainerStatuses: added }),
    qosClass: qosClassOf(pod.spec),
  };
}

function neverExisted({ containerID, lastState }: ContainerStatus): boolean {
  return !containerID && lastState?.terminated === undefined;
}

function hasEnded({
  containerStatuses = [],
  initContainerStatuses = [],
  ephemeralContainerStatuses = [],
}: PodStatus): boolean {
  return [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses].every(
    ({ state }) => state?.running === undefined,
  );
}

/** Addresses of the newest sandbox; an ended pod retains its last ones. */
function podIps(pod: Pod, state: PodRuntimeState, hostIps: readonly string[], before: PodStatus): readonly string[] {
  const sandbox = state.sandboxes[0];
  if (sandbox?.state === 'ready') {
    if (pod.spec.hostNetwork === true && hostIps.length > 0) return hostIps;
    const ips = sandbox.ips.length > 0 ? sandbox.ips : sandbox.namespaces.network === 'node' ? hostIps : [];
    if (ips.length > 0) return ips;
  }
  return (before.podIPs ?? []).flatMap(({ ip }) => (ip ? [ip] : []));
}
