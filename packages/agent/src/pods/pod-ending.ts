import type { CallOptions, ContainerRuntime, ContainerStatus } from '@keelson/container-runtime';
import type { Pod } from '@keelson/kinds';
import { initContainersOf, isSidecar } from '../base/pod/pod-spec.ts';
import { mayRun, type PodRuntimeState } from '../runtime-view/pod-runtime-state.ts';
import type { ContainerKiller } from './containers/container-killer.ts';

export interface EndingTools {
  readonly runtime: ContainerRuntime;
  readonly killer: ContainerKiller;
  readonly callTimeoutMs: number;
}

/**
 * Ends the running containers of a pod in parallel, its sidecars afterwards, then its sandboxes. All are attempted; the
 * first failure is thrown afterwards.
 */
export async function endPodProcesses(
  pod: Pod | undefined,
  state: PodRuntimeState,
  message: string,
  graceSeconds: number | undefined,
  { runtime, killer, callTimeoutMs }: EndingTools,
  signal: AbortSignal,
): Promise<void> {
  const sidecars = new Set(
    pod
      ? initContainersOf(pod)
          .filter(isSidecar)
          .map(({ name }) => name)
      : [],
  );
  const podIp = state.sandboxes[0]?.ips[0];
  const failures: unknown[] = [];
  const kill = async (statuses: readonly ContainerStatus[]) => {
    const ends = statuses.map((status) =>
      killer.kill({ pod, status, message: textFor(status, message), graceSeconds, podIp }, signal),
    );
    for (const end of await Promise.allSettled(ends)) if (end.status === 'rejected') failures.push(end.reason);
  };
  const running = state.containers.filter(mayRun);
  await kill(running.filter(({ metadata }) => !sidecars.has(metadata.name)));
  await kill(running.filter(({ metadata }) => sidecars.has(metadata.name)));
  if (failures.length > 0) throw failures[0];
  for (const { id, state: is } of state.sandboxes) {
    if (is === 'ready') await runtime.stopPodSandbox(id, { signal, timeoutMs: callTimeoutMs });
  }
}

function textFor(status: ContainerStatus, message: string): string {
  return message === '' ? `Stopping container ${status.metadata.name}` : message;
}

/** Removes replaced sandboxes whose containers have been removed. */
export async function removeOldSandboxes(
  state: PodRuntimeState,
  removed: ReadonlySet<string>,
  runtime: ContainerRuntime,
  call: CallOptions,
): Promise<void> {
  for (const sandbox of state.sandboxes.slice(1)) {
    const used = state.containers.some(({ sandboxId, id }) => sandboxId === sandbox.id && !removed.has(id));
    if (sandbox.state === 'notReady' && !used) await runtime.removePodSandbox(sandbox.id, call);
  }
}
