import type { ContainerStatus, Pod } from '@keelson/kinds';
import { initContainersOf, isSidecar, restartPolicyOf } from '../../base/pod/pod-spec.ts';

export type PodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed';

/** The phase that follows from the states of the containers: see docs/reference/agent-rules.md#phase-of-a-pod. */
export function podPhase(pod: Pod, init: readonly ContainerStatus[], main: readonly ContainerStatus[]): PodPhase {
  const policy = restartPolicyOf(pod);
  let pendingInit = false;
  for (const container of initContainersOf(pod)) {
    const status = init.find(({ name }) => name === container.name);
    if (isSidecar(container)) {
      if (status?.started !== true) pendingInit = true;
      continue;
    }
    const ended = status?.state?.terminated ?? (status?.state?.running ? undefined : status?.lastState?.terminated);
    if (ended === undefined) pendingInit = true;
    else if (ended.exitCode !== 0) {
      if ((container.restartPolicy ?? policy) === 'Never') return 'Failed';
      pendingInit = true;
    }
  }
  const counts = { running: 0, waiting: 0, stopped: 0, succeeded: 0 };
  for (const container of pod.spec.containers ?? []) {
    const status = main.find(({ name }) => name === container.name);
    const ended = status?.state?.terminated ?? status?.lastState?.terminated;
    if (status?.state?.running) counts.running += 1;
    else if (ended) {
      counts.stopped += 1;
      if (ended.exitCode === 0) counts.succeeded += 1;
    } else counts.waiting += 1;
  }
  const begun = counts.running + counts.stopped > 0;
  if (pendingInit && !begun) return 'Pending';
  if (counts.waiting > 0) return 'Pending';
  if (counts.running > 0) return 'Running';
  if (policy === 'Always') return 'Running';
  if (counts.stopped === counts.succeeded) return 'Succeeded';
  return policy === 'Never' ? 'Failed' : 'Running';
}
