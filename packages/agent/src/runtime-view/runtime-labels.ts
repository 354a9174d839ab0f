import { createHash } from 'node:crypto';
import type { Container, coreV1, Pod, Container as PodContainer } from '@keelson/kinds';
import { isRecord } from '../base/json-values.ts';

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
  if (!isRecord(value)) return value;
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
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? (value as LifecycleHandler) : undefined;
  } catch {
    return undefined;
  }
}
