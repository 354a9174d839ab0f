import { timeMs } from '@keelson/core';
import type { ContainerState, ContainerStatus, Pod } from '../schema/index.ts';

/** Cells of a pod's table row, derived from the states of its containers. */
export interface PodSummary {
  readonly ready: number;
  readonly total: number;
  readonly status: string;
  readonly restarts: number;
  /** Time of the termination before the last restart, in milliseconds since the epoch. */
  readonly lastRestart: number | undefined;
}

interface Restarts {
  count: number;
  last: number | undefined;
}

/** Summary of a pod, with the texts of kubectl. */
export function podSummary(pod: Pod): PodSummary {
  const { status } = pod;
  const conditions = status?.conditions ?? [];
  const phase = status?.phase ?? '';
  const sidecars = new Set(
    (pod.spec.initContainers ?? [])
      .filter((container) => container.restartPolicy === 'Always')
      .map((container) => container.name),
  );
  const gated = conditions.some(
    (condition) => condition.type === 'PodScheduled' && condition.reason === 'SchedulingGated',
  );
  const init = initSummary(pod, sidecars);
  let reason = init.reason ?? (gated ? 'SchedulingGated' : status?.reason || phase);
  let ready = init.ready;
  let restarts = init.all;
  const initialized = conditions.some((condition) => condition.type === 'Initialized' && condition.status === 'True');
  if (init.reason === undefined || initialized) {
    restarts = init.sidecars;
    let running = false;
    for (const container of [...(status?.containerStatuses ?? [])].reverse()) {
      addRestarts(restarts, container);
      const word = reasonOf(container.state);
      if (word !== undefined) reason = word;
      else if (container.ready && container.state?.running) {
        running = true;
        ready++;
      }
    }
    if (reason === 'Completed' && running) {
      const podReady = conditions.some((condition) => condition.type === 'Ready' && condition.status === 'True');
      reason = podReady ? 'Running' : 'NotReady';
    }
  }
  if (pod.metadata?.deletionTimestamp) {
    if (status?.reason === 'NodeLost') reason = 'Unknown';
    else if (phase !== 'Failed' && phase !== 'Succeeded') reason = 'Terminating';
  }
  const total = (pod.spec.containers?.length ?? 0) + sidecars.size;
  return { ready, total, status: reason, restarts: restarts.count, lastRestart: restarts.last };
}

/** The reason of an incomplete initialization (`undefined` when complete), and the number of restarts. */
function initSummary(pod: Pod, sidecars: ReadonlySet<string>) {
  const all: Restarts = { count: 0, last: undefined };
  const ofSidecars: Restarts = { count: 0, last: undefined };
  let ready = 0;
  let reason: string | undefined;
  const statuses = pod.status?.initContainerStatuses ?? [];
  for (const [i, container] of statuses.entries()) {
    addRestarts(all, container);
    const sidecar = sidecars.has(container.name);
    if (sidecar) addRestarts(ofSidecars, container);
    const { terminated, waiting } = container.state ?? {};
    if (terminated?.exitCode === 0) continue;
    if (sidecar && container.started) {
      if (container.ready) ready++;
      continue;
    }
    if (terminated) reason = `Init:${terminated.reason || exitText(terminated)}`;
    else if (waiting?.reason && waiting.reason !== 'PodInitializing') reason = `Init:${waiting.reason}`;
    else reason = `Init:${i}/${pod.spec.initContainers?.length ?? 0}`;
    break;
  }
  return { all, sidecars: ofSidecars, ready, reason };
}

function reasonOf(state: ContainerState | undefined): string | undefined {
  if (state?.waiting?.reason) return state.waiting.reason;
  if (state?.terminated) return state.terminated.reason || exitText(state.terminated);
  return undefined;
}

function exitText(terminated: NonNullable<ContainerState['terminated']>): string {
  return terminated.signal ? `Signal:${terminated.signal}` : `ExitCode:${terminated.exitCode}`;
}

function addRestarts(restarts: Restarts, container: ContainerStatus): void {
  restarts.count += container.restartCount ?? 0;
  const finished = container.lastState?.terminated?.finishedAt;
  const at = finished ? timeMs(finished) : undefined;
  if (at !== undefined && at > (restarts.last ?? Number.NEGATIVE_INFINITY)) restarts.last = at;
}
