import { type Container, isRuntimeError, type PodSandbox, type SandboxId } from '@keelson/container-runtime';
import { podIdentityOf } from '../containers/runtime-labels.ts';

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
  return [...sandboxes, ...containers].map(({ id, state }) => `${id}:${state}`).join(' ');
}

/** The sandboxes that exist, and those that containers say they are in. */
export function sandboxIdsOf({ sandboxes, containers }: Seen): Set<SandboxId> {
  return new Set([...sandboxes.map(({ id }) => id), ...containers.map(({ sandboxId }) => sandboxId)]);
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
