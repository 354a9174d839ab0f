import {
  type Container,
  type ContainerStatus,
  isRuntimeError,
  type PodSandbox,
  type PodSandboxStatus,
  type RuntimeEvent,
  type SandboxId,
} from '@keelson/container-runtime';
import { type PodIdentity, podIdentityOf } from './runtime-labels.ts';

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

/** The listed objects of one pod, newest first. */
export interface PodListing {
  readonly sandboxes: readonly PodSandbox[];
  readonly containers: readonly Container[];
}

/** Groups listed objects by the UID of their pod. Objects that no agent created are left out. */
export function byPod(sandboxes: readonly PodSandbox[], containers: readonly Container[]): Map<string, PodListing> {
  const pods = new Map<string, { sandboxes: PodSandbox[]; containers: Container[] }>();
  const of = (uid: string) => {
    const listing = pods.get(uid) ?? { sandboxes: [], containers: [] };
    pods.set(uid, listing);
    return listing;
  };
  for (const sandbox of sandboxes) {
    const identity = podIdentityOf(sandbox.labels);
    if (identity !== undefined) of(identity.uid).sandboxes.push(sandbox);
  }
  for (const container of containers) {
    const identity = podIdentityOf(container.labels);
    if (identity !== undefined) of(identity.uid).containers.push(container);
  }
  return pods;
}

/** The ids and states of all objects as text, for a fast comparison. */
export function outlineOf({ sandboxes, containers }: PodListing): string {
  let outline = '';
  for (const { id, state } of sandboxes) outline += `${id}:${state} `;
  for (const { id, state } of containers) outline += `${id}:${state} `;
  return outline;
}

/** The listed sandboxes, and the sandboxes of listed containers. */
export function sandboxIdsOf({ sandboxes, containers }: PodListing): Set<SandboxId> {
  return new Set([...sandboxes.map(({ id }) => id), ...containers.map(({ sandboxId }) => sandboxId)]);
}

/** True for events that no action of the agent causes and that must be handled immediately. */
export function isEnd({ type }: RuntimeEvent): boolean {
  return type === 'containerExited' || type === 'sandboxNotReady';
}

/** True when the listing already contains the change of an event, or a later one. */
export function isReflected(
  event: Exclude<RuntimeEvent, { type: 'resync' }>,
  listing: PodListing | undefined,
): boolean {
  const sandbox = listing?.sandboxes.find(({ id }) => id === event.sandboxId);
  const container = 'containerId' in event ? listing?.containers.find(({ id }) => id === event.containerId) : undefined;
  switch (event.type) {
    case 'containerCreated':
      return container !== undefined;
    case 'containerStarted':
      return container?.state === 'running' || container?.state === 'exited';
    case 'containerExited':
      return container?.state === 'exited';
    case 'containerRemoved':
      return container === undefined;
    case 'sandboxReady':
      return sandbox !== undefined;
    case 'sandboxNotReady':
      return sandbox?.state === 'notReady';
    case 'sandboxRemoved':
      return sandbox === undefined;
  }
}

/** Returns undefined instead of the error NotFound. */
export async function undefinedIfMissing<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isRuntimeError(error, 'NotFound')) return undefined;
    throw error;
  }
}

export function isDefined<T>(value: T | undefined): value is T {
  return value !== undefined;
}
