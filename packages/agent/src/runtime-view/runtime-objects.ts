import { createHash } from 'node:crypto';
import {
  type ContainerStatus,
  isRuntimeError,
  type PodSandbox,
  type PodSandboxStatus,
  type Container as RuntimeContainer,
  type RuntimeEvent,
  type SandboxId,
} from '@keelson/container-runtime';
import { isJsonObject, parseJsonObject } from '@keelson/core/internal';
import type { Container, coreV1, Pod, Container as PodContainer } from '@keelson/kinds';

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
  readonly containers: readonly RuntimeContainer[];
}

/** Groups listed objects by the UID of their pod. Objects that no agent created are left out. */
export function byPod(
  sandboxes: readonly PodSandbox[],
  containers: readonly RuntimeContainer[],
): Map<string, PodListing> {
  const pods = new Map<string, { sandboxes: PodSandbox[]; containers: RuntimeContainer[] }>();
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

const hashes = new WeakMap<Container, string>();

/**
 * A hash of the specification of a container that does not depend on the order of keys. A running container with
 * another hash is replaced.
 */
export function containerHash(container: Container): string {
  let hash = hashes.get(container);
  if (hash === undefined) {
    hash = createHash('sha256')
      .update(JSON.stringify(inOrder(container)))
      .digest('hex')
      .slice(0, 16);
    hashes.set(container, hash);
  }
  return hash;
}

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (!isJsonObject(value)) return value;
  return Object.keys(value)
    .sort()
    .filter((key) => value[key] !== undefined)
    .map((key) => [key, inOrder(value[key])]);
}

type LifecycleHandler = coreV1.LifecycleHandler;

/** Labels with the identity of pods and containers on the objects of the runtime. CRI tools read the first four. */
export const RuntimeLabel = {
  podName: 'io.kubernetes.pod.name',
  podNamespace: 'io.kubernetes.pod.namespace',
  podUid: 'io.kubernetes.pod.uid',
  containerName: 'io.kubernetes.container.name',
} as const;

const Note = {
  hash: 'io.kubernetes.container.hash',
  messagePath: 'io.kubernetes.container.terminationMessagePath',
  messagePolicy: 'io.kubernetes.container.terminationMessagePolicy',
  preStop: 'io.kubernetes.container.preStopHandler',
  grace: 'io.kubernetes.pod.terminationGracePeriod',
  messageFile: 'io.keelson.container.terminationMessageFile',
} as const;

/**
 * What a container was annotated with when it was created, so that it can be stopped as specified after its pod was
 * deleted.
 */
export interface ContainerNotes {
  readonly hash: string;
  readonly preStop: LifecycleHandler | undefined;
  readonly graceSeconds: number | undefined;
  /** Absolute path on the host. */
  readonly messageFile: string | undefined;
  readonly messagePolicy: string;
}

export interface PodIdentity {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
}

type Texts = Readonly<Record<string, string>>;

/** Undefined for objects that no agent created; these are never changed. */
export function podIdentityOf(labels: Texts): PodIdentity | undefined {
  const { [RuntimeLabel.podUid]: uid, [RuntimeLabel.podName]: name, [RuntimeLabel.podNamespace]: namespace } = labels;
  return uid === undefined || name === undefined || namespace === undefined ? undefined : { uid, name, namespace };
}

export function podLabels(pod: Pod): Record<string, string> {
  const { labels, name = '', namespace = '', uid = '' } = pod.metadata ?? {};
  return {
    ...labels,
    [RuntimeLabel.podName]: name,
    [RuntimeLabel.podNamespace]: namespace,
    [RuntimeLabel.podUid]: uid,
  };
}

export function containerLabels(pod: Pod, container: PodContainer): Record<string, string> {
  const { name = '', namespace = '', uid = '' } = pod.metadata ?? {};
  return {
    [RuntimeLabel.podName]: name,
    [RuntimeLabel.podNamespace]: namespace,
    [RuntimeLabel.podUid]: uid,
    [RuntimeLabel.containerName]: container.name,
  };
}

export function containerAnnotations(
  pod: Pod,
  container: PodContainer,
  messageFile: string | undefined,
): Record<string, string> {
  const notes: Record<string, string> = {
    [Note.hash]: containerHash(container),
    [Note.messagePath]: container.terminationMessagePath ?? '',
    [Note.messagePolicy]: container.terminationMessagePolicy ?? 'File',
  };
  if (messageFile !== undefined) notes[Note.messageFile] = messageFile;
  const grace = pod.spec.terminationGracePeriodSeconds;
  if (typeof grace === 'number') notes[Note.grace] = String(grace);
  if (container.lifecycle?.preStop) notes[Note.preStop] = JSON.stringify(container.lifecycle.preStop);
  return notes;
}

export function containerNotesOf(annotations: Texts): ContainerNotes {
  const grace = Number(annotations[Note.grace] ?? Number.NaN);
  return {
    hash: annotations[Note.hash] ?? '',
    preStop: readHandler(annotations[Note.preStop]),
    graceSeconds: Number.isFinite(grace) ? grace : undefined,
    messageFile: annotations[Note.messageFile],
    messagePolicy: annotations[Note.messagePolicy] ?? 'File',
  };
}

/** An annotation that cannot be parsed is ignored: stopping the container matters more than its hook. */
function readHandler(text: string | undefined): LifecycleHandler | undefined {
  return text === undefined ? undefined : (parseJsonObject(text) as LifecycleHandler | undefined);
}
