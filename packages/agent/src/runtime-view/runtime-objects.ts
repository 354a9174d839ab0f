import {
  type Container,
  isRuntimeError,
  type PodSandbox,
  type RuntimeEvent,
  type SandboxId,
} from '@keelson/container-runtime';
import { podIdentityOf } from './runtime-labels.ts';

/** What a look at the runtime showed of one pod, newest first. */
export interface Seen {
  readonly sandboxes: readonly PodSandbox[];
  readonly containers: readonly Container[];
}

/** What lists of the runtime show, by UID of the pod. What no agent made is left out. */
export function byPod(sandboxes: readonly PodSandbox[], containers: readonly Container[]): Map<string, Seen> {
  const pods = new Map<string, { sandboxes: PodSandbox[]; containers: Container[] }>();
  const of = (uid: string) => {
    const known = pods.get(uid) ?? { sandboxes: [], containers: [] };
    pods.set(uid, known);
    return known;
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

/** Ids and states of everything, to see at a glance whether something changed. */
export function outlineOf({ sandboxes, containers }: Seen): string {
  let outline = '';
  for (const { id, state } of sandboxes) outline += `${id}:${state} `;
  for (const { id, state } of containers) outline += `${id}:${state} `;
  return outline;
}

/** The sandboxes that exist, and those that containers say they are in. */
export function sandboxIdsOf({ sandboxes, containers }: Seen): Set<SandboxId> {
  return new Set([...sandboxes.map(({ id }) => id), ...containers.map(({ sandboxId }) => sandboxId)]);
}

/** True for what happens to a pod by itself, and somebody may wait to hear of. */
export function isEnd({ type }: RuntimeEvent): boolean {
  return type === 'containerExited' || type === 'sandboxNotReady';
}

/**
 * True when what an event tells is part of what is known about the pod of its sandbox already, or has been overtaken.
 */
export function isShown(event: Exclude<RuntimeEvent, { type: 'resync' }>, known: Seen | undefined): boolean {
  const sandbox = known?.sandboxes.find(({ id }) => id === event.sandboxId);
  const container = 'containerId' in event ? known?.containers.find(({ id }) => id === event.containerId) : undefined;
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

/** The answer about an object, unless it went in the meantime. */
export async function unlessGone<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isRuntimeError(error, 'NotFound')) return undefined;
    throw error;
  }
}

export function isThere<T>(value: T | undefined): value is T {
  return value !== undefined;
}
