import type { ContainerStatus, PodSandboxStatus } from '@keelson/container-runtime';
import type { PodIdentity } from './runtime-labels.ts';

/** The sandboxes and containers that the runtime has for one pod. */
export interface PodRuntimeState extends PodIdentity {
  /** Newest first. */
  readonly sandboxes: readonly PodSandboxStatus[];
  /** Containers of all sandboxes, newest first. */
  readonly containers: readonly ContainerStatus[];
}

/** The state of a pod for which the runtime has nothing. */
export function emptyState(identity: PodIdentity): PodRuntimeState {
  const { uid, name, namespace } = identity;
  return { uid, name, namespace, sandboxes: [], containers: [] };
}

/** The newest instance of a container. */
export function newestOf(state: PodRuntimeState, name: string, sandboxId?: string): ContainerStatus | undefined {
  return state.containers.find(
    ({ metadata, sandboxId: of }) => metadata.name === name && (sandboxId === undefined || of === sandboxId),
  );
}

/** True while the pod may have processes. */
export function isRunning(state: PodRuntimeState): boolean {
  return state.sandboxes.some((sandbox) => sandbox.state === 'ready') || state.containers.some(mayRun);
}

export function mayRun(container: ContainerStatus): boolean {
  return container.state === 'running' || container.state === 'unknown';
}
