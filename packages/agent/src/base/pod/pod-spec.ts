import type { Container, Pod } from '@keelson/kinds';

export type RestartPolicy = 'Always' | 'OnFailure' | 'Never';

/** The restart policy of the pod. */
export function restartPolicyOf(pod: Pod): RestartPolicy {
  return asPolicy(pod.spec.restartPolicy) ?? 'Always';
}

/**
 * The restart policy of a container: its own if it has one, otherwise that of the pod. An init container without its
 * own policy is restarted until it succeeds, unless the policy of the pod is `Never`.
 */
export function containerPolicy(pod: Pod, container: Container, init: boolean): RestartPolicy {
  const own = asPolicy(container.restartPolicy);
  if (own !== undefined) return own;
  const policy = restartPolicyOf(pod);
  return init && policy === 'Always' ? 'OnFailure' : policy;
}

/** True for a sidecar: it starts in the order of init containers and runs as long as the containers of the pod. */
export function isSidecar(container: Container): boolean {
  return container.restartPolicy === 'Always';
}

export function restartsAfter(policy: RestartPolicy, exitCode: number): boolean {
  return policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0);
}

export function initContainersOf(pod: Pod): readonly Container[] {
  return pod.spec.initContainers ?? [];
}

/** Containers that were added to the running pod. They are started once and never restarted. */
export function ephemeralContainersOf(pod: Pod): readonly Container[] {
  return (pod.spec.ephemeralContainers ?? []).map((container) => ({ ...container, restartPolicy: 'Never' }));
}

/** Every container that a request can name, ephemeral containers last. */
export function namedContainersOf(pod: Pod): readonly Container[] {
  return [...allContainersOf(pod), ...ephemeralContainersOf(pod)];
}

/** Init containers and containers of the pod, in this order. */
export function allContainersOf(pod: Pod): readonly Container[] {
  return [...initContainersOf(pod), ...(pod.spec.containers ?? [])];
}

export function uidOf(pod: Pod): string {
  return pod.metadata?.uid ?? '';
}

/** `namespace/name`, the identity of a pod for people and in file names. */
export function fullNameOf(pod: Pod): string {
  return `${pod.metadata?.namespace ?? ''}/${pod.metadata?.name ?? ''}`;
}

export function isFinalPhase(phase: string | undefined): boolean {
  return phase === 'Succeeded' || phase === 'Failed';
}

function asPolicy(text: string | undefined): RestartPolicy | undefined {
  return text === 'Always' || text === 'OnFailure' || text === 'Never' ? text : undefined;
}

/** Annotations of pods that the agent reads and writes: see docs/reference/agent-rules.md#static-pods. */
export const PodAnnotation = {
  /** The source of the pod: file, http or api. */
  source: 'kubernetes.io/config.source',
  /** UID of a static pod. */
  hash: 'kubernetes.io/config.hash',
  /** On a mirror pod: the hash of its static pod. */
  mirror: 'kubernetes.io/config.mirror',
} as const;

/** True for a pod that does not come from the API server, which has only a mirror pod of it. */
export function isStaticPod(pod: Pod): boolean {
  const source = pod.metadata?.annotations?.[PodAnnotation.source];
  return source !== undefined && source !== 'api';
}

/** True for a mirror pod, the copy of a static pod at the API server. */
export function isMirrorPod(pod: Pod): boolean {
  return pod.metadata?.annotations?.[PodAnnotation.mirror] !== undefined;
}

export type SourceAnnotationValue = 'file' | 'http' | 'api';

/** The source of the pod as the host-*-sources options name it. */
export function sourceWordOf(pod: Pod): SourceAnnotationValue {
  const source = pod.metadata?.annotations?.[PodAnnotation.source];
  return source === 'file' || source === 'http' ? source : 'api';
}
